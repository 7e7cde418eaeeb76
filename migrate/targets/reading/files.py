"""Reading rows that stand one after the other in a file."""

from __future__ import annotations

import math
import os
from typing import Dict

import torch

from migrate.encoding.dtypes import number_type
from migrate.manifest.model import Written
from migrate.targets.reading.reader import Stored
from semisync.common.errors import BadInput


def read_rows(path: str, start: int, stored: Stored, first: int, count: int) -> torch.Tensor:
    """Rows first..first+count of a tensor whose values begin at byte `start` of the file at `path`;
    BadInput where it ends before them."""
    shape = (count, *stored.shape[1:])
    row_bytes = math.prod(shape[1:]) * number_type(stored.dtype).itemsize
    with open(path, "rb") as file:
        file.seek(start + first * row_bytes)
        data = bytearray(file.read(count * row_bytes))
    if len(data) != count * row_bytes:
        raise BadInput(f"{path} ends before row {first + count}")
    dtype = getattr(torch, stored.dtype)
    if not data:  # of which torch makes no tensor
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).reshape(shape)


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
        return read_rows(self._path, 0, self.tensors[fqn], first, count)

    def reopened(self) -> FileReader:
        """The same: it keeps nothing."""
        return self
