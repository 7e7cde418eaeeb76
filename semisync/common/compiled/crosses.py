"""The cross product of the features of each row."""

from __future__ import annotations

import numpy

from semisync.common.compiled.farmhash import concatenated
from semisync.common.compiled.jit import compiled


@compiled
def row_bounds(rows, batch):
    """The bounds of each row's features, int64 [batch + 1].

    As in TensorFlow, whatever follows a row out of order is left out.

    Args:
        rows: int64 [n], ascending.
    """
    bounds = numpy.zeros(batch + 1, numpy.int64)
    at = 0
    for row in range(batch):
        while at < len(rows) and rows[at] == row:
            at += 1
        bounds[row + 1] = at
    return bounds


@compiled
def products(bounds):
    """The cross product of each row's features, the last column's changing fastest.

    Returns int64 [n, 2]: row, and number within the row; int64 [columns, n]: the feature of each
    column; and the most crosses that a row has.

    Args:
        bounds: int64 [columns, batch + 1].
    """
    columns, batch = bounds.shape[0], bounds.shape[1] - 1
    total, longest = 0, 0
    for row in range(batch):
        crosses = 1
        for column in range(columns):
            crosses *= bounds[column, row + 1] - bounds[column, row]
        total += crosses
        longest = max(longest, crosses)
    indices = numpy.empty((total, 2), numpy.int64)
    features = numpy.empty((columns, total), numpy.int64)
    at = 0
    for row in range(batch):
        crosses = 1
        for column in range(columns):
            crosses *= bounds[column, row + 1] - bounds[column, row]
        for cross in range(crosses):
            indices[at, 0] = row
            indices[at, 1] = cross
            rest = cross  # in mixed radix: the last column is the lowest digit
            for back in range(columns):
                column = columns - 1 - back
                count = bounds[column, row + 1] - bounds[column, row]
                features[column, at] = bounds[column, row] + rest % count
                rest //= count
            at += 1
    return indices, features, longest


@compiled
def chain(hashes, values, features):
    """FingerprintCat64 of each hash and the value of its feature, in place; uint64 [n]."""
    for i in range(len(hashes)):
        hashes[i] = concatenated(hashes[i], values[features[i]])


@compiled
def remainders(hashes, count):
    """Each hash modulo `count` (uint64), as int64 [n]."""
    out = numpy.empty(len(hashes), numpy.int64)
    for i in range(len(hashes)):
        out[i] = hashes[i] % count
    return out
