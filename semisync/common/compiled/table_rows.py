"""Rows of several float32 tables in one call.

Tables are given by their addresses, int64 [tables]; the caller keeps the tensors. The ids of table
k are ids[bounds[k] : bounds[k + 1]], int64.
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled, float32_at, inlined, int64_at
from semisync.common.compiled.table import KEY, ROW, find_integer, free_slots, slots_for


@compiled
def take_rows(tables, sizes, ids, bounds, out):
    """Copies each table's rows to `out` [ids, width].

    Returns the number of the first table with an id beyond its size, or -1.
    """
    width, first = out.shape[1], bounds[0]
    for k in range(len(tables)):
        table = float32_at(tables[k], (sizes[k], width))
        for i in range(bounds[k], bounds[k + 1]):
            row = ids[i]
            if row < 0 or row >= sizes[k]:
                return k
            for j in range(width):
                out[i - first, j] = table[row, j]
    return -1


@compiled
def put_rows(tables, sizes, ids, bounds, rows):
    """Sets each table's rows, which exist, to `rows` [ids, width]."""
    width, first = rows.shape[1], bounds[0]
    for k in range(len(tables)):
        table = float32_at(tables[k], (sizes[k], width))
        for i in range(bounds[k], bounds[k + 1]):
            for j in range(width):
                table[ids[i], j] = rows[i - first, j]


@inlined
def _sum_by_key(slots, keys, values, unique, sums):
    """Sets the distinct keys, and the sum of the values of each; returns how many these are."""
    slots[:] = -1
    found = 0
    for i in range(len(keys)):
        at = find_integer(slots, keys[i])
        row = slots[at, ROW]
        if row < 0:
            slots[at, KEY], slots[at, ROW] = keys[i], found
            unique[found] = keys[i]
            for j in range(values.shape[1]):
                sums[found, j] = values[i, j]
            found += 1
        else:
            for j in range(values.shape[1]):
                sums[row, j] += values[i, j]
    return found


@compiled
def sum_rows(ids, values, counts, width):
    """The distinct ids of each table as they first occur, the sum of the values [count, width] of
    each, in their order, and the bounds.

    Args:
        ids, values: addresses, [tables], of as many as `counts` says.
    """
    total, most = counts.sum(), max(counts)
    slots = free_slots(most, 2)
    rows, sums = numpy.empty(total, numpy.int64), numpy.empty((total, width), numpy.float32)
    bounds = numpy.zeros(len(ids) + 1, numpy.int64)
    for k in range(len(ids)):
        keys = int64_at(ids[k], (counts[k],))
        given = float32_at(values[k], (counts[k], width))
        start = bounds[k]
        own = slots[: slots_for(counts[k])]
        bounds[k + 1] = start + _sum_by_key(own, keys, given, rows[start:], sums[start:])
    return rows[: bounds[-1]], sums[: bounds[-1]], bounds
