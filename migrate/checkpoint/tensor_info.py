"""A tensor's entry in a checkpoint's index."""

from __future__ import annotations

from typing import NamedTuple, Sequence, Tuple

from semisync.common.errors import BadInput

MAX_ROW = 512 << 20  # bytes: who reads rows holds one as a whole, perhaps beside its slots'


class Slice(NamedTuple):
    """The box of a tensor that is stored as one piece."""

    start: Tuple[int, ...]
    shape: Tuple[int, ...]


class TensorInfo(NamedTuple):
    """A tensor's entry in the index.

    Attributes:
        shape: sizes of the whole tensor.
        dtype: TensorFlow's name of the data type.
        slices: one `Slice` per stored piece, by their start; empty for an undivided tensor.
        kind: "variable", "slot", "scalar" or "other", by name and shape.
        nbytes: stored size in bytes.

    Examples:
        >>> migrate.open_checkpoint("model.ckpt-40000")["products/Adagrad"]
        TensorInfo(shape=(100, 4), dtype='float32', slices=(), kind='slot', nbytes=1600)
    """

    shape: Tuple[int, ...]
    dtype: str
    slices: Tuple[Slice, ...]
    kind: str
    nbytes: int


def rows_of(shape: Sequence[int]) -> int:
    """A scalar is one row."""
    return shape[0] if shape else 1


def refuse_wide_rows(size: int, where: str) -> None:
    """Raises BadInput where a row has more bytes than anybody trained; none is held then."""
    if size > MAX_ROW:
        raise BadInput(
            f"{where} has rows of {size:,} bytes; read by rows are those of at most {MAX_ROW:,}"
        )
