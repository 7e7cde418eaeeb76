"""LevelDB tables: the sorted key-value files of a checkpoint's index, or of a whole V1 checkpoint.

Layout of the file, back to front:

    footer    48 bytes: two block handles (metaindex, index) padded to 40 bytes, then the magic
    index     a block whose values are the handles of the data blocks
    data      blocks of entries in ascending order of their keys, across blocks too

A handle is two varints, offset and size. Each block is followed by a type byte (0 raw, 1 snappy)
and the masked crc32c of contents and type. Inside a block a key shares a prefix with the one
before it; the block ends with its restart points and their count, four bytes each.

So a long key may take only a few bytes of the file. The memory that a table takes is bounded while
it is read, by limits that no table of TensorFlow's reaches: see the constants.
Source: https://github.com/google/leveldb/blob/main/doc/table_format.md
"""

from __future__ import annotations

import bisect
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from semisync.common.errors import BadInput
from semisync.encoding import crc32c, snappy
from semisync.encoding.wire import varint
from semisync.storage.files import StoredFile, open_file

TABLE_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")

_FOOTER = 48
_TRAILER = 5
# TensorFlow closes a block at 256 KiB; one entry, a protobuf below 2 GiB, may make it longer.
_CLOSES = 256 << 10
_MAX_BLOCK = (2 << 30) + (1 << 20)
# TensorFlow sets no limit to a name. It is a path, as a file's is, of which Linux takes 4096 bytes;
# the key of a slice writes some bytes twice.
_MAX_KEY = 8 << 10
_MAX_KEYS = (
    128 << 20
)  # bytes of all of a table's keys, which a reader holds: a million of 128 bytes
_HELD = 1 << 20  # bytes of a block whose entries are kept for the next look-up


class _Handle(NamedTuple):
    offset: int
    size: int


class Table:
    """An open table. Every block is checked when it is read; one is held at a time.

    Raises:
        BadInput: damage, or a cost above that of any table that TensorFlow wrote.
    """

    def __init__(self, path: str) -> None:
        self._file = open_file(path)
        self.path = path
        self.size = self._file.size
        self._lasts: List[bytes] = []  # a key at or after the last one of each block
        self._blocks: List[_Handle] = []
        self._held: Tuple[int, Dict[bytes, memoryview]] = (-1, {})  # a block's number, its entries
        keys = _Keys(path)
        for last, value in _entries(_block(self._file, _index_handle(self._file)), path):
            keys.add(last)
            self._lasts.append(last)
            self._blocks.append(_handle(value, 0, path)[0])

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __iter__(self) -> Iterator[Tuple[bytes, memoryview]]:
        """Yields the (key, value) pairs in ascending order of the keys."""
        last, keys = None, _Keys(self.path)
        for handle in self._blocks:
            for key, value in _entries(_block(self._file, handle), self.path, _CLOSES):
                keys.add(key)
                if last is not None and key <= last:
                    raise BadInput(f"{self.path}: key {key!r} comes after {last!r}, out of order")
                last = key
                yield key, value

    def get(self, key: bytes) -> Optional[memoryview]:
        """The value of `key`, or None; reads one block."""
        number = bisect.bisect_left(self._lasts, key)
        if number == len(self._blocks):
            return None
        if number == self._held[0]:
            return self._held[1].get(key)
        block = _block(self._file, self._blocks[number])
        entries = _entries(block, self.path, _CLOSES)
        if len(block) > _HELD:
            return next((value for stored, value in entries if stored == key), None)
        self._held = (number, dict(entries))
        return self._held[1].get(key)


class _Keys:
    """Adds up the keys that a reader of a table holds."""

    def __init__(self, path: str) -> None:
        self._path, self._bytes = path, 0

    def add(self, key: bytes) -> None:
        """Raises BadInput where the keys are more than a table has."""
        self._bytes += len(key)
        if self._bytes > _MAX_KEYS:
            raise BadInput(
                f"{self._path} spells out names of more than {_MAX_KEYS >> 20} MiB; TensorFlow did "
                "not write it"
            )


def read_table(path: str, most: int = _MAX_BLOCK) -> Iterator[Tuple[bytes, bytes]]:
    """Yields the (key, value) pairs of the table in ascending order of the keys.

    Args:
        most: the bytes that the file may have.
    """
    table = Table(path)
    try:
        if table.size > most:
            raise BadInput(f"{path} has {table.size} bytes; no checkpoint's index has over {most}")
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


def _entries(
    block: memoryview, path: str, closes: int = _MAX_BLOCK
) -> Iterator[Tuple[bytes, memoryview]]:
    """The entries of one block; its restart points are only for binary search.

    Args:
        closes: bytes of the block after which no entry begins.
    """
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise BadInput(f"{path}: a block of {len(block)} bytes claims {restarts} restart points")
    view = block[:end]
    position, key = 0, b""
    while position < end:
        if position >= closes:
            raise BadInput(
                f"{path}: a block goes on after {closes} bytes, where TensorFlow ends it"
            )
        shared, position = varint(view, position, path)
        unshared, position = varint(view, position, path)
        length, position = varint(view, position, path)
        if shared > len(key) or unshared + length > end - position:
            raise BadInput(f"{path}: an entry at byte {position} ends beyond its block")
        if shared + unshared > _MAX_KEY:
            raise BadInput(
                f"{path}: a name has {shared + unshared} bytes, expected at most {_MAX_KEY}"
            )
        key = key[:shared] + bytes(block[position : position + unshared])
        position += unshared
        yield key, block[position : position + length]
        position += length
