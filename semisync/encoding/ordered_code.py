"""Keys of the slices of a partitioned variable in a checkpoint's index.

A key is, in "ordered code" (byte order equals value order):

    number 0, the variable's name, number of dimensions, then start and length of each dimension

    number          a byte that counts the value's bytes, then the value, big-endian
    string          bytes with 00 -> 00 ff and ff -> ff 00, then 00 01
    signed number   two's complement, big-endian, in the fewest bytes that leave room for the
                    length, which the leading bits encode (n ones and a zero for n bytes)

Source: tensorflow/core/lib/strings/ordered_code.cc and util/saved_tensor_slice_util.cc
"""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

FULL_LENGTH = -1  # TensorSlice::kFullExtent: the dimension is not cut


def slice_key(name: bytes, extents: Sequence[Tuple[int, Optional[int]]]) -> bytes:
    """Key of the slice of `name` with one (start, length) per dimension; None is a whole one."""
    parts = [_number(0), _string(name), _number(len(extents))]
    for start, length in extents:
        parts.append(_signed(start))
        parts.append(_signed(FULL_LENGTH if length is None else length))
    return b"".join(parts)


def _number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _string(value: bytes) -> bytes:
    escaped = b"".join(
        {0x00: b"\x00\xff", 0xFF: b"\xff\x00"}.get(byte, bytes([byte])) for byte in value
    )
    return escaped + b"\x00\x01"


def _signed(value: int) -> bytes:
    magnitude = ~value if value < 0 else value
    size = magnitude.bit_length() // 7 + 1  # each byte gives the length one bit
    # By XOR a negative number's leading ones become zeros, so that it sorts before the others.
    header = ((1 << size) - 1) << (8 * size - size)
    return (value % (1 << 8 * size) ^ header).to_bytes(size, "big")
