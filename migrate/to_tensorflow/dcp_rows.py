"""Rows of any torch Distributed Checkpoint, read a block at a time.

`migrate.targets.reading.dcp` reads those that `semisync convert` wrote, whose chunks are small and
hold whole rows. A chunk that training saved is a rank's part of a tensor: any box, any size. Each
is a `torch.save` of its own, in which the values stand as they are in memory, so that rows can be
read in place where they are contiguous; else the chunk is loaded.
"""

from __future__ import annotations

import math
import struct
import zipfile
from typing import BinaryIO, ContextManager, Iterator, Mapping, Optional, Sequence, Tuple

import numpy
import torch

from migrate.checkpoint.pieces import Piece, check_tiling
from migrate.checkpoint.rows import window
from migrate.checkpoint.tensor_info import rows_of
from migrate.targets.reading.dcp import Chunk, Saved, part_of_file
from migrate.targets.reading.reader import dtype_name
from migrate.to_tensorflow.held import BLOCK_BYTES, Held, as_array
from migrate.to_tensorflow.keys import Place
from semisync.common.errors import BadInput
from semisync.common.sentences import words_of
from semisync.encoding.dtypes import number_type

_LOCAL_HEADER = 30  # bytes of a zip archive's; the last four are the lengths of the fields after it


def blocks_of(fqn: str, saved: Saved) -> Iterator[numpy.ndarray]:
    """The rows of a tensor from front to back; raises BadInput if some are missing or damaged."""
    rows, rest = rows_of(saved.shape), saved.shape[1:]
    chunks = [_Open(fqn, chunk, saved.dtype) for chunk in saved.chunks]
    # The chunks of all ranks together must be the whole tensor, and none come twice.
    check_tiling([chunk.piece for chunk in chunks], saved.shape or (1,), f"{fqn!r} of the DCP")
    row = math.prod(rest) * number_type(saved.dtype).itemsize
    step = max(BLOCK_BYTES // max(row, 1), 1)
    for first in range(0, max(rows, 1), step):  # an empty tensor is one empty block
        last = min(first + step, rows)
        block = numpy.empty((last - first, *rest), number_type(saved.dtype))
        for chunk in chunks:
            begin, end = chunk.overlap(first, last)
            if begin < end:
                inside = slice(begin - first, end - first)
                block[window(chunk.piece, inside)] = chunk.rows(begin, end)
        yield block


def joined(places: Sequence[Place], saved: Mapping[str, Saved], by_id: bool) -> Held:
    """A variable whose rows stand at `places`, one after the other."""
    parts = [saved[place.key] for place in places]
    shapes = [_turned(part.shape, place) for part, place in zip(parts, places)]
    shape = shapes[0]
    if len(shapes) > 1:
        shape = (sum(one[0] for one in shapes), *shape[1:])
    return Held(parts[0].dtype, shape, by_id, lambda: _joined_blocks(places, parts))


def _joined_blocks(places: Sequence[Place], parts: Sequence[Saved]) -> Iterator[numpy.ndarray]:
    for place, saved in zip(places, parts):
        if place.axes is None:
            yield from blocks_of(place.key, saved)
        else:  # of a dense layer
            whole = numpy.concatenate(list(blocks_of(place.key, saved)))
            yield whole.transpose(numpy.argsort(place.axes))


def _turned(shape: Tuple[int, ...], place: Place) -> Tuple[int, ...]:
    """The shape in TensorFlow of a tensor of `shape` in torch."""
    if place.axes is None:
        return shape
    if sorted(place.axes) != list(range(len(shape))):
        raise BadInput(
            f"{place.key!r} is {list(shape)}, which has no axes {list(place.axes)}; it is of "
            "another model"
        )
    return tuple(shape[axis] for axis in numpy.argsort(place.axes))


class _Open:
    """A chunk whose rows are read from front to back."""

    def __init__(self, fqn: str, chunk: Chunk, dtype: str) -> None:
        self._chunk, self._dtype = chunk, dtype
        self._where = f"{chunk.path}, chunk at byte {chunk.offset} ({fqn!r})"
        start, shape = chunk.start or (0,), chunk.shape or (1,)
        self.piece = Piece(start, shape, 0, 0, 0, 0)
        self._values: Optional[int] = None  # where they begin in the file
        self._loaded: Optional[numpy.ndarray] = None

    def overlap(self, first: int, last: int) -> Tuple[int, int]:
        """The rows among first..last that it has."""
        start, count = self.piece.start[0], self.piece.shape[0]
        return max(first, start), min(last, start + count)

    def rows(self, begin: int, end: int) -> numpy.ndarray:
        """Its rows begin..end, numbered as in the tensor."""
        if self._values is None and self._loaded is None:
            self._find()
        first = begin - self.piece.start[0]
        if self._loaded is not None:
            values = self._loaded[first : first + end - begin]
            # Its last row: nobody asks again, and a loaded chunk may be large.
            if end == self.piece.start[0] + self.piece.shape[0]:
                self._loaded = None
            return values
        assert self._values is not None
        shape = (end - begin, *self.piece.shape[1:])
        out = numpy.empty(shape, number_type(self._dtype))
        row = math.prod(shape[1:]) * out.itemsize
        with open(self._chunk.path, "rb", buffering=0) as file:
            file.seek(self._values + first * row)
            if file.readinto(out.reshape(-1).view(numpy.uint8).data) != out.nbytes:
                raise BadInput(f"{self._where} ends before its last row; the file is truncated")
        return out

    def _find(self) -> None:
        """Finds the values in the file, or loads them where they do not stand row by row."""
        try:
            # On the meta device a tensor has sizes and strides, and no values.
            empty = self._load("meta")
            if empty.is_contiguous() and empty.storage_offset() == 0:
                self._values = self._contents()
            if self._values is None:
                self._loaded = as_array(self._load("cpu").contiguous().reshape(self.piece.shape))
        except BadInput:
            raise
        except Exception as error:  # torch raises what its unpickler raises
            raise BadInput(f"{self._where}: {words_of(error)}") from error

    def _load(self, device: str) -> torch.Tensor:
        with self._opened() as view:
            tensor = torch.load(view, map_location=device, weights_only=True)
        expected = (self._dtype, self._chunk.shape)
        found = (dtype_name(tensor.dtype), tuple(tensor.shape))
        if found != expected:
            raise BadInput(f"{self._where} is {found}, expected {expected}")
        loaded: torch.Tensor = tensor
        return loaded

    def _opened(self) -> ContextManager[BinaryIO]:
        """Its `torch.save`, as a file."""
        return part_of_file(self._chunk.path, self._chunk.offset, self._chunk.length)

    def _contents(self) -> Optional[int]:
        """The offset of the values in the file; None where they cannot be read in place."""
        with self._opened() as view, zipfile.ZipFile(view) as archive:
            records = {one.filename.partition("/")[2]: one for one in archive.infolist()}
            record = records["data/0"]
            order = archive.read(records["byteorder"].filename) if "byteorder" in records else b""
            view.seek(record.header_offset)
            name, more = struct.unpack_from("<HH", view.read(_LOCAL_HEADER), _LOCAL_HEADER - 4)
        begin = record.header_offset + _LOCAL_HEADER + name + more
        size = math.prod(self.piece.shape) * number_type(self._dtype).itemsize
        # A view's storage has other values too; TensorFlow's order needs plain little-endian bytes.
        if record.file_size != size or record.compress_type or order not in (b"", b"little"):
            return None
        return self._chunk.offset + begin
