"""A safetensors file behind a URL, by the calls of `safetensors.safe_open`, which reads from disk
alone: the header is read once, of a tensor the rows that are asked for."""

from __future__ import annotations

import math
from typing import Any, Dict, List

import torch

from migrate.checkpoint.tensor_info import rows_of
from migrate.targets.safetensors import DTYPES
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.files import LARGEST_TEXT
from semisync.encoding.dtypes import number_type
from semisync.storage.files import open_file

NAMES = {in_header: name for name, in_header in DTYPES.items()}


class RemoteSafetensors:
    """The file at the URL `path`; raises BadInput if it is damaged or no safetensors file."""

    def __init__(self, path: str) -> None:
        with open_file(path) as file:
            size = int.from_bytes(file.read(0, 8, path), "little")
            if size > LARGEST_TEXT:
                raise BadInput(f"{path} claims a header of {size:,} bytes; it is damaged")
            text = file.read(8, size, f"the header of {path}")
            try:
                header: Dict[str, Any] = json_text.loads(text)
                header.pop("__metadata__", None)
                self._slices = {
                    fqn: RemoteSlice(
                        path, one["dtype"], one["shape"], 8 + size, *one["data_offsets"]
                    )
                    for fqn, one in header.items()
                }
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise BadInput(
                    f"{path} is not a safetensors file, or is damaged: {error}"
                ) from error
            for one in self._slices.values():
                file.check_extent(one.start, one.row_bytes * one.rows, path)

    def __enter__(self) -> RemoteSafetensors:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open."""

    def keys(self) -> List[str]:
        """The names of the tensors."""
        return list(self._slices)

    def get_slice(self, fqn: str) -> RemoteSlice:
        """A tensor that is not read yet."""
        return self._slices[fqn]

    def get_tensor(self, fqn: str) -> torch.Tensor:
        """A tensor, read."""
        one = self._slices[fqn]
        return one[0 : one.rows].reshape(one.get_shape())


class RemoteSlice:
    """A tensor of the file at `path`, whose values begin at byte `base`; start, end: its own."""

    def __init__(
        self, path: str, dtype: str, shape: List[int], base: int, start: int, end: int
    ) -> None:
        self._path, self._dtype, self._shape = path, dtype, [int(size) for size in shape]
        self.rows = rows_of(self._shape)
        self.start = base + start
        self.row_bytes = math.prod(self._shape[1:]) * number_type(NAMES[dtype]).itemsize
        if min(start, *self._shape, 0) < 0 or end - start != self.rows * self.row_bytes:
            raise ValueError(f"{dtype} {shape} does not take bytes {start} to {end}")

    def get_dtype(self) -> str:
        """As the header has it."""
        return self._dtype

    def get_shape(self) -> List[int]:
        """Its sizes."""
        return self._shape

    def __getitem__(self, rows: slice) -> torch.Tensor:
        shape = (rows.stop - rows.start, *self._shape[1:])
        dtype = getattr(torch, NAMES[self._dtype])
        size = shape[0] * self.row_bytes
        if not size:  # of which torch makes no tensor
            return torch.empty(shape, dtype=dtype)
        with open_file(self._path) as file:
            data = file.read(self.start + rows.start * self.row_bytes, size, f"rows {rows}")
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)
