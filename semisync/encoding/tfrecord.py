"""TFRecord files: their framing, and how TensorFlow compresses them by snappy.

    record   length (8 bytes), its masked crc32c (4), data, its masked crc32c (4)
    snappy   length of a block (4 bytes, big-endian), the block; decompressed, they are the records

No length is trusted before its crc32c was checked, and memory grows only by what the file holds.
Source: tensorflow/core/lib/io/record_reader.cc and lib/io/snappy/snappy_outputbuffer.cc
"""

from __future__ import annotations

import struct
from typing import Callable, Iterator, Tuple

import numpy

from semisync.common.errors import BadInput
from semisync.encoding import crc32c, snappy
from semisync.storage.files import StoredFile

_MAX_RECORD = 1 << 28  # bytes; a longer record is taken for damage
_MAX_BLOCK = 64 << 20  # bytes; TensorFlow's own blocks have 256 KiB
_READ = 1 << 20
_FRAME, _HEAD, _CRC = 16, 12, 4  # bytes around a record's data, before it and behind it
_LENGTH = struct.Struct("<Q")
_WRONG = {
    "length": "is cut short or corrupt in its length, or this is not a TFRecord file",
    "end": "is cut short",
    "data": "is corrupt, its checksum does not match",
}


def frames(read: Callable[[int], bytes], path: str) -> Iterator[memoryview]:
    """The records of a file, checked.

    Args:
        read: function that returns the next bytes: the requested number, fewer only at the end.
        path: of the file, for errors.

    Raises:
        BadInput: a record is damaged or cut short; the message has its number, from 1.
    """
    for data, starts, ends in pieces_of(read, path):
        for start, end in zip(starts.tolist(), ends.tolist()):
            yield data.data[start:end]


def pieces_of(
    read: Callable[[int], bytes], path: str, first: int = 1
) -> Iterator[Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    """The records of a file, many at a time: bytes (uint8), and where each lies in them (int64).

    Args:
        read, path: as of `frames`.
        first: the number of the first record.

    Raises:
        BadInput: as `frames`.
    """
    held, number, ended = b"", first, False
    while not ended:
        more = read(max(_READ, len(held)))  # of a long record, twice as much each time
        ended, held = not more, held + more
        bounds, sound = _bounds(held)
        whole = bounds[: numpy.searchsorted(bounds, len(held), "right")]
        starts, ends = whole[:-1] + _HEAD, whole[1:] - _CRC
        stored = _values(held, ends, "<u4")
        due = crc32c.masked_values(
            map(held.__getitem__, map(slice, starts.tolist(), ends.tolist()))
        )
        wrong = numpy.flatnonzero(stored != due)
        right = int(wrong[0]) if len(wrong) else len(starts)
        if right:
            yield numpy.frombuffer(held, numpy.uint8), starts[:right], ends[:right]
            number += right
        held = held[int(whole[-1]) :]
        if len(wrong) or not sound or (ended and held):
            what = "data" if len(wrong) else "end" if sound and len(held) >= _HEAD else "length"
            raise _damaged(path, number, what)


def starts_of(read_at: Callable[[int], bytes], path: str, size: int) -> numpy.ndarray:
    """The offset of each record of a file of `size` bytes, int64; their contents are not checked.

    Args:
        read_at: function that returns the bytes from an offset on, at least the head of a record,
            fewer only at the end.

    Raises:
        BadInput: as `frames`.
    """
    found, number, at = [numpy.empty(0, numpy.int64)], 0, 0
    while at < size:
        bounds, sound = _bounds(read_at(at))
        found.append(bounds[:-1] + at)
        number += len(bounds) - 1
        if not sound or len(bounds) == 1:
            raise _damaged(path, number + 1, "length")
        at += int(bounds[-1])
    if at > size:
        raise _damaged(path, number, "end")
    return numpy.concatenate(found)


def _bounds(data: bytes) -> Tuple[numpy.ndarray, bool]:
    """The offsets of the records in `data`, int64 [records + 1], and whether all are intact.

    A record counts once its header is in `data`; those from the first damaged one on do not.
    """
    found, at, last = [], 0, len(data) - _HEAD
    while at <= last:
        found.append(at)
        # Capped: a corrupt length may not fit into the int64 of an offset.
        at += _FRAME + min(_LENGTH.unpack_from(data, at)[0], _MAX_RECORD + 1)
    bounds = numpy.array([*found, at], numpy.int64)
    # Records of one length share its checksum, which is then computed once.
    lengths, which = numpy.unique(_values(data, bounds[:-1], "<u8"), return_inverse=True)
    due = crc32c.masked_values(length.tobytes() for length in lengths)
    right = (due[which] == _values(data, bounds[:-1] + 8, "<u4")) & (lengths <= _MAX_RECORD)[which]
    return (bounds, True) if right.all() else (bounds[: int(right.argmin()) + 1], False)


def _values(data: bytes, places: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """The numbers at these places, wherever they are aligned."""
    kind = numpy.dtype(dtype)
    if not len(places):
        return numpy.empty(0, kind)
    every: numpy.ndarray = numpy.ndarray(len(data) - kind.itemsize + 1, kind, data, strides=(1,))
    return every[places]


def _damaged(path: str, number: int, wrong: str) -> BadInput:
    return BadInput(f"{path}: record {number} {_WRONG[wrong]}")


def read_records(path: str, compressed: bool = False) -> Iterator[memoryview]:
    """The records of the file at `path`, checked as by `frames`.

    Memory: a record, and a block or a MiB.

    Args:
        compressed: by snappy.
    """
    with StoredFile(path) as file:
        pieces = _blocks(file, path) if compressed else _pieces(file, path)
        yield from frames(_Joined(pieces).read, path)


def _pieces(file: StoredFile, path: str) -> Iterator[bytes]:
    for start in range(0, file.size, _READ):
        yield file.read(start, min(_READ, file.size - start), path)


def _blocks(file: StoredFile, path: str) -> Iterator[bytes]:
    position = 0
    while position < file.size:
        where = f"{path}: snappy block at byte {position}"
        length = int.from_bytes(file.read(position, 4, where), "big")
        if length > _MAX_BLOCK:
            raise BadInput(f"{where} has {length} bytes; TensorFlow did not write this file")
        yield snappy.decompress(memoryview(file.read(position + 4, length, where)), where)
        position += 4 + length


class _Joined:
    """A file whose bytes come in pieces of any size."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece, self._position = b"", 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer only at the end."""
        out = bytearray()
        while len(out) < size:
            if self._position == len(self._piece):
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._piece, self._position = piece, 0
            part = self._piece[self._position : self._position + size - len(out)]
            self._position += len(part)
            out += part
        return bytes(out)
