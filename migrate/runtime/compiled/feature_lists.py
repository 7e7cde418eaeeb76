"""The lists of values in the Features of tf.train.Example.

    BytesList   1: bytes, any number of times
    FloatList   1: four bytes each, packed or one by one
    Int64List   1: varints, packed or one by one

`count` reads how many values there are, `*_values` reads them. Of a list in several packed pieces
only the first is read, as TensorFlow does.
Source: tensorflow/core/util/example_proto_fast_parsing.cc
"""

from __future__ import annotations

import numpy

from migrate.runtime.compiled.example import (
    BYTES,
    DELIMITED,
    FLOATS,
    INTEGERS,
    MISSING,
    delimited,
    varint,
)
from migrate.runtime.compiled.jit import address, compiled, inlined, load32

BROKEN, OTHER_KIND = -2, -3


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
def _bytes(data, at, end, starts, ends, place, writes):
    """How many strings a BytesList has, or BROKEN; where they lie goes to starts and ends."""
    count = 0
    while at < end:
        if data[at] != 10:
            return BROKEN
        start, at = delimited(data, at + 1, end)
        if at < 0:
            return BROKEN
        if writes:
            starts[place + count] = start
            ends[place + count] = at
        count += 1
    return count


@compiled
def _floats(data, at, end, out, place, writes):
    """How many floats a FloatList has, or BROKEN; their bits go to `out` (uint32)."""
    if at == end:
        return 0
    if data[at] == 10:
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
        if step == 5 and data[at + 5 * k] != 13:
            return BROKEN
        if writes:
            out[place + k] = load32(address(data) + at + step * k + step - 4)
    return count


@compiled
def _integers(data, at, end, out, place, writes):
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
            if data[at] != 8:
                return BROKEN
            at += 1
        value, at = varint(data, at, end)
        if at < 0:
            return BROKEN
        if writes:
            out[place + count] = value
        count += 1
    return count


@compiled
def count(data, found, kind):
    """How many values a feature has in each Example, or MISSING, BROKEN or OTHER_KIND."""
    none, no_bits = numpy.empty(0, numpy.int64), numpy.empty(0, numpy.uint32)
    out = numpy.empty(len(found), numpy.int64)
    for row in range(len(found)):
        start, end = found[row, 0], found[row, 1]
        if start == MISSING:
            out[row] = MISSING
            continue
        if start == end:
            out[row] = 0
            continue
        at, stop = _list(data, start, end, kind)
        if at < 0:
            out[row] = at
        elif kind == BYTES:
            out[row] = _bytes(data, at, stop, none, none, 0, False)
        elif kind == FLOATS:
            out[row] = _floats(data, at, stop, no_bits, 0, False)
        else:
            out[row] = _integers(data, at, stop, none, 0, False)
    return out


@compiled
def string_values(data, found, counts, places, starts, ends):
    """Puts where the strings lie into starts and ends (int64), those of row i from places[i] on."""
    for row in range(len(found)):
        if counts[row] > 0:
            at, stop = _list(data, found[row, 0], found[row, 1], BYTES)
            _bytes(data, at, stop, starts, ends, places[row], True)


@compiled
def float_values(data, found, counts, places, out):
    """Puts the bits of the floats into `out` (uint32), those of row i from places[i] on."""
    for row in range(len(found)):
        if counts[row] > 0:
            at, stop = _list(data, found[row, 0], found[row, 1], FLOATS)
            _floats(data, at, stop, out, places[row], True)


@compiled
def integer_values(data, found, counts, places, out):
    """Puts the integers into `out` (int64), those of row i from places[i] on."""
    for row in range(len(found)):
        if counts[row] > 0:
            at, stop = _list(data, found[row, 0], found[row, 1], INTEGERS)
            _integers(data, at, stop, out, places[row], True)
