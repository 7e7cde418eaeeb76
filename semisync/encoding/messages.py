"""Protocol buffers' wire format, written without generated code; `semisync.encoding.wire` reads it.

A field with its type's default value is left out, as proto3 does, except in a `message`.
"""

from __future__ import annotations

from semisync.encoding.wire import encode_varint

_VARINT, _BYTES, _FOUR_BYTES = 0, 2, 5


def varint_field(number: int, value: int) -> bytes:
    """A number; negative ones as int64."""
    return _key(number, _VARINT) + encode_varint(value & (1 << 64) - 1) if value else b""


def fixed32_field(number: int, value: int) -> bytes:
    """A number of four bytes."""
    return _key(number, _FOUR_BYTES) + value.to_bytes(4, "little") if value else b""


def message(number: int, content: bytes) -> bytes:
    """A message that is there, even without fields."""
    return _key(number, _BYTES) + encode_varint(len(content)) + content


def present_varint(number: int, value: int) -> bytes:
    """A number of a oneof, written even if 0."""
    return _key(number, _VARINT) + encode_varint(value & (1 << 64) - 1)


def _key(number: int, kind: int) -> bytes:
    return encode_varint(number << 3 | kind)
