"""One tensor of the target: its name, its shape, and the sources of its rows."""

from __future__ import annotations

import math
from typing import NamedTuple, Optional, Tuple

from migrate.checkpoint.tensor_info import rows_of
from migrate.manifest.transforms import COPY, Transform
from migrate.stream.columns import Origin
from semisync.encoding.dtypes import number_type


class Item(NamedTuple):
    """One tensor to write.

    Attributes:
        path: in a nested state dict; its name joins that by dots.
        source: the tensor or hash table of the checkpoint that it is made from.
        role: see migrate.manifest.manifest.Written.
        dtype: torch's name of its data type (TensorFlow's is the same where both have it).
        shape: its sizes.
        interleave: rows are dealt out from the partitions in turn.
        transform: applied to its values.
        value: a number that is written instead of the source's own.
        origins: of a hash table: the columns that stand side by side in a row.
    """

    path: Tuple[str, ...]
    source: str
    role: str
    dtype: str
    shape: Tuple[int, ...]
    interleave: bool = False
    transform: Transform = COPY
    value: Optional[float] = None
    origins: Tuple[Origin, ...] = ()

    @property
    def fqn(self) -> str:
        """Its fully qualified name."""
        return ".".join(self.path)

    def transformed(self, transform: Transform, dtype: Optional[str] = None) -> Item:
        """This item, its values put through `transform`.

        Args:
            dtype: where the transform leaves it open.
        """
        return self._replace(
            transform=transform,
            dtype=transform.dtype or dtype or self.dtype,
            shape=transform.shape(self.shape),
        )

    @property
    def is_file(self) -> bool:
        """Whether it is its own file, whose path is its fqn, and no tensor of the format."""
        return self.role.startswith("file")

    @property
    def rows(self) -> int:
        """Its first dimension; a scalar is one row."""
        return rows_of(self.shape)

    @property
    def itemsize(self) -> int:
        """Size of one value in the target, in bytes."""
        return number_type(self.dtype).itemsize

    @property
    def row_bytes(self) -> int:
        """Size of one row in the target."""
        return math.prod(self.shape[1:]) * self.itemsize

    @property
    def nbytes(self) -> int:
        """Size in the target."""
        return self.rows * self.row_bytes
