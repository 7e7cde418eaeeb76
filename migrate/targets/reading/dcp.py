"""Reading a torch Distributed Checkpoint back, by its own metadata and `torch.load`.

One chunk is kept at a time, so that rows in order cost one read each.
"""

from __future__ import annotations

import copy
import io
import os
from bisect import bisect
from contextlib import contextmanager
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Tuple

import torch
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

from migrate.targets.reading.dcp_metadata import read_metadata, unreadable
from migrate.targets.reading.reader import Stored, dtype_name
from semisync.common.errors import BadInput
from semisync.common.sentences import words_of
from semisync.storage.files import open_file
from semisync.storage.folders import joined
from semisync.storage.remote import Unreachable, is_remote


class Chunk(NamedTuple):
    """A box of a tensor: its first index and sizes, and where its `torch.save` is."""

    start: Tuple[int, ...]
    shape: Tuple[int, ...]
    path: str
    offset: int
    length: int


class Saved(NamedTuple):
    """A tensor of a DCP; dtype: torch's name."""

    dtype: str
    shape: Tuple[int, ...]
    chunks: List[Chunk]


class DcpReader:
    """A torch Distributed Checkpoint whose chunks are whole rows."""

    def __init__(self, directory: str) -> None:
        self._saved = read_dcp(directory, converted=True)
        self.tensors = {fqn: Stored(one.shape, one.dtype) for fqn, one in self._saved.items()}
        self._kept: Tuple[str, int, torch.Tensor] = ("", -1, torch.empty(0))

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count of a tensor."""
        pieces = []
        # A scalar's box has no dimensions; it is one row.
        chunks = [(*one.start[:1], *one.shape[:1]) or (0, 1) for one in self._saved[fqn].chunks]
        at = max(bisect([start for start, _ in chunks], first) - 1, 0)
        for number, (start, rows) in enumerate(chunks[at:], at):
            begin, end = max(first, start), min(first + count, start + rows)
            if begin >= end:
                break
            pieces.append(self._chunk(fqn, number)[begin - start : end - start])
        there = sum(map(len, pieces))
        if there != count:
            raise BadInput(f"{fqn!r} has {there} of the rows {first} to {first + count - 1}")
        if not count:
            dtype, shape, _ = self._saved[fqn]
            return torch.empty((0, *shape[1:]), dtype=getattr(torch, dtype))
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)

    def reopened(self) -> DcpReader:
        """A reader of the same tensors that keeps a chunk of its own."""
        return copy.copy(self)

    def _chunk(self, fqn: str, number: int) -> torch.Tensor:
        if self._kept[:2] != (fqn, number):
            dtype, whole, chunks = self._saved[fqn]
            _, shape, path, offset, length = chunks[number]
            try:
                with part_of_file(path, offset, length) as view:
                    tensor = torch.load(view, map_location="cpu", weights_only=True)
            except Unreachable:
                raise
            except Exception as error:  # torch raises what its unpickler raises
                raise BadInput(f"{path}, chunk at byte {offset}: {words_of(error)}") from error
            # Columns as in the whole tensor: a chunk of some columns, which no `convert` writes, is
            # refused.
            expected = Stored((*shape[:1], *whole[1:]), dtype)
            loaded = _stored(tensor) if isinstance(tensor, torch.Tensor) else None
            if loaded is not None and loaded.shape and shape:  # a name may have fewer rows
                tensor = tensor[: shape[0]]
            if not isinstance(tensor, torch.Tensor) or _stored(tensor) != expected:
                raise BadInput(f"{path}, chunk at byte {offset}: {loaded}, not {expected}")
            self._kept = (fqn, number, tensor if tensor.dim() else tensor.reshape(1))
        return self._kept[2]


def read_dcp(directory: str, converted: bool = False) -> Dict[str, Saved]:
    """The tensors of the DCP at a path or URL, by name; raises BadInput unless it is one.

    Args:
        converted: it is as `semisync convert` writes it: tensors alone, each under its own path.
    """
    found = read_metadata(directory)
    with unreadable(directory):
        return dict(_tensors(found, directory, converted))


def _tensors(metadata: Metadata, directory: str, converted: bool) -> Iterator[Tuple[str, Saved]]:
    places = {
        (index.fqn, tuple(index.offset)): at
        for index, at in metadata.storage_data.items()
        if index.offset is not None
    }
    for fqn, tensor in metadata.state_dict_metadata.items():
        if not isinstance(tensor, TensorStorageMetadata):
            if converted:
                raise ValueError(f"{fqn!r} is not a tensor")
            continue  # a plain object, such as an optimizer's settings
        if converted and not _leads_to(metadata.planner_data[fqn], fqn):
            raise ValueError(f"{fqn!r} has another path in the state dict")
        chunks = []
        for chunk in tensor.chunks:
            at = places[fqn, tuple(chunk.offsets)]
            path = joined(directory, at.relative_path)
            start, shape = tuple(chunk.offsets), tuple(chunk.sizes)
            chunks.append(Chunk(start, shape, path, at.offset, at.length))
        yield fqn, Saved(dtype_name(tensor.properties.dtype), tuple(tensor.size), sorted(chunks))


def _leads_to(path: Any, fqn: str) -> bool:
    """Whether the path in a state dict is that of `fqn`."""
    return all(type(part) in (str, int) for part in path) and ".".join(map(str, path)) == fqn


@contextmanager
def part_of_file(path: str, start: int, length: int) -> Iterator[BinaryIO]:
    """Part of the file at a path or URL, as a file: from a server it is read at once."""
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
        """See io.IOBase."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Reads straight into `buffer`, which may be a tensor's."""
        left = memoryview(buffer).cast("B")[: max(self._length - self._position, 0)]
        count = os.preadv(self._file.fileno(), [left], self._start + self._position)
        self._position += count
        return count


def _stored(tensor: torch.Tensor) -> Stored:
    return Stored(tuple(tensor.shape), dtype_name(tensor.dtype))
