"""TFRecord files: their framing, and how TensorFlow compresses them by snappy.

    record   length (8 bytes), its masked crc32c (4), data, its masked crc32c (4)
    snappy   length of a block (4 bytes, big-endian), the block; decompressed, they are the records

No length is trusted before its crc32c was checked, and memory grows only by what the file holds.
Source: tensorflow/core/lib/io/record_reader.cc and lib/io/snappy/snappy_outputbuffer.cc
"""

from __future__ import annotations

import struct
from typing import Callable, Iterator, List, Tuple

import numpy

from migrate.encoding import crc32c, snappy
from migrate.storage.files import StoredFile
from semisync.common.errors import BadInput

_MAX_RECORD = 1 << 28  # bytes; a longer record is taken for damage
_MAX_BLOCK = 64 << 20  # bytes; TensorFlow's own blocks have 256 KiB
_READ = 1 << 20
_FRAME, _HEAD = 16, 12  # bytes around a record's data, and before it
_LENGTH, _CRC = struct.Struct("<QI"), struct.Struct("<I")
_WRONG = {
    "length": "is cut short or corrupt in its length, or this is not a TFRecord file",
    "end": "is cut short",
    "data": "is corrupt, its checksum does not match",
}


def frames(read: Callable[[int], bytes], path: str) -> Iterator[memoryview]:
    """The records of a file, checked.

    read: gives the next bytes, as many as asked for, fewer only at the end. path: names the file
    in errors.
    Raises BadInput with the number of the record, from 1, if it is damaged or cut short.
    """
    for data, starts, ends in pieces_of(read, path):
        for start, end in zip(starts.tolist(), ends.tolist()):
            yield data.data[start:end]


def pieces_of(
    read: Callable[[int], bytes], path: str, first: int = 1
) -> Iterator[Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    """The records of a file, many at a time: bytes (uint8), and where each lies in them (int64).

    first: the number of the first record; read, path, errors: as of `frames`.
    """
    held, number, ended = b"", first, False
    while not ended:
        more = read(max(_READ, len(held)))  # of a long record, twice as much each time
        ended, held = not more, held + more
        starts, ends, at, wrong = _whole(held)
        if starts:
            yield numpy.frombuffer(held, numpy.uint8), numpy.array(starts), numpy.array(ends)
            number += len(starts)
        held = held[at:]
        if wrong or (ended and held):
            raise _damaged(path, number, wrong or ("length" if len(held) < _HEAD else "end"))


def starts_of(read_at: Callable[[int], bytes], path: str, size: int) -> List[int]:
    """Where each record of a file of `size` bytes begins; what they hold is not checked.

    read_at: gives the bytes from a place on, at least the head of a record, fewer only at the end.
    Raises BadInput as `frames`.
    """
    found: List[int] = []
    at = 0
    while at < size:
        data, began = read_at(at), at
        while at - began + _HEAD <= len(data):
            length = _length(data, at - began)
            if length < 0:
                break
            found.append(at)
            at += _FRAME + length
        else:
            if at > began:
                continue
        raise _damaged(path, len(found) + 1, "length")
    if at > size:
        raise _damaged(path, len(found), "end")
    return found


def _whole(data: bytes) -> Tuple[List[int], List[int], int, str]:
    """Where the records lie that are whole, where the next begins, and what is wrong with it."""
    starts: List[int] = []
    ends: List[int] = []
    at = 0
    while at + _HEAD <= len(data):
        length = _length(data, at)
        if length < 0:
            return starts, ends, at, "length"
        start, end = at + _HEAD, at + _HEAD + length
        if end + 4 > len(data):
            break
        if crc32c.masked_value(data[start:end]) != _CRC.unpack_from(data, end)[0]:
            return starts, ends, at, "data"
        starts.append(start)
        ends.append(end)
        at = end + 4
    return starts, ends, at, ""


def _length(data: bytes, at: int) -> int:
    """The length of the record whose head stands at `at`, or -1 if it is damaged."""
    length, crc = _LENGTH.unpack_from(data, at)
    right = length <= _MAX_RECORD and crc32c.masked_value(data[at : at + 8]) == crc
    return int(length) if right else -1


def _damaged(path: str, number: int, wrong: str) -> BadInput:
    return BadInput(f"{path}: record {number} {_WRONG[wrong]}")


def read_records(path: str, compressed: bool = False) -> Iterator[memoryview]:
    """The records of the file at `path`, checked as by `frames`.

    compressed: by snappy. Memory: a record, and a block or a MiB.
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
