"""Protocol buffers' wire format, read and written without generated code.

A varint is an integer of seven bits per byte, least significant first; its last byte is below 128.
A message is a run of fields; a field is a varint `number << 3 | wire type` and its value:

    0  varint                       -> int, unsigned (see `signed`)
    1  eight bytes, little-endian   -> int
    2  varint length, then bytes    -> memoryview
    5  four bytes, little-endian    -> int

Unknown fields are the caller's to skip. Every length is checked against the bytes left, so that a
damaged message ends in BadInput and never in a read beyond its end or a large allocation.
A field with its type's default value is left out when written, as proto3 does, except in a
`message_field`.
Source: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple, Union

import numpy

from semisync.common.errors import BadInput

_VARINT, _BYTES, _FOUR_BYTES = 0, 2, 5
Value = Union[int, memoryview]
_MAX_VARINT = 10


def varint(data: memoryview, position: int, where: str) -> Tuple[int, int]:
    """One varint of at most 64 bits at `position`: its value and the position after it."""
    value = 0
    for count, byte in enumerate(data[position : position + _MAX_VARINT]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            # The tenth byte has bits beyond the 64th, which protobuf drops, too.
            return value & 0xFFFFFFFFFFFFFFFF, position + count + 1
    raise BadInput(f"{where}: a number is cut short at byte {position}; the file is damaged")


def encode_varint(value: int) -> bytes:
    """The bytes of a number that is not negative."""
    encoded = b""
    while value > 127:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


def varints(raw: numpy.ndarray, most: int) -> Tuple[numpy.ndarray, int]:
    """The first varints of `raw` (uint8 [n]): uint64 [at most `most`], and the bytes they take.

    A varint cut short at the end is left for the next call. One of more than ten bytes ends the
    decoding, so that no progress (0 bytes) on 10 bytes or more means damage.
    """
    ends = numpy.flatnonzero(raw < 0x80)[:most]
    starts = numpy.concatenate([[0], ends + 1])[:-1]
    widths = ends - starts + 1
    overlong = numpy.flatnonzero(widths > _MAX_VARINT)
    if len(overlong):
        ends, starts, widths = (column[: overlong[0]] for column in (ends, starts, widths))
    if not len(ends):
        return numpy.empty(0, numpy.uint64), 0
    used = int(ends[-1]) + 1
    bits = (raw[:used] & 0x7F).astype(numpy.uint64)
    shifts = 7 * (numpy.arange(used) - numpy.repeat(starts, widths)).astype(numpy.uint64)
    # The parts of a number share no bit: their sum is their union.
    return numpy.add.reduceat(bits << shifts, starts), used


def signed(value: int) -> int:
    """An int64 or int32 field, which travels as a 64-bit two's complement."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: memoryview, where: str) -> Iterator[Tuple[int, Value]]:
    """Yields (field number, value) in the order of the message; `where` names it in errors."""
    position, end = 0, len(data)
    while position < end:
        key, position = varint(data, position, where)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = varint(data, position, where)
            yield number, value
            continue
        if kind == 2:
            length, position = varint(data, position, where)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:  # 3 and 4, groups, which proto3 does not have, or none at all
            raise BadInput(f"{where}: wire type {kind} at byte {position} is not a protobuf's")
        if number == 0 or length > end - position:
            raise BadInput(f"{where}: a field at byte {position} ends beyond its message")
        piece = data[position : position + length]
        position += length
        yield number, piece if kind == 2 else int.from_bytes(piece, "little")


def message(value: Value, where: str) -> memoryview:
    """`value` as the bytes of a message or string; BadInput when the field is a number."""
    if isinstance(value, int):
        raise BadInput(f"{where}: found a number where a message was expected")
    return value


def number(value: Value, where: str) -> int:
    """`value` as a signed number; BadInput when the field is a message."""
    if not isinstance(value, int):
        raise BadInput(f"{where}: found a message where a number was expected")
    return signed(value)


def tensor_shape(data: memoryview, where: str) -> Optional[List[int]]:
    """The sizes in a TensorShapeProto {2 dim {1 size}, 3 unknown_rank}, if any; unknown: < 0."""
    sizes = []
    for field, value in fields(data, where):
        if field == 3 and value:
            return None
        if field == 2:
            sizes.append(number(dict(fields(message(value, where), where)).get(1, 0), where))
    return sizes


def text(value: Value, where: str) -> str:
    """`value` as UTF-8 text."""
    try:
        return str(bytes(message(value, where)), "utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: a name is not UTF-8 ({error.reason})") from error


def numbers(value: Value, where: str) -> List[int]:
    """A repeated varint field, packed or not, as signed numbers."""
    if isinstance(value, int):
        return [signed(value)]
    packed, position = [], 0
    while position < len(value):
        item, position = varint(value, position, where)
        packed.append(signed(item))
    return packed


def varint_field(number: int, value: int) -> bytes:
    """A number; negative ones as int64."""
    return _key(number, _VARINT) + encode_varint(value & (1 << 64) - 1) if value else b""


def fixed32_field(number: int, value: int) -> bytes:
    """A number of four bytes."""
    return _key(number, _FOUR_BYTES) + value.to_bytes(4, "little") if value else b""


def message_field(number: int, content: bytes) -> bytes:
    """A message that is there, even without fields."""
    return _key(number, _BYTES) + encode_varint(len(content)) + content


def present_varint(number: int, value: int) -> bytes:
    """A number of a oneof, written even if 0."""
    return _key(number, _VARINT) + encode_varint(value & (1 << 64) - 1)


def _key(number: int, kind: int) -> bytes:
    return encode_varint(number << 3 | kind)
