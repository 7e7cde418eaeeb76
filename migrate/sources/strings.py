"""String tensors of a tensor bundle.

    varint length of each element, the masked crc32c of the lengths, the bytes of all elements

The crc of the lengths covers each as four bytes, little-endian (eight where it needs them). The
crc of the entry covers those numbers, the stored four bytes of their crc, and the elements.
Source: WriteStringTensor in tensorflow/core/util/tensor_bundle/tensor_bundle.cc
"""

from __future__ import annotations

from typing import List

import google_crc32c
import numpy

from migrate.sources import crc32c
from migrate.sources.wire import varint
from semisync.errors import BadInput


def decode(data: bytes, count: int, expected_crc: int, where: str) -> numpy.ndarray:
    """The `count` elements as an object array [count] of bytes; `expected_crc` is masked."""
    view = memoryview(data)
    position, lengths = 0, []
    for _ in range(count):
        length, position = varint(view, position, where)
        lengths.append(length)
    start = position + 4
    if start + sum(lengths) != len(data):
        raise BadInput(
            f"{where} holds {len(data)} bytes, but its strings need {start + sum(lengths)}"
        )
    crc = _crc_of_lengths(lengths)
    stored = int.from_bytes(data[position:start], "little")
    if crc32c.masked(crc) != stored:
        raise BadInput(f"{where}: the crc32c of the string lengths is wrong; it is corrupt")
    crc = google_crc32c.extend(crc, data[position:])
    if crc32c.masked(crc) != expected_crc:
        raise BadInput(
            f"{where} has crc32c {crc32c.masked(crc):08x}, expected {expected_crc:08x}; "
            "it is corrupt"
        )
    out = numpy.empty(count, dtype=object)
    for index, length in enumerate(lengths):
        out[index] = data[start : start + length]
        start += length
    return out


def _crc_of_lengths(lengths: List[int]) -> int:
    return google_crc32c.value(
        b"".join(length.to_bytes(4 if length < 1 << 32 else 8, "little") for length in lengths)
    )
