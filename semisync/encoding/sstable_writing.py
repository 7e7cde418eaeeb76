"""Writing LevelDB tables as TensorFlow writes a checkpoint's index, byte for byte.

`semisync.encoding.sstable` reads them and has the layout. The writer's own choices:

1. A data block ends after the entry with which it reaches 256 KiB; blocks are not compressed.
2. Every 16th key of a data block is written whole, every key of the index block.
3. The index block's key of a data block is the shortest that is at or after its last key and before
   the first of the next one.

Source: tensorflow/core/lib/io/table_builder.cc, block_builder.cc, table_options.h
"""

from __future__ import annotations

import os
from typing import BinaryIO, List, Optional

from semisync.encoding import crc32c
from semisync.encoding.sstable import TABLE_MAGIC
from semisync.encoding.wire import encode_varint

BLOCK_BYTES = 256 << 10

_RESTARTS = 16
_RAW = b"\0"  # the block's type
_HANDLES = 40  # bytes of the footer


class TableWriter:
    """Writes a table to `file`, a block at a time. Keys come in ascending order; then `finish`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._data, self._index = _Block(_RESTARTS), _Block(1)
        self._last = b""
        self._pending: Optional[bytes] = None  # handle of a block that the index does not have yet

    def add(self, key: bytes, value: bytes) -> None:
        """Adds an entry."""
        if self._pending is not None:
            self._index.add(_separator(self._last, key), self._pending)
            self._pending = None
        self._last = key
        self._data.add(key, value)
        if self._data.size >= BLOCK_BYTES:
            self._flush()

    def finish(self) -> None:
        """Writes the last block, and the footer."""
        self._flush()
        metaindex = self._write(_Block(_RESTARTS).finished())
        if self._pending is not None:
            self._index.add(_successor(self._last), self._pending)
        handles = metaindex + self._write(self._index.finished())
        self._file.write(handles.ljust(_HANDLES, b"\0") + TABLE_MAGIC)

    def _flush(self) -> None:
        if self._data.entries:
            self._pending = self._write(self._data.finished())
            self._data = _Block(_RESTARTS)

    def _write(self, block: bytes) -> bytes:
        """Writes a block; returns its handle."""
        crc = crc32c.masked_value(block + _RAW)
        self._file.write(block + _RAW + crc.to_bytes(4, "little"))
        handle = encode_varint(self._offset) + encode_varint(len(block))
        self._offset += len(block) + len(_RAW) + 4
        return handle


class _Block:
    """The entries of one block; one key in `restarts` is written whole."""

    def __init__(self, restarts: int) -> None:
        self._every = restarts
        self._data = bytearray()
        self._restarts: List[int] = [0]
        self._last = b""
        self.entries = 0

    @property
    def size(self) -> int:
        """Its size in bytes, once finished."""
        return len(self._data) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self.entries % self._every:
            shared = len(os.path.commonprefix([self._last, key]))
        elif self.entries:
            self._restarts.append(len(self._data))
        for length in (shared, len(key) - shared, len(value)):
            self._data += encode_varint(length)
        self._data += key[shared:] + value
        self._last = key
        self.entries += 1

    def finished(self) -> bytes:
        numbers = [*self._restarts, len(self._restarts)]
        return bytes(self._data) + b"".join(number.to_bytes(4, "little") for number in numbers)


def _separator(last: bytes, following: bytes) -> bytes:
    """The shortest key k, last <= k < following, as LevelDB finds it."""
    same = len(os.path.commonprefix([last, following]))
    if same < len(last) and last[same] < 0xFF and last[same] + 1 < following[same]:
        return last[:same] + bytes([last[same] + 1])
    return last


def _successor(last: bytes) -> bytes:
    """A short key at or after `last`."""
    for place, byte in enumerate(last):
        if byte < 0xFF:
            return last[:place] + bytes([byte + 1])
    return last
