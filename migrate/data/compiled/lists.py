"""Some of many lists: Arrow's `take` of lists needs several times as long."""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled


@compiled
def taken(offsets, places):
    """The lists at these places, one after the other.

    Their offsets, int32 [n + 1], and which values they hold, int64 [values].

    Args:
        offsets: int32 [lists + 1].
        places: int64 [n], each from 0.
    """
    begins, size = numpy.empty(len(places) + 1, numpy.int32), 0
    begins[0] = 0
    for k in range(len(places)):
        size += offsets[places[k] + 1] - offsets[places[k]]
        begins[k + 1] = size
    # The values' places rather than the values, whose copying LLVM makes a call for each list.
    values, at = numpy.empty(size, numpy.int64), 0
    for k in range(len(places)):
        for place in range(offsets[places[k]], offsets[places[k] + 1]):
            values[at] = place
            at += 1
    return begins, values
