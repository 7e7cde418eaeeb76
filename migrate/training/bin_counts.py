"""Rows counted by bin and label, int64 [label, bin], of ascending bins int64 [bins].

Two such counts are merged in one pass over both, since they are sorted already.
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled


@compiled
def counted(keys):
    """The bins of ascending keys, 2 * bin + label of each row, and the rows of each."""
    bins = numpy.empty(len(keys), numpy.int64)
    rows = numpy.zeros((2, len(keys)), numpy.int64)
    found = 0
    for key in keys:
        if not found or bins[found - 1] != key >> 1:
            bins[found] = key >> 1
            found += 1
        rows[key & 1, found - 1] += 1
    return bins[:found].copy(), rows[:, :found].copy()


@compiled
def merged(bins, rows, others, more):
    """The bins that are in either, and the rows of each: `rows` are of `bins`, `more` of
    `others`."""
    most = len(bins) + len(others)
    every, total = numpy.empty(most, numpy.int64), numpy.zeros((2, most), numpy.int64)
    i, j, found = 0, 0, 0
    while i < len(bins) or j < len(others):
        own = j == len(others) or (i < len(bins) and bins[i] <= others[j])
        other = i == len(bins) or (j < len(others) and others[j] <= bins[i])
        if own:
            every[found] = bins[i]
            total[:, found] += rows[:, i]
            i += 1
        if other:
            every[found] = others[j]
            total[:, found] += more[:, j]
            j += 1
        found += 1
    return every[:found].copy(), total[:, :found].copy()


@compiled
def won(rows):
    """Twice the pairs of a positive with a negative row of a lower bin, and once those of one."""
    negatives, pairs = 0, 0
    for k in range(rows.shape[1]):
        pairs += rows[1, k] * (2 * negatives + rows[0, k])
        negatives += rows[0, k]
    return pairs
