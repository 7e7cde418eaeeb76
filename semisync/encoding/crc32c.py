"""CRC-32C (Castagnoli) as TensorFlow and LevelDB store it.

A crc that stands beside the data it covers is stored masked, rotated right by 15 bits plus a
constant, because the crc of data that holds crcs is weak.
Source: tensorflow/core/lib/hash/crc32c.h

The library is imported when the first crc is computed, so that `--help` needs no extra.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Iterable, List

import numpy

_MASK_DELTA = 0xA282EAD8
_PIECE = 1 << 20  # bytes per call: the library holds the interpreter's lock while it works


def extend(crc: int, data: numpy.ndarray) -> int:
    """Extends `crc` by `data` (uint8, one-dimensional, contiguous): the crc of both together."""
    import google_crc32c

    for start in range(0, data.size, _PIECE):
        crc = google_crc32c.extend(crc, data[start : start + _PIECE])
    return crc


def masked(crc: int) -> int:
    """`crc` as it is stored."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def masked_value(data: bytes) -> int:
    """The stored form of the crc of `data`."""
    import google_crc32c

    return masked(google_crc32c.value(data))


def masked_values(pieces: Iterable[bytes]) -> numpy.ndarray:
    """The stored forms of the crcs of many pieces: uint64."""
    import google_crc32c

    crcs = numpy.fromiter(map(google_crc32c.value, pieces), numpy.uint64)
    masked_ones: numpy.ndarray = ((crcs >> 15 | crcs << 17) + _MASK_DELTA) & 0xFFFFFFFF
    return masked_ones


def combine(first: int, second: int, length: int) -> int:
    """The crc of a + b, from the crc of each and the length of b in bytes.

    A crc is linear over GF(2): b adds its own crc, and shifts that of a by 8 * length zero bits.
    That shift is a matrix, applied here by the powers of two in `length`.
    """
    power = 0
    while length:
        if length & 1:
            first = _times(_zeros(power), first)
        length >>= 1
        power += 1
    return first ^ second


@lru_cache(maxsize=None)
def _zeros(power: int) -> List[int]:
    """The effect of 2**power zero bytes on each of the 32 bits of a crc."""
    import google_crc32c

    if power == 0:  # the crc of a byte of zero, without the inversions at both ends
        return [google_crc32c.extend(bit ^ 0xFFFFFFFF, b"\0") ^ 0xFFFFFFFF for bit in _BITS]
    half = _zeros(power - 1)
    return [_times(half, column) for column in half]


_BITS = [1 << bit for bit in range(32)]


def _times(matrix: List[int], vector: int) -> int:
    product = 0
    for bit, column in zip(_BITS, matrix):
        if vector & bit:
            product ^= column
    return product
