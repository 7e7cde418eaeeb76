"""Sparse ids as bags, as safe_embedding_lookup_sparse makes them, and sums over bags."""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled


@compiled
def filled(rows, ids, count):
    """The ids of each row without the negative ones, and one 0 for a row that has none.

    Returns int64 ids, int64 [count + 1] where each row begins, bool [count] which rows have none,
    and whether all rows are from 0 to before `count`.

    Args:
        rows, ids: int64 [n], in any order of the rows, which keep the order of their ids.
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


@compiled
def add_rows(rows, places, out):
    """Adds each of float rows [n, dim] to the row of `out` at its place, in their order."""
    for i in range(len(places)):
        place = places[i]
        for k in range(rows.shape[1]):
            out[place, k] += rows[i, k]


@compiled
def spread(bags, bounds, places, weights, out):
    """Adds each of float bags [bags, dim], times the weight of each id that it has, to the row of
    `out` at the id's place: the gradient of a weighted sum over bags.

    Args:
        bounds: int64 [bags + 1], where the ids of each bag begin.
        places, weights: of each id.
    """
    for bag in range(len(bags)):
        for i in range(bounds[bag], bounds[bag + 1]):
            place, weight = places[i], weights[i]
            for k in range(bags.shape[1]):
                out[place, k] += weight * bags[bag, k]
