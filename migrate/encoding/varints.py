"""Many varints at once: seven bits a byte, least significant first, the last byte below 128."""

from __future__ import annotations

from typing import Tuple

import numpy

_MAX_VARINT = 10


def decode(raw: numpy.ndarray, most: int) -> Tuple[numpy.ndarray, int]:
    """The first varints of `raw` (uint8 [n]): uint64 [at most `most`], and the bytes they take.

    A varint that is cut short at the end is left for the next call; one of more than ten bytes
    ends what is decoded, so that no progress (0 bytes) means damage where 10 bytes were given.
    """
    ends = numpy.flatnonzero(raw < 0x80)[:most]
    starts = numpy.concatenate([[0], ends + 1])[:-1]
    widths = ends - starts + 1
    overlong = numpy.flatnonzero(widths > _MAX_VARINT)
    if len(overlong):
        ends, starts, widths = (one[: overlong[0]] for one in (ends, starts, widths))
    if not len(ends):
        return numpy.empty(0, numpy.uint64), 0
    used = int(ends[-1]) + 1
    bits = (raw[:used] & 0x7F).astype(numpy.uint64)
    shifts = 7 * (numpy.arange(used) - numpy.repeat(starts, widths)).astype(numpy.uint64)
    return numpy.add.reduceat(bits << shifts, starts), used
