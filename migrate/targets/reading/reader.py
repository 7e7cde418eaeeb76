"""The interface of readers of a target's tensors; and the simplest reader, of a file.

1. `tensors` has the shapes and types of all tensors, known when the reader is made.
2. `rows` reads a range of rows; whatever is damaged is BadInput.
3. `reopened` gives each thread a reader of its own.
"""

from __future__ import annotations

import math
from typing import Dict, NamedTuple, Protocol, Tuple

import torch

from migrate.manifest.manifest import FILE, Written
from semisync.encoding.dtypes import number_type
from semisync.storage.files import open_file, size_of
from semisync.storage.within import data_file


class Stored(NamedTuple):
    """A tensor of the target: its sizes and torch's name of its data type."""

    shape: Tuple[int, ...]
    dtype: str


def dtype_name(dtype: torch.dtype) -> str:
    """Torch's name of the type."""
    return str(dtype).replace("torch.", "")


class Reader(Protocol):
    """Reads the tensors of a target.

    Attributes:
        tensors: shape and type of each tensor, by name.
    """

    tensors: Dict[str, Stored]

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count, a scalar being one; raises BadInput if they cannot be read."""
        ...

    def reopened(self) -> Reader:
        """A reader of the same tensors for another thread."""
        ...


class FileReader:
    """A tensor that is a file of its own; `tensors` is empty if the file has another size."""

    def __init__(self, directory: str, written: Written) -> None:
        self.tensors: Dict[str, Stored] = {}
        self._path = data_file(directory, written.fqn, FILE)
        stored = Stored(tuple(written.shape), written.dtype)
        if size_of(self._path) == math.prod(stored.shape) * number_type(stored.dtype).itemsize:
            self.tensors[written.fqn] = stored

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count."""
        stored = self.tensors[fqn]
        shape = (count, *stored.shape[1:])
        row_bytes = math.prod(shape[1:]) * number_type(stored.dtype).itemsize
        with open_file(self._path) as file:
            where = f"row {first + count - 1}"
            data = bytearray(file.read(first * row_bytes, count * row_bytes, where))
        dtype = getattr(torch, stored.dtype)
        if not data:  # of which torch makes no tensor
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(data, dtype=dtype).reshape(shape)

    def reopened(self) -> FileReader:
        """This reader: it has no state."""
        return self
