"""Reading a torch Distributed Checkpoint back, by its own metadata and `torch.load`.

One chunk is kept at a time, so that rows in order cost one read each.
"""

from __future__ import annotations

import copy
import io
import os
import pickle
from bisect import bisect
from contextlib import contextmanager
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Tuple

import torch
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

from migrate.storage.files import open_file, read_whole
from migrate.storage.remote import Unreachable, is_remote
from migrate.targets.reading.reader import Stored
from semisync.common.errors import BadInput


class _Place(NamedTuple):
    """A chunk of a DCP: its file, first byte and bytes."""

    file: str
    offset: int
    length: int


class DcpReader:
    """A torch Distributed Checkpoint whose chunks are whole rows."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.tensors: Dict[str, Stored] = {}
        self._chunks: Dict[str, List[Tuple[int, int, _Place]]] = {}  # first row, rows, where
        self._kept: Tuple[str, int, torch.Tensor] = ("", -1, torch.empty(0))
        try:
            self._take_in(read_metadata(directory))
        except Unreachable:
            raise
        except Exception as error:  # what an unpickler raises, or what its result lacks
            raise BadInput(
                f"{directory}/.metadata cannot be read: {' '.join(str(error).split())}"
            ) from error

    def _take_in(self, metadata: Metadata) -> None:
        """Shapes, types and places; a ValueError or any other where something is missing."""
        places = {
            (index.fqn, tuple(index.offset)): _Place(at.relative_path, at.offset, at.length)
            for index, at in metadata.storage_data.items()
        }
        for fqn, tensor in metadata.state_dict_metadata.items():
            if not isinstance(tensor, TensorStorageMetadata):
                raise ValueError(f"{fqn!r} is not a tensor")
            if ".".join(map(str, metadata.planner_data[fqn])) != fqn:
                raise ValueError(f"{fqn!r} has another path in the state dict")
            self.tensors[fqn] = Stored(tuple(tensor.size), _name(tensor.properties.dtype))
            boxes = [
                (chunk.offsets[:1], chunk.sizes[:1], tuple(chunk.offsets))
                for chunk in tensor.chunks
            ]
            self._chunks[fqn] = [
                (first[0] if first else 0, rows[0] if rows else 1, places[fqn, offsets])
                for first, rows, offsets in sorted(boxes)
            ]

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count of a tensor."""
        pieces = []
        chunks = self._chunks[fqn]
        for start, rows, where in chunks[
            max(bisect([chunk[0] for chunk in chunks], first) - 1, 0) :
        ]:
            begin, end = max(first, start), min(first + count, start + rows)
            if begin >= end:
                break
            pieces.append(self._chunk(fqn, start, rows, where)[begin - start : end - start])
        there = sum(map(len, pieces))
        if there != count:
            raise BadInput(f"{fqn!r} has {there} of the rows {first} to {first + count - 1}")
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)

    def reopened(self) -> DcpReader:
        """The same with a chunk of its own."""
        return copy.copy(self)

    def _chunk(self, fqn: str, start: int, rows: int, where: _Place) -> torch.Tensor:
        if self._kept[:2] != (fqn, start):
            path = os.path.join(self._directory, where.file)
            try:
                with part_of_file(path, where.offset, where.length) as view:
                    tensor = torch.load(view, map_location="cpu", weights_only=True)
            except Unreachable:
                raise
            except Exception as error:  # torch raises what its unpickler raises
                raise BadInput(
                    f"{path}, chunk at byte {where.offset}: {' '.join(str(error).split())}"
                ) from error
            stored = self.tensors[fqn]
            expected = Stored((rows, *stored.shape[1:]) if stored.shape else (), stored.dtype)
            loaded = _stored(tensor) if isinstance(tensor, torch.Tensor) else None
            if loaded is not None and loaded.shape and stored.shape:  # a name may have fewer rows
                tensor = tensor[:rows]
            if not isinstance(tensor, torch.Tensor) or _stored(tensor) != expected:
                raise BadInput(f"{path}, chunk at byte {where.offset}: {loaded}, not {expected}")
            self._kept = (fqn, start, tensor if tensor.dim() else tensor.reshape(1))
        return self._kept[2]


def read_metadata(directory: str) -> Metadata:
    """`.metadata` of the DCP at a path or URL; whatever an unpickler raises where it is damaged."""
    metadata: Metadata = pickle.loads(read_whole(os.path.join(directory, ".metadata")))
    return metadata


@contextmanager
def part_of_file(path: str, start: int, length: int) -> Iterator[BinaryIO]:
    """Part of the file at a path or URL, as a file: what a server has is read at once."""
    if is_remote(path):
        with open_file(path) as stored:
            yield io.BytesIO(stored.read(start, length, "it"))
    else:
        with open(path, "rb", buffering=0) as file:
            yield io.BufferedReader(_PartOfFile(file, start, length))


class _PartOfFile(io.RawIOBase):
    """Part of a file on disk, as a file."""

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


def _stored(tensor: torch.Tensor) -> Stored:
    return Stored(tuple(tensor.shape), _name(tensor.dtype))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).replace("torch.", "")
