"""The lists of values in the Features of tf.train.Example.

    BytesList   1: bytes, any number of times
    FloatList   1: four bytes each, packed or one by one
    Int64List   1: varints, packed or one by one

Of a list in several packed pieces only the first is read, as TensorFlow does.
Source: tensorflow/core/util/example_proto_fast_parsing.cc
"""

from __future__ import annotations

from typing import Iterator, Tuple

import numpy

from semisync.common.compiled.example import (
    BYTES,
    DELIMITED,
    FLOATS,
    INTEGERS,
    MISSING,
    Found,
    delimited,
    varint,
)
from semisync.common.compiled.jit import address, compiled, inlined, load32, u

BROKEN, OTHER_KIND = -2, -3

_TOGETHER = 256  # Examples whose features are read in turn: their bytes stay in the CPU's cache


@inlined
def _list(data, start, end, kind):
    """The span of a Feature's list: start and end; BROKEN or OTHER_KIND first otherwise."""
    tag = data[start]
    if tag != kind << 3 | DELIMITED:
        known = tag & 7 == DELIMITED and tag >> 3 >= BYTES and tag >> 3 <= INTEGERS
        return (OTHER_KIND if known else BROKEN), 0
    at, stop = delimited(data, start + 1, end)
    return (at, stop) if at >= 0 else (BROKEN, 0)


@compiled
def _bytes(data, at, end, starts, ends, place):
    """The number of a BytesList's strings, or BROKEN; their bounds go to starts and ends."""
    count = 0
    while at < end:
        if data[at] != 10:
            return BROKEN
        start, at = delimited(data, at + 1, end)
        if at < 0:
            return BROKEN
        starts[place + count] = u(start)
        ends[place + count] = at
        count += 1
    return count


@compiled
def _floats(data, at, end, out, place):
    """How many floats a FloatList has, or BROKEN; their bits go to `out`."""
    if at == end:
        return 0
    if data[at] == 10:  # packed: field 1, length-delimited
        at, end = delimited(data, at + 1, end)
        if at < 0 or (end - at) % 4:
            return BROKEN
        step = 4
    else:
        step = 5  # each behind a tag
        if (end - at) % 5:
            return BROKEN
    count = (end - at) // step
    for k in range(count):
        if step == 5 and data[at + 5 * k] != 13:  # field 1, four bytes
            return BROKEN
        out[place + k] = load32(address(data) + at + step * k + step - 4)
    return count


@compiled
def _integers(data, at, end, out, place):
    """How many integers an Int64List has, or BROKEN; they go to `out`."""
    if at == end:
        return 0
    packed = data[at] == 10
    if packed:
        at, end = delimited(data, at + 1, end)
        if at < 0:
            return BROKEN
    count = 0
    while at < end:
        if not packed:
            if data[at] != 8:  # field 1, varint
                return BROKEN
            at += 1
        value, at = varint(data, at, end)
        if at < 0:
            return BROKEN
        out[place + count] = value
        count += 1
    return count


@inlined
def _most(span, kind):
    """How many values a Feature of so many bytes can have."""
    if kind == INTEGERS:  # of a byte each behind four, or of two behind two
        return max(span - 4, (span - 2) // 2, 0)
    return max((span - 2) // (4 if kind == FLOATS else 2), 0)


@compiled
def _part(data, places, kind, rows, counts, bits, ends, total):
    """Reads the Examples rows[0] to before rows[1] of a feature; how many values there are then."""
    for row in range(rows[0], rows[1]):
        start, end = places[row, 0], places[row, 1]
        counts[row] = MISSING if start == MISSING else 0
        if end <= max(start, 0):  # MISSING, or an empty Feature
            continue
        at, stop = _list(data, start, end, kind)
        if at < 0:
            counts[row] = at
            continue
        if kind == BYTES:
            count = _bytes(data, at, stop, bits, ends, total)
        elif kind == FLOATS:
            count = _floats(data, at, stop, bits, total)
        else:
            count = _integers(data, at, stop, bits, total)
        counts[row] = count
        total += max(count, 0)
    return total


@compiled
def _read(data, places, kinds):
    """Counts, bits and ends as of `values`, those of feature k from firsts[k] to before lasts[k];
    of a feature of kind 0 nothing is read."""
    features, rows = places.shape[0], places.shape[1]
    firsts, most, some = numpy.zeros(features, numpy.int64), 0, False
    for feature in range(features):
        firsts[feature] = most
        some |= kinds[feature] == BYTES
        if kinds[feature]:
            for row in range(rows):
                span = places[feature, row, 1] - places[feature, row, 0]
                most += _most(span, kinds[feature])
    bits, ends = numpy.empty(most, numpy.uint64), numpy.empty(most if some else 0, numpy.int64)
    counts, lasts = numpy.zeros((features, rows), numpy.int64), firsts.copy()
    for first in range(0, rows, _TOGETHER):
        part = first, min(first + _TOGETHER, rows)
        for k in range(features):
            if kinds[k]:
                lasts[k] = _part(data, places[k], kinds[k], part, counts[k], bits, ends, lasts[k])
    return counts, bits, ends, firsts, lasts


def values(
    data: numpy.ndarray, found: Found, kinds: numpy.ndarray
) -> Iterator[Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    """The values of each feature that `example.find` found, of these kinds, or 0.

    Yields:
        Counts, int64 [examples], or MISSING, BROKEN or OTHER_KIND; the bits of all values, uint64,
        for strings where they start in `data`; and where strings end, int64.
    """
    alone = found.alone & (found.kinds == kinds)
    one = numpy.ones(found.places.shape[1], numpy.int64)
    lists = _read(data, found.places, numpy.where(alone, 0, kinds))
    for k, (counts, first, last) in enumerate(zip(lists[0], *lists[3:])):
        if alone[k]:
            yield one, found.singles[k], found.places[k, :, 1]
        else:
            yield counts, lists[1][first:last], lists[2][first:last]


@compiled
def indices(counts):
    """The places of the values in a SparseTensor of these lists: int64 [values, 2]."""
    out, at = numpy.empty((counts.sum(), 2), numpy.int64), 0
    for row in range(len(counts)):
        for k in range(counts[row]):
            out[at, 0] = row
            out[at, 1] = k
            at += 1
    return out
