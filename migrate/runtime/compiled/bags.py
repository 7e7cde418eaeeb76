"""Sparse ids as bags: what safe_embedding_lookup_sparse makes of them."""

from __future__ import annotations

import numpy

from migrate.runtime.compiled.jit import compiled


@compiled
def filled(rows, ids, count):
    """The ids of each row without the negative ones, and one 0 for a row that has none.

    rows, ids: int64 [n], in any order of the rows, which keep the order of their ids.
    Gives int64 ids, int64 [count + 1] where each row begins, bool [count] which rows have none, and
    whether all rows are within 0 and `count`.
    """
    bounds = numpy.zeros(count + 1, numpy.int64)
    empty = numpy.zeros(count, numpy.bool_)
    for i in range(len(rows)):
        if rows[i] < 0 or rows[i] >= count:
            return ids, bounds, empty, False
        if ids[i] >= 0:
            bounds[rows[i] + 1] += 1
    for row in range(count):
        empty[row] = bounds[row + 1] == 0
        bounds[row + 1] = bounds[row] + max(bounds[row + 1], 1)
    out = numpy.zeros(bounds[count], numpy.int64)
    place = bounds[:-1].copy()
    for i in range(len(rows)):
        if ids[i] >= 0:
            out[place[rows[i]]] = ids[i]
            place[rows[i]] += 1
    return out, bounds, empty, True
