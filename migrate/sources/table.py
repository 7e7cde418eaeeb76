"""LevelDB tables: the sorted key-value files that hold a checkpoint's index.

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

import os
from typing import BinaryIO, Iterator, NamedTuple, Tuple

from migrate.sources import crc32c, snappy
from migrate.sources.files import TABLE_MAGIC, open_regular
from migrate.sources.wire import varint
from semisync.errors import BadInput

_FOOTER = 48
_TRAILER = 5
# TensorFlow closes a block at 256 KiB; only one entry of unusual size makes it longer.
_MAX_BLOCK = 256 << 20


class _Handle(NamedTuple):
    offset: int
    size: int


def read_table(path: str) -> Iterator[Tuple[bytes, bytes]]:
    """Yields the (key, value) pairs of the table in ascending order of the keys."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        handle = _index_handle(file, size, path)
        last = None
        for _, value in _entries(_block(file, handle, size, path), path):
            data_handle, _end = _handle(memoryview(value), 0, path)
            for key, entry in _entries(_block(file, data_handle, size, path), path):
                if last is not None and key <= last:
                    raise BadInput(f"{path}: key {key!r} comes after {last!r}, out of order")
                last = key
                yield key, entry


def _index_handle(file: BinaryIO, size: int, path: str) -> _Handle:
    if size < _FOOTER:
        raise BadInput(f"{path} has {size} bytes, fewer than the {_FOOTER} of a table's footer")
    footer = memoryview(os.pread(file.fileno(), _FOOTER, size - _FOOTER))
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


def _block(file: BinaryIO, handle: _Handle, file_size: int, path: str) -> bytes:
    """The contents of one block, checked and uncompressed."""
    where = f"{path}: block at byte {handle.offset}"
    if handle.size > _MAX_BLOCK or handle.offset + handle.size + _TRAILER > file_size - _FOOTER:
        raise BadInput(f"{where} of {handle.size} bytes does not fit into the file's {file_size}")
    stored = os.pread(file.fileno(), handle.size + _TRAILER, handle.offset)
    if len(stored) != handle.size + _TRAILER:
        raise BadInput(f"{where} ends early; the file changed while it was read")
    found = crc32c.masked_value(stored[:-4])
    expected = int.from_bytes(stored[-4:], "little")
    if found != expected:
        raise BadInput(f"{where} has crc32c {found:08x}, expected {expected:08x}; it is corrupt")
    kind = stored[-_TRAILER]
    if kind == 0:
        return stored[:-_TRAILER]
    if kind == 1:
        return snappy.decompress(memoryview(stored)[:-_TRAILER], where)
    raise BadInput(f"{where} has compression type {kind}; known are 0 (raw) and 1 (snappy)")


def _entries(block: bytes, path: str) -> Iterator[Tuple[bytes, bytes]]:
    """The entries of one block; its restart points are only for binary search."""
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise BadInput(f"{path}: a block of {len(block)} bytes claims {restarts} restart points")
    view = memoryview(block)[:end]
    position, key = 0, b""
    while position < end:
        shared, position = varint(view, position, path)
        unshared, position = varint(view, position, path)
        length, position = varint(view, position, path)
        if shared > len(key) or unshared + length > end - position:
            raise BadInput(f"{path}: an entry at byte {position} ends beyond its block")
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + length]
        position += length
