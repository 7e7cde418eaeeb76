"""Reading a directory of safetensors files back, by their headers."""

from __future__ import annotations

import glob
import json
import math
import os
from operator import index
from typing import Any, Dict, Tuple

import torch

from migrate.encoding.dtypes import number_type
from migrate.targets.reading.files import read_rows
from migrate.targets.reading.reader import Stored
from migrate.targets.safetensors import DTYPES, INDEX
from semisync.common.errors import BadInput

_NAMES = {in_header: name for name, in_header in DTYPES.items()}


class SafetensorsReader:
    """A directory of safetensors files, each tensor whole in one of them."""

    def __init__(self, directory: str) -> None:
        self.tensors: Dict[str, Stored] = {}
        self._where: Dict[str, Tuple[str, int]] = {}  # file, position of the first value
        for path in sorted(glob.glob(os.path.join(glob.escape(directory), "*.safetensors"))):
            self._take_in(path)
        found = {fqn: os.path.basename(path) for fqn, (path, _) in self._where.items()}
        if _weight_map(os.path.join(directory, INDEX)) != found:
            raise BadInput(f"{directory}/{INDEX} does not tell which file has which tensor")

    def _take_in(self, path: str) -> None:
        """Shapes, types and places of the tensors in one file."""
        header, start = _header(path)
        for fqn, one in header.items():
            try:
                stored = Stored(tuple(map(index, one["shape"])), _NAMES[one["dtype"]])
                begin, end = map(index, one["data_offsets"])
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(f"{path}: the header's {fqn!r} is damaged") from error
            size = math.prod(stored.shape) * number_type(stored.dtype).itemsize
            if not 0 <= begin <= end <= os.path.getsize(path) - start or end - begin != size:
                raise BadInput(f"{path}: {fqn!r} does not fit the file; it is truncated")
            self.tensors[fqn] = stored
            self._where[fqn] = (path, start + begin)

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count of a tensor."""
        stored = self.tensors[fqn]
        rows = stored.shape[0] if stored.shape else 1
        if first + count > rows:
            raise BadInput(f"{fqn!r} has {rows} rows, not {first + count}")
        path, start = self._where[fqn]
        return read_rows(path, start, stored, first, count)

    def reopened(self) -> SafetensorsReader:
        """This one: every call opens its file."""
        return self


def _weight_map(path: str) -> Any:
    """What the index says: name -> file; None where it says nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    return data.get("weight_map") if isinstance(data, dict) else None


def _header(path: str) -> Tuple[Dict[str, Any], int]:
    """The header of a safetensors file, and where its values begin."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > os.path.getsize(path) - 8:
            raise BadInput(f"{path} is no safetensors file, or truncated")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path}: its header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise BadInput(f"{path}: its header is no JSON object")
    header.pop("__metadata__", None)
    return header, 8 + length
