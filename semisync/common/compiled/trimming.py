"""White space at the ends of strings, and their characters."""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled, inlined


@inlined
def is_space(byte):
    """Whether a byte is ASCII white space, as C's isspace says."""
    return byte == 32 or (byte >= 9 and byte <= 13)


@inlined
def strip(data, start, end):
    """The span without white space at both ends."""
    while start < end and is_space(data[start]):
        start += 1
    while start < end and is_space(data[end - 1]):
        end -= 1
    return start, end


@compiled
def stripped(data, offsets):
    """The span of each string without white space at its ends: starts and ends, int64 [n]."""
    starts = numpy.empty(len(offsets) - 1, numpy.int64)
    ends = numpy.empty(len(offsets) - 1, numpy.int64)
    for i in range(len(starts)):
        starts[i], ends[i] = strip(data, offsets[i], offsets[i + 1])
    return starts, ends


@compiled
def characters(data, offsets):
    """How many bytes of each string do not continue a UTF-8 character, int64 [n]."""
    out = numpy.zeros(len(offsets) - 1, numpy.int64)
    for i in range(len(out)):
        for at in range(offsets[i], offsets[i + 1]):
            out[i] += data[at] & 0xC0 != 0x80
    return out
