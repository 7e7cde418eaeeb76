"""Snappy's raw format, decompressed in plain Python.

The index of a checkpoint is a few hundred kilobytes, and only TensorFlow before 1.2 compressed
it, so that clarity matters here more than speed.
Source: https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

from typing import Tuple

from migrate.encoding.wire import varint
from semisync.common.errors import BadInput

MAX_RATIO = 64  # a 3-byte copy yields at most 64 bytes, so a true ratio stays well below


def decompress(data: memoryview, where: str) -> bytes:
    """The uncompressed bytes; BadInput for anything that snappy cannot have written."""
    length, position = varint(data, 0, where)
    if length > MAX_RATIO * len(data):
        raise BadInput(f"{where}: a snappy block of {len(data)} bytes claims to hold {length}")
    out = bytearray()
    while position < len(data):
        tag = data[position]
        if tag & 3 == 0:
            size, position = _literal(data, position)
            out += data[position : position + size]
            position += size
        else:
            size, distance, position = _copy(data, position)
            _repeat(out, size, distance, where)
        if len(out) > length:
            break
    if len(out) != length or position != len(data):
        raise BadInput(f"{where}: a snappy block does not unfold to its {length} bytes")
    return bytes(out)


def _little(data: memoryview, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "little")


def _literal(data: memoryview, position: int) -> Tuple[int, int]:
    """Length of a literal and where its bytes start."""
    size = data[position] >> 2
    if size < 60:
        return size + 1, position + 1
    extra = size - 59
    return _little(data, position + 1, extra) + 1, position + 1 + extra


def _copy(data: memoryview, position: int) -> Tuple[int, int, int]:
    """Length and distance of a copy, and the position after it."""
    tag = data[position]
    if tag & 3 == 1:
        distance = (tag >> 5) << 8 | _little(data, position + 1, 1)
        return (tag >> 2 & 7) + 4, distance, position + 2
    width = 2 if tag & 3 == 2 else 4
    return (tag >> 2) + 1, _little(data, position + 1, width), position + 1 + width


def _repeat(out: bytearray, size: int, distance: int, where: str) -> None:
    """Appends `size` bytes that start `distance` before the end; they may overlap themselves."""
    if not 0 < distance <= len(out):
        raise BadInput(f"{where}: a snappy block refers to bytes before its own start")
    while size > 0:
        piece = out[len(out) - distance :][:size]
        out += piece
        size -= len(piece)
