"""What a reader of any format tells of the tensors of a target; and the simplest one, of a file.

1. `tensors` has the shapes and types of all tensors, known when the reader is made.
2. `rows` reads a range of rows; whatever is damaged is BadInput.
3. `reopened` gives each thread a reader of its own.
"""

from __future__ import annotations

import math
import os
from typing import Dict, NamedTuple, Protocol, Tuple

import torch

from migrate.encoding.dtypes import number_type
from migrate.manifest.manifest import Written
from semisync.common.errors import BadInput


class Stored(NamedTuple):
    """A tensor of the target: its sizes and torch's name of its data type."""

    shape: Tuple[int, ...]
    dtype: str


class Reader(Protocol):
    """tensors: by name. rows: a range of a tensor's rows; a scalar is one row."""

    tensors: Dict[str, Stored]

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count. BadInput where they cannot be read."""
        ...

    def reopened(self) -> Reader:
        """The same for another thread."""
        ...


class FileReader:
    """The tensor `written` that is a file of its own; `tensors` lacks it where the file does not
    have its size."""

    def __init__(self, directory: str, written: Written) -> None:
        self.tensors: Dict[str, Stored] = {}
        self._path = os.path.join(directory, written.fqn)
        stored = Stored(tuple(written.shape), written.dtype)
        size = os.path.getsize(self._path) if os.path.exists(self._path) else -1
        if size == math.prod(stored.shape) * number_type(stored.dtype).itemsize:
            self.tensors[written.fqn] = stored

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count."""
        stored = self.tensors[fqn]
        shape = (count, *stored.shape[1:])
        row_bytes = math.prod(shape[1:]) * number_type(stored.dtype).itemsize
        with open(self._path, "rb") as file:
            file.seek(first * row_bytes)
            data = bytearray(file.read(count * row_bytes))
        if len(data) != count * row_bytes:
            raise BadInput(f"{self._path} ends before row {first + count}")
        dtype = getattr(torch, stored.dtype)
        if not data:  # of which torch makes no tensor
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(data, dtype=dtype).reshape(shape)

    def reopened(self) -> FileReader:
        """The same: it keeps nothing."""
        return self
