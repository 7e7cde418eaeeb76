"""CRC-32C (Castagnoli) as TensorFlow and LevelDB store it.

A crc that stands beside the data it covers is stored masked, rotated right by 15 bits plus a
constant, because the crc of data that holds crcs is weak.
Source: tensorflow/core/lib/hash/crc32c.h
"""

from __future__ import annotations

import google_crc32c
import numpy

_MASK_DELTA = 0xA282EAD8
_PIECE = 1 << 20  # bytes a call: the library keeps the interpreter's lock while it works


def extend(crc: int, data: numpy.ndarray) -> int:
    """The crc of what `crc` covers followed by `data` (uint8, one-dimensional, contiguous)."""
    for start in range(0, data.size, _PIECE):
        crc = google_crc32c.extend(crc, data[start : start + _PIECE])
    return crc


def masked(crc: int) -> int:
    """`crc` as it is stored."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def masked_value(data: bytes) -> int:
    """The stored form of the crc of `data`."""
    return masked(google_crc32c.value(data))
