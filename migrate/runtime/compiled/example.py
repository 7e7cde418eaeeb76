"""The wire format of tf.train.Example, read as TensorFlow's ParseExample reads it.

    Example   1: Features, any number of times
    Features  1: entry of the map, any number of times
    entry     1: name, 2: Feature, in either order
    Feature   1: BytesList, 2: FloatList, 3: Int64List, at most one

`find` walks through every Example and notes where each feature that is asked for lies; of two with
one name the last counts. `names` tells which features there are. feature_lists.py reads their
lists. TensorFlow reads some Examples that are cut short; here they are broken.
Source: tensorflow/core/util/example_proto_fast_parsing.cc
"""

from __future__ import annotations

import numpy

from migrate.runtime.compiled.jit import address, compiled, inlined, u
from migrate.runtime.compiled.spans import same

MISSING = -1
BROKEN, AT_END = -1, -2

DELIMITED = 2  # the wire type of what has a length


@inlined
def varint(data, at, end):
    """A varint: its value, uint64, and the position after it, or -1 if it is not whole."""
    value, shift = u(0), 0
    while at < end and shift < 70:
        byte = data[at]
        value |= u(byte & 0x7F) << u(shift)
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return value, -1


@inlined
def delimited(data, at, end):
    """The span whose length stands at `at`: start and end, or -1, -1 if it is not whole."""
    length, start = varint(data, at, end)
    if start < 0 or length > u(end - start):
        return -1, -1
    return start, start + int(length)


@compiled
def _after_unknown(data, at, end):
    """The position after a field of Example that is not Features, or -1."""
    tag, at = varint(data, at, end)
    if at < 0:
        return -1
    kind = tag & u(7)
    if kind == u(0):
        return varint(data, at, end)[1]
    if kind == u(DELIMITED):
        return delimited(data, at, end)[1]
    size = 8 if kind == u(1) else 4
    if (kind != u(1) and kind != u(5)) or end - at < size:
        return -1
    return at + size


@compiled
def _entry(data, at, end):
    """An entry of the map: the spans of its name and its Feature, or -1 first if it is broken."""
    name, name_end, value, value_end = 0, 0, 0, 0
    for _ in range(2):
        if at >= end:
            return -1, 0, 0, 0
        tag = data[at]
        start, stop = delimited(data, at + 1, end)
        if start < 0 or (tag >> 3 != 1 and tag >> 3 != 2) or tag & 7 != DELIMITED:
            return -1, 0, 0, 0
        if tag >> 3 == 1:
            name, name_end = start, stop
        else:
            value, value_end = start, stop
        at = stop
    if at != end:
        return -1, 0, 0, 0
    return name, name_end, value, value_end


@inlined
def _number_of(start, length, names, offsets, guess):
    """Which of the names, at an address, this one is, or -1; `guess` is tried first."""
    count = len(offsets) - 1
    for k in range(count):
        number = (guess + k) % count
        wanted = offsets[number + 1] - offsets[number]
        if wanted == length and same(start, names + offsets[number], length):
            return number
    return -1


@compiled
def _next(data, at, stop, end):
    """The next entry of an Example that ends at `end`, of the Features that end at `stop`.

    The spans of its name and its Feature, the position after it, and where its Features end. The
    name is BROKEN where the Example is, and AT_END behind the last entry.
    """
    while at >= stop:
        if at >= end:
            return AT_END, 0, 0, 0, at, stop
        if data[at] == 10:
            at, stop = delimited(data, at + 1, end)
        else:
            at = _after_unknown(data, at, end)
            stop = at
        if at < 0:
            return BROKEN, 0, 0, 0, at, stop
    if data[at] != 10:
        return BROKEN, 0, 0, 0, at, stop
    start, after = delimited(data, at + 1, stop)
    if start < 0:
        return BROKEN, 0, 0, 0, at, stop
    name, name_end, value, value_end = _entry(data, start, after)
    return name, name_end, value, value_end, after, stop


@compiled
def find(data, offsets, names, name_offsets, keeps_empty):
    """Where each feature of each Example lies, int64 [features, examples, 2]; MISSING if nowhere.

    keeps_empty: bool [features]; whether an empty Feature counts as one, as that of a sparse
    feature does
    Also the first Example that is broken, or -1.
    """
    features, first, known = len(name_offsets) - 1, address(data), address(names)
    found = numpy.full((features, len(offsets) - 1, 2), MISSING, numpy.int64)
    # Examples mostly have their features in one order: what followed this feature before?
    follows = numpy.zeros(features + 1, numpy.int64)
    for row in range(len(offsets) - 1):
        at, end, last = offsets[row], offsets[row + 1], features
        stop = at
        while True:
            name, name_end, value, value_end, at, stop = _next(data, at, stop, end)
            if name == AT_END:
                break
            if name < 0:
                return found, row
            number = _number_of(first + name, name_end - name, known, name_offsets, follows[last])
            if number >= 0:
                follows[last] = number
                last = number
                if value_end > value or keeps_empty[number]:
                    found[number, row, 0] = value
                    found[number, row, 1] = value_end
    return found, -1


@compiled
def names(data, offsets):
    """Where the names of all features lie, each once, int64 [features, 2]; and as of `find`, the
    first Example that is broken, or -1."""
    known, count, first = numpy.empty((64, 2), numpy.int64), 0, address(data)
    for row in range(len(offsets) - 1):
        at, end, guess = offsets[row], offsets[row + 1], 0
        stop = at
        while True:
            name, name_end, _, _, at, stop = _next(data, at, stop, end)
            if name == AT_END:
                break
            if name < 0:
                return known[:count], row
            number = -1
            for k in range(count):
                one = (guess + k) % count
                start, length = known[one, 0], name_end - name
                if known[one, 1] - start == length and same(first + start, first + name, length):
                    number = one
                    break
            if number < 0:
                if count == len(known):
                    known = numpy.concatenate((known, known))
                known[count, 0] = name
                known[count, 1] = name_end
                number = count
                count += 1
            guess = number + 1
    return known[:count], -1
