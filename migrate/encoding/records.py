"""TFRecord files, plain or compressed by snappy, as a stream.

    record   length (8 bytes), its masked crc32c (4), data, its masked crc32c (4)
    snappy   length of a block (4 bytes, big-endian), the block; unfolded, they are the records

Source: tensorflow/core/lib/io/record_reader.cc and lib/io/snappy/snappy_outputbuffer.cc
"""

from __future__ import annotations

from typing import Iterator

from migrate.encoding import crc32c, snappy
from migrate.storage.files import StoredFile
from semisync.common.errors import BadInput

_MAX_RECORD = 64 << 20  # bytes of one entry of a table
_MAX_BLOCK = 64 << 20  # bytes; TensorFlow's own are of 256 KiB
_READ = 1 << 20


def records(path: str, compressed: bool = False) -> Iterator[memoryview]:
    """The records of the file at `path`, checked. compressed: by snappy. Memory: a record, and a
    block or a MiB. BadInput where the file is damaged or cut short."""
    with StoredFile(path) as file:
        stream = _Stream(_blocks(file, path) if compressed else _pieces(file, path))
        while not stream.ended():
            where = f"{path}: record at byte {stream.position}"
            head = stream.take(12, where)
            if crc32c.masked_value(head[:8]) != int.from_bytes(head[8:], "little"):
                raise BadInput(f"{where}: its length is corrupt, or this is no TFRecord file")
            length = int.from_bytes(head[:8], "little")
            if length > _MAX_RECORD:
                raise BadInput(f"{where} has {length} bytes, more than an entry can")
            data = stream.take(length + 4, where)
            if crc32c.masked_value(data[:-4]) != int.from_bytes(data[-4:], "little"):
                raise BadInput(f"{where}: its crc32c is wrong; it is corrupt")
            yield memoryview(data)[:-4]


def _pieces(file: StoredFile, path: str) -> Iterator[bytes]:
    for start in range(0, file.size, _READ):
        yield file.read(start, min(_READ, file.size - start), path)


def _blocks(file: StoredFile, path: str) -> Iterator[bytes]:
    position = 0
    while position < file.size:
        where = f"{path}: snappy block at byte {position}"
        length = int.from_bytes(file.read(position, 4, where), "big")
        if length > _MAX_BLOCK:
            raise BadInput(f"{where} has {length} bytes; this is no file of TensorFlow's snappy")
        yield snappy.decompress(memoryview(file.read(position + 4, length, where)), where)
        position += 4 + length


class _Stream:
    """Bytes that come in pieces, taken in other sizes; position: of the next one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._piece, self._at = pieces, b"", 0
        self.position = 0

    def ended(self) -> bool:
        """Whether nothing is left."""
        while self._at == len(self._piece):
            piece = next(self._pieces, None)
            if piece is None:
                return True
            self._piece, self._at = piece, 0
        return False

    def take(self, size: int, where: str) -> bytes:
        """The next `size` bytes; BadInput where there are fewer."""
        found = bytearray()
        while len(found) < size:
            if self.ended():
                raise BadInput(f"{where}: the file ends after {len(found)} of {size} bytes")
            part = self._piece[self._at : self._at + size - len(found)]
            self._at += len(part)
            found += part
        self.position += size
        return bytes(found)
