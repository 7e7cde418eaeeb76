"""Reading a converted directory back, row by row, without what the writers know.

A DCP is read by its own metadata and `torch.load`; a safetensors file by its header. One chunk of a
DCP is kept at a time, so that rows in order cost one read each.
"""

from __future__ import annotations

import copy
import glob
import io
import json
import math
import os
from bisect import bisect
from operator import index
from typing import Any, Dict, List, NamedTuple, Protocol, Tuple

import torch
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

from migrate.manifest import Written
from migrate.sources.dtypes import number_type
from migrate.targets.safetensors import DTYPES, INDEX
from semisync.errors import BadInput


class Stored(NamedTuple):
    """A tensor of the target: its sizes and torch's name of its data type."""

    shape: Tuple[int, ...]
    dtype: str


class _Place(NamedTuple):
    """A chunk of a DCP: its file, first byte and bytes."""

    file: str
    offset: int
    length: int


class Reader(Protocol):
    """tensors: by name. rows: a range of a tensor's rows; a scalar is one row."""

    tensors: Dict[str, Stored]

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count. BadInput where they cannot be read."""
        ...

    def reopened(self) -> Reader:
        """The same for another thread."""
        ...


def open_target(directory: str, target: str) -> Reader:
    """The reader of what `semisync convert --target` wrote; BadInput where it is damaged."""
    return DcpReader(directory) if target == "dcp" else SafetensorsReader(directory)


class DcpReader:
    """A torch Distributed Checkpoint whose chunks are whole rows."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.tensors: Dict[str, Stored] = {}
        self._chunks: Dict[str, List[Tuple[int, int, _Place]]] = {}  # first row, rows, where
        self._kept: Tuple[str, int, torch.Tensor] = ("", -1, torch.empty(0))
        try:
            self._take_in(FileSystemReader(directory).read_metadata())
        except Exception as error:  # whatever an unpickler does, or what it made lacks
            raise BadInput(
                f"{directory}/.metadata cannot be read: {' '.join(str(error).split())}"
            ) from error

    def _take_in(self, metadata: Metadata) -> None:
        """Shapes, types and places; a ValueError or any other where something is missing."""
        places = {
            (one.fqn, tuple(one.offset)): _Place(at.relative_path, at.offset, at.length)
            for one, at in metadata.storage_data.items()
        }
        for fqn, tensor in metadata.state_dict_metadata.items():
            if not isinstance(tensor, TensorStorageMetadata):
                raise ValueError(f"{fqn!r} is no tensor")
            if ".".join(map(str, metadata.planner_data[fqn])) != fqn:
                raise ValueError(f"{fqn!r} has another path in the state dict")
            self.tensors[fqn] = Stored(tuple(tensor.size), _name(tensor.properties.dtype))
            boxes = [(one.offsets[:1], one.sizes[:1], tuple(one.offsets)) for one in tensor.chunks]
            self._chunks[fqn] = [
                (first[0] if first else 0, rows[0] if rows else 1, places[fqn, offsets])
                for first, rows, offsets in sorted(boxes)
            ]

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count of a tensor."""
        found = []
        chunks = self._chunks[fqn]
        for start, rows, where in chunks[max(bisect([one[0] for one in chunks], first) - 1, 0) :]:
            begin, end = max(first, start), min(first + count, start + rows)
            if begin >= end:
                break
            found.append(self._chunk(fqn, start, rows, where)[begin - start : end - start])
        rows = sum(map(len, found))
        if rows != count:
            raise BadInput(f"{fqn!r} has {rows} of the rows {first} to {first + count - 1}")
        return found[0] if len(found) == 1 else torch.cat(found)

    def reopened(self) -> DcpReader:
        """The same with a chunk of its own."""
        return copy.copy(self)

    def _chunk(self, fqn: str, start: int, rows: int, where: _Place) -> torch.Tensor:
        if self._kept[:2] != (fqn, start):
            path = os.path.join(self._directory, where.file)
            try:
                with open(path, "rb", buffering=0) as file:
                    view = io.BufferedReader(_View(file, where.offset, where.length))
                    tensor = torch.load(view, map_location="cpu", weights_only=True)
            except Exception as error:  # torch raises whatever its unpickler does
                raise BadInput(
                    f"{path}, chunk at byte {where.offset}: {' '.join(str(error).split())}"
                ) from error
            stored = self.tensors[fqn]
            expected = Stored((rows, *stored.shape[1:]) if stored.shape else (), stored.dtype)
            found = _stored(tensor) if isinstance(tensor, torch.Tensor) else None
            if found != expected:
                raise BadInput(f"{path}, chunk at byte {where.offset}: {found}, not {expected}")
            self._kept = (fqn, start, tensor if tensor.dim() else tensor.reshape(1))
        return self._kept[2]


class _View(io.RawIOBase):
    """Part of a file, as a file."""

    def __init__(self, file: io.FileIO, start: int, length: int) -> None:
        self._file, self._start, self._length = file, start, length
        self._position = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of any file."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Straight into `buffer`, which may be a tensor's."""
        left = memoryview(buffer).cast("B")[: max(self._length - self._position, 0)]
        count = os.preadv(self._file.fileno(), [left], self._start + self._position)
        self._position += count
        return count


class SafetensorsReader:
    """A directory of safetensors files, each tensor whole in one of them."""

    def __init__(self, directory: str) -> None:
        self.tensors: Dict[str, Stored] = {}
        self._where: Dict[str, Tuple[str, int]] = {}  # file, position of the first value
        names = {safetensors: name for name, safetensors in DTYPES.items()}
        for path in sorted(glob.glob(os.path.join(glob.escape(directory), "*.safetensors"))):
            header, start = _header(path)
            for fqn, one in header.items():
                try:
                    stored = Stored(tuple(map(index, one["shape"])), names[one["dtype"]])
                    begin, end = map(index, one["data_offsets"])
                except (KeyError, TypeError, ValueError) as error:
                    raise BadInput(f"{path}: the header's {fqn!r} is damaged") from error
                size = math.prod(stored.shape) * number_type(stored.dtype).itemsize
                if not 0 <= begin <= end <= os.path.getsize(path) - start or end - begin != size:
                    raise BadInput(f"{path}: {fqn!r} does not fit the file; it is truncated")
                self.tensors[fqn] = stored
                self._where[fqn] = (path, start + begin)
        found = {fqn: os.path.basename(path) for fqn, (path, _) in self._where.items()}
        if _weight_map(os.path.join(directory, INDEX)) != found:
            raise BadInput(f"{directory}/{INDEX} does not tell which file has which tensor")

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count of a tensor."""
        stored = self.tensors[fqn]
        shape = stored.shape or (1,)
        if first + count > shape[0]:
            raise BadInput(f"{fqn!r} has {shape[0]} rows, not {first + count}")
        row = math.prod(shape[1:]) * number_type(stored.dtype).itemsize
        path, start = self._where[fqn]
        with open(path, "rb") as file:
            file.seek(start + first * row)
            data = bytearray(file.read(count * row))
        tensor = torch.frombuffer(data, dtype=getattr(torch, stored.dtype))
        return tensor.reshape(count, *shape[1:])

    def reopened(self) -> SafetensorsReader:
        """This one: every call opens its file."""
        return self


class FileReader:
    """A tensor that is a file of its own: its rows, one after the other."""

    def __init__(self, directory: str, written: Written) -> None:
        self.tensors: Dict[str, Stored] = {}
        self._path = os.path.join(directory, written.fqn)
        stored = Stored(tuple(written.shape), written.dtype)
        self._row = math.prod(stored.shape[1:]) * number_type(stored.dtype).itemsize
        size = os.path.getsize(self._path) if os.path.exists(self._path) else -1
        if size == stored.shape[0] * self._row:
            self.tensors[written.fqn] = stored

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count."""
        stored = self.tensors[fqn]
        with open(self._path, "rb") as file:
            file.seek(first * self._row)
            data = bytearray(file.read(count * self._row))
        if len(data) != count * self._row:
            raise BadInput(f"{self._path} ends before row {first + count}")
        if not data:
            return torch.empty((count, *stored.shape[1:]), dtype=getattr(torch, stored.dtype))
        tensor = torch.frombuffer(data, dtype=getattr(torch, stored.dtype))
        return tensor.reshape(count, *stored.shape[1:])

    def reopened(self) -> FileReader:
        """The same: it keeps nothing."""
        return self


def _stored(tensor: torch.Tensor) -> Stored:
    return Stored(tuple(tensor.shape), _name(tensor.dtype))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).replace("torch.", "")


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
