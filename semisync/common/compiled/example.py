"""The wire format of tf.train.Example, read as TensorFlow's ParseExample reads it.

    Example   1: Features, any number of times
    Features  1: entry of the map, any number of times
    entry     1: name, 2: Feature, in either order
    Feature   1: BytesList, 2: FloatList, 3: Int64List, at most one

`find` walks through every Example and records the position of each feature asked for; of two with
one name the last counts. `names` returns the names of all features. feature_lists.py reads their
lists. TensorFlow reads some Examples that are cut short; here they are broken.
Source: tensorflow/core/util/example_proto_fast_parsing.cc
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from semisync.common.compiled.jit import address, compiled, inlined, load8, load32, u
from semisync.common.compiled.spans import same

MISSING = -1
BROKEN, AT_END = -1, -2

DELIMITED = 2  # the wire type of length-delimited fields
BYTES, FLOATS, INTEGERS = 1, 2, 3  # the kinds of list, by their field in Feature


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
    """The number of the name at the address `start`, or -1; `names` is an address, too, and number
    `guess` is tried first."""
    count = len(offsets) - 1
    for k in range(count):
        number = (guess + k) % count
        wanted = offsets[number + 1] - offsets[number]
        if wanted == length and same(start, names + offsets[number], length):
            return number
    return -1


@compiled
def _next(data, at, stop, end):
    """The next entry of an Example that ends at `end`, of its Features, which end at `stop`.

    Returns:
        The spans of its name and its Feature, the position after it, and where its Features end.
        The name is BROKEN if the Example is, and AT_END after the last entry.
    """
    while at >= stop:
        if at >= end:
            return AT_END, 0, 0, 0, at, stop
        if data[at] == 10:  # the tag of Features: field 1, length-delimited
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


@inlined
def _single(place, size):
    """The only value of a Feature at an address: its bits, of a string where it begins from there
    on; and the tag of its list, or 0 if it has another number of values or is written otherwise."""
    # The tag and length of a list, the tag and length of field 1 in it, then the value.
    tag = load8(place)
    if size < 4 or size > 127 or load8(place + 1) != u(size - 2) or load8(place + 2) != u(10):
        return u(0), u(0)
    if load8(place + 3) != u(size - 4):
        return u(0), u(0)
    if tag == u(FLOATS << 3 | DELIMITED):
        return (load32(place + 4), tag) if size == 8 else (u(0), u(0))
    if tag == u(INTEGERS << 3 | DELIMITED):
        value, at = u(0), 4
        while at < size and at < 14:
            byte = load8(place + at)
            value |= (byte & u(0x7F)) << u(7 * (at - 4))
            at += 1
            if byte < u(0x80):
                return (value, tag) if at == size else (u(0), u(0))
        return u(0), u(0)
    return (u(4), tag) if tag == u(BYTES << 3 | DELIMITED) else (u(0), u(0))


@inlined
def _as_guessed(place, left, name, length):
    """The offset and length of the value of the entry at the address `place`; -1 unless it has the
    name at the address `name` and is written as protobuf writes short entries."""
    # 10, size of the entry, 10, size of the name, the name, 18, size of the value: all in one byte.
    value = 6 + length
    if left < value:
        return -1, 0
    size = numpy.int64(load8(place + 1))
    if (
        size > 127
        or size + 2 > left
        or length > 120
        or load8(place) != u(10)
        or load8(place + 2) != u(10)
        or load8(place + 3) != u(length)
        or load8(place + 4 + length) != u(18)
        or load8(place + 5 + length) != u(size + 2 - value)
        or not same(place + 4, name, length)
    ):
        return -1, 0
    return value, size + 2 - value


class Found(NamedTuple):
    """The position of each feature in some Examples, and the features with one value in each.

    Attributes:
        places: int64 [features, examples, 2]; MISSING where it is nowhere.
        kinds: int64 [features], of the list in the first Example that has one, or 0.
        alone: bool [features], whether there is one value of that kind in each Example.
        singles: uint64 [features, examples], then: its bits; of a string, where it begins in
            `data`, its end being that of its place.
        broken: the first Example that is, or -1.
    """

    places: Any
    kinds: Any
    alone: Any
    singles: Any
    broken: Any


@compiled
def find(data, starts, ends, names, name_offsets, keeps_empty):
    """`Found` of the named features, of the Examples data[starts[i] : ends[i]].

    Args:
        keeps_empty: bool [features]; whether an empty Feature counts as one, as that of a
            sparse feature does.
    """
    features, rows = len(name_offsets) - 1, len(starts)
    first, known = address(data), address(names)
    places = numpy.full((features, rows, 2), MISSING, numpy.int64)
    singles = numpy.empty((features, rows), numpy.uint64)
    tags = numpy.zeros(features, numpy.uint64)
    # Examples with one value; negative for good once one has none or several.
    count = numpy.zeros(features, numpy.int64)
    # Examples mostly have their features in one order: what followed this feature before?
    follows = numpy.zeros(features + 1, numpy.int64)
    broken = -1
    for row in range(rows):
        at, end, last = starts[row], ends[row], features
        stop = at
        while broken < 0:
            value = -1
            if features and at < stop:
                number = follows[last]
                name = known + name_offsets[number]
                value, size = _as_guessed(
                    first + at, stop - at, name, name_offsets[number + 1] - name_offsets[number]
                )
            if value >= 0:
                value += at
                value_end = value + size
                at = value_end
            else:
                start, name_end, value, value_end, at, stop = _next(data, at, stop, end)
                if start == AT_END:
                    break
                if start < 0:
                    broken = row
                    break
                number = _number_of(
                    first + start, name_end - start, known, name_offsets, follows[last]
                )
                if number < 0:
                    continue
            follows[last] = number
            last = number
            if value_end == value:
                if keeps_empty[number]:
                    places[number, row, 0] = value
                    places[number, row, 1] = value_end
                    count[number] = -rows
                continue
            bits, tag = _single(first + value, value_end - value)
            if not tags[number]:
                tags[number] = u(data[value])
            if not tag or tag != tags[number]:
                count[number] = -rows - 1
            elif places[number, row, 0] == MISSING:
                count[number] += 1
            places[number, row, 0] = value
            places[number, row, 1] = value_end
            singles[number, row] = bits + u(value) if tag == u(10) else bits
        if broken >= 0:
            break
    kinds = numpy.zeros(features, numpy.int64)
    for number in range(features):
        if tags[number]:
            kind = numpy.int64(tags[number] >> u(3))
            right = tags[number] & u(7) == u(DELIMITED) and kind >= BYTES and kind <= INTEGERS
            kinds[number] = kind if right else BYTES
    return Found(places, kinds, count == rows, singles, broken)


@compiled
def names(data, starts, ends):
    """Spans of the distinct feature names, int64 [names, 2]; the first broken Example, or -1."""
    known, count, first = numpy.empty((64, 2), numpy.int64), 0, address(data)
    for row in range(len(starts)):
        at, end, guess = starts[row], ends[row], 0
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
