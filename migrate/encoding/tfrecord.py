"""TFRecord files: their framing, and how TensorFlow compresses them by snappy.

    record   length (8 bytes), its masked crc32c (4), data, its masked crc32c (4)
    snappy   length of a block (4 bytes, big-endian), the block; decompressed, they are the records

No length is trusted before its crc32c was checked, and memory grows only by what the file holds.
Source: tensorflow/core/lib/io/record_reader.cc and lib/io/snappy/snappy_outputbuffer.cc
"""

from __future__ import annotations

import itertools
from typing import Callable, Iterator

from migrate.encoding import crc32c, snappy
from migrate.storage.files import StoredFile
from semisync.common.errors import BadInput

_MAX_RECORD = 1 << 28  # bytes; a longer record is taken for damage
_MAX_BLOCK = 64 << 20  # bytes; TensorFlow's own blocks have 256 KiB
_READ = 1 << 20


def frames(read: Callable[[int], bytes], path: str) -> Iterator[memoryview]:
    """The records of a file, checked.

    read: gives the next bytes, as many as asked for, fewer only at the end. path: names the file
    in errors.
    Raises BadInput with the number of the record, from 1, if it is damaged or cut short.
    """
    for number in itertools.count(1):
        where = f"{path}: record {number}"
        head = read(12)
        if not head:
            return
        length = int.from_bytes(head[:8], "little")
        if len(head) < 12 or not _matches(head[:8], head[8:]) or length > _MAX_RECORD:
            raise BadInput(
                f"{where} is cut short or corrupt in its length, or this is not a TFRecord file"
            )
        data, crc = read(length), read(4)
        if len(data) < length or len(crc) < 4:
            raise BadInput(f"{where} is cut short")
        if not _matches(data, crc):
            raise BadInput(f"{where} is corrupt, its checksum does not match")
        yield memoryview(data)


def read_records(path: str, compressed: bool = False) -> Iterator[memoryview]:
    """The records of the file at `path`, checked as by `frames`.

    compressed: by snappy. Memory: a record, and a block or a MiB.
    """
    with StoredFile(path) as file:
        pieces = _blocks(file, path) if compressed else _pieces(file, path)
        yield from frames(_Joined(pieces).read, path)


def _matches(data: bytes, crc: bytes) -> bool:
    return crc32c.masked_value(data) == int.from_bytes(crc, "little")


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
