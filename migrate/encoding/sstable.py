"""LevelDB tables: the sorted key-value files of a checkpoint's index, or of a whole V1 checkpoint.

Layout of the file, back to front:

    footer    48 bytes: two block handles (metaindex, index) padded to 40 bytes, then the magic
    index     a block whose values are the handles of the data blocks
    data      blocks of entries in ascending order of their keys, across blocks too

A handle is two varints, offset and size. Each block is followed by a type byte (0 raw, 1 snappy)
and the masked crc32c of contents and type. Inside a block a key shares a prefix with the one
before it; the block ends with its restart points and their count, four bytes each.
Source: https://github.com/google/leveldb/blob/main/doc/table_format.md
"""

from __future__ import annotations

import bisect
from typing import Iterator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.encoding import crc32c, snappy
from migrate.encoding.wire import varint
from migrate.storage.files import StoredFile, open_file
from semisync.common.errors import BadInput

TABLE_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")

_FOOTER = 48
_TRAILER = 5
# TensorFlow closes a block at 256 KiB; one entry, a protobuf below 2 GiB, may make it longer.
_MAX_BLOCK = (2 << 30) + (1 << 20)


class _Handle(NamedTuple):
    offset: int
    size: int


class Table:
    """An open table. Every block is checked when it is read; one is held at a time."""

    def __init__(self, path: str) -> None:
        self._file = open_file(path)
        self.path = path
        self.size = self._file.size
        self._lasts: List[bytes] = []  # a key at or after the last one of each block
        self._blocks: List[_Handle] = []
        for last, value in _entries(_block(self._file, _index_handle(self._file)), path):
            self._lasts.append(bytes(last))
            self._blocks.append(_handle(value, 0, path)[0])

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __iter__(self) -> Iterator[Tuple[bytes, memoryview]]:
        """Yields the (key, value) pairs in ascending order of the keys."""
        last = None
        for handle in self._blocks:
            for key, value in _entries(_block(self._file, handle), self.path):
                if last is not None and key <= last:
                    raise BadInput(f"{self.path}: key {key!r} comes after {last!r}, out of order")
                last = key
                yield key, value

    def get(self, key: bytes) -> Optional[memoryview]:
        """The value of `key`, or None; reads one block."""
        number = bisect.bisect_left(self._lasts, key)
        if number == len(self._blocks):
            return None
        entries = _entries(_block(self._file, self._blocks[number]), self.path)
        return next((value for stored, value in entries if stored == key), None)


def read_table(path: str) -> Iterator[Tuple[bytes, bytes]]:
    """Yields the (key, value) pairs of the table in ascending order of the keys."""
    table = Table(path)
    try:
        for key, value in table:
            yield key, bytes(value)
    finally:
        table.close()


def ends_like_a_table(path: str) -> bool:
    """Whether the file at `path` has a table's magic number."""
    with StoredFile(path) as file:
        return file.size >= 8 and file.read(file.size - 8, 8, path) == TABLE_MAGIC


def _index_handle(file: StoredFile) -> _Handle:
    path = file.path
    if file.size < _FOOTER:
        raise BadInput(
            f"{path} has {file.size} bytes, fewer than the {_FOOTER} of a table's footer"
        )
    footer = memoryview(file.read(file.size - _FOOTER, _FOOTER, path))
    if bytes(footer[-8:]) != TABLE_MAGIC:
        raise BadInput(
            f"{path} does not end like a checkpoint's index (magic {bytes(footer[-8:]).hex()}, "
            f"expected {TABLE_MAGIC.hex()}); it is truncated or another kind of file"
        )
    _metaindex, position = _handle(footer, 0, path)
    index, _end = _handle(footer, position, path)
    return index


def _handle(data: memoryview, position: int, path: str) -> Tuple[_Handle, int]:
    offset, position = varint(data, position, path)
    size, position = varint(data, position, path)
    return _Handle(offset, size), position


def _block(file: StoredFile, handle: _Handle) -> memoryview:
    where = f"{file.path}: block at byte {handle.offset}"
    if handle.size > _MAX_BLOCK or handle.offset + handle.size + _TRAILER > file.size - _FOOTER:
        raise BadInput(f"{where} of {handle.size} bytes does not fit into the file's {file.size}")
    stored = memoryview(file.read(handle.offset, handle.size + _TRAILER, where))
    actual = crc32c.masked(crc32c.extend(0, numpy.frombuffer(stored[:-4], numpy.uint8)))
    expected = int.from_bytes(stored[-4:], "little")
    if actual != expected:
        raise BadInput(f"{where} has crc32c {actual:08x}, expected {expected:08x}; it is corrupt")
    kind = stored[-_TRAILER]
    if kind == 0:
        return stored[:-_TRAILER]
    if kind == 1:
        return memoryview(snappy.decompress(stored[:-_TRAILER], where))
    raise BadInput(f"{where} has compression type {kind}; known are 0 (raw) and 1 (snappy)")


def _entries(block: memoryview, path: str) -> Iterator[Tuple[bytes, memoryview]]:
    """The entries of one block; its restart points are only for binary search."""
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise BadInput(f"{path}: a block of {len(block)} bytes claims {restarts} restart points")
    view = block[:end]
    position, key = 0, b""
    while position < end:
        shared, position = varint(view, position, path)
        unshared, position = varint(view, position, path)
        length, position = varint(view, position, path)
        if shared > len(key) or unshared + length > end - position:
            raise BadInput(f"{path}: an entry at byte {position} ends beyond its block")
        key = key[:shared] + bytes(block[position : position + unshared])
        position += unshared
        yield key, block[position : position + length]
        position += length
