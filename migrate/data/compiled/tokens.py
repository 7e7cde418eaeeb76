"""The values of one column of text.

starts, ends: int64 [rows], the span of each field in `data`, uint8; an empty one is missing. After
`data` 8 more bytes can be read. A function that meets a field it cannot read returns its row, else
-1.

Eight digits are read at once, as three multiplications: a loop over them takes three times as long,
since the CPU cannot predict where it ends.
Source: https://kholdstare.github.io/technical/2020/05/26/faster-integer-parsing.html
"""

from __future__ import annotations

from typing import Any

import numpy

from semisync.common.compiled.jit import (
    address,
    bytes_that_are,
    compiled,
    inlined,
    load64,
    trailing_zeros,
    u,
)

_MINUS, _POINT = 45, 46
_POWERS = 10.0 ** numpy.arange(16)


@inlined
def _digits(word, count):
    """The number that the first 1 to 8 bytes of a word are, and whether all are digits."""
    eight = word << u(64 - 8 * count)
    eight |= u(0x30303030303030) >> u(8 * (count - 1))  # leading zeros
    # Digits are 0x30 to 0x39, the only bytes of 0x3_ that stay there with 6 added.
    high, carried = eight & u(0xF0F0F0F0F0F0F0F0), eight + u(0x0606060606060606)
    are_digits = high == u(0x3030303030303030) and (
        carried & u(0xF0F0F0F0F0F0F0F0) == u(0x3030303030303030)
    )
    # 2561 is 10 * 2^8 + 1: pairs of digits become numbers below 100; then by 100, and by 10,000.
    two = ((eight & u(0x0F0F0F0F0F0F0F0F)) * u(2561)) >> u(8)
    four = ((two & u(0x00FF00FF00FF00FF)) * u(6553601)) >> u(16)
    return ((four & u(0x0000FFFF0000FFFF)) * u(42949672960001)) >> u(32), are_digits


@inlined
def _short(place, count):
    """As `_digits`, of 1 to 16 bytes."""
    if count <= 8:
        return _digits(load64(place), count)
    upper, upper_fits = _digits(load64(place), count - 8)
    lower, lower_fits = _digits(load64(place + count - 8), 8)
    return upper * u(100_000_000) + lower, upper_fits and lower_fits


@inlined
def _integer(data, at, end):
    """Reads an int64 that begins at `at`: gives it, the position after it, and whether it fits."""
    negative = at < end and data[at] == _MINUS
    at += negative
    first, magnitude = at, u(0)
    while at < end and data[at] >= 48 and data[at] <= 57 and at - first < 19:
        magnitude = magnitude * u(10) + u(data[at] - 48)
        at += 1
    fits = at > first and magnitude <= u(9223372036854775807) + u(negative)
    return numpy.int64(u(0) - magnitude if negative else magnitude), at, fits


@compiled
def integers(data, starts, ends, separator):
    """The integers of fields that hold any number of them: offsets int32 [rows + 1], values, row.

    Args:
        separator: the byte between them, or -1 where a field holds one.
    """
    offsets = numpy.zeros(len(starts) + 1, numpy.int32)
    most = 0
    for row in range(len(starts)):
        most += ends[row] - starts[row]
    # An id has a digit and, but for the last one of a field, a separator.
    values = numpy.empty((most + len(starts)) // 2, numpy.int64)
    size, first = 0, address(data)
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        if at < end and end - at <= 16:
            short, fits = _short(first + at, end - at)
            if fits:
                # At most 16 digits, which always fit.
                values[size] = numpy.int64(short)
                size += 1
                offsets[row + 1] = size
                continue
        if at < end:
            while True:
                value, at, fits = _integer(data, at, end)
                if not fits or (at < end and (data[at] != separator)):
                    return offsets, values[:0], row
                values[size] = value
                size += 1
                if at == end:
                    break
                at += 1
        offsets[row + 1] = size
    return offsets, values[:size], -1


@compiled
def equal(data, starts, ends, wanted):
    """Whether each field is the bytes `wanted`, uint8: bool [rows]."""
    found = numpy.zeros(len(starts), numpy.bool_)
    for row in range(len(starts)):
        at, same = starts[row], ends[row] - starts[row] == len(wanted)
        for k in range(len(wanted) if same else 0):
            same &= data[at + k] == wanted[k]
        found[row] = same
    return found


@inlined
def _decimal(place, count):
    """The digits of a decimal of 1 to 8 bytes at an address, how many follow its point, and whether
    the bytes are a decimal, with digits on both sides of a point, or without a point."""
    eight = load64(place)
    kept = u(0xFFFFFFFFFFFFFFFF) >> u(64 - 8 * count)
    points = bytes_that_are(eight, u(0x2E2E2E2E2E2E2E2E)) & kept
    if not points:
        number, fits = _digits(eight, count)
        return number, numpy.int64(0), fits
    before = numpy.int64(trailing_zeros(points) >> u(3))
    behind = count - 1 - before
    if not before or not behind:
        return u(0), numpy.int64(0), False
    whole = eight & ((u(1) << u(8 * before)) - u(1))
    # The digits on both sides, without the point between them.
    number, fits = _digits(whole | ((eight >> u(8 * before + 8)) << u(8 * before)), count - 1)
    return number, behind, fits


@compiled
def numbers(data, starts, ends):
    """float32 of fields that are decimals such as -12 or 0.25, and of which fields it is not.

    Up to 15 digits and their power of ten are float64 without an error, so that their quotient is
    the nearest float64; it rounds to the nearest float32 unless it lies between two, which then
    depends on the digits that its own rounding dropped.
    """
    values, others = numpy.zeros(len(starts), numpy.float32), numpy.zeros(len(starts), numpy.bool_)
    place = address(data)
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        negative = at < end and data[at] == _MINUS
        at += negative
        number, whole, fraction = numpy.int64(0), 0, numpy.int64(0)
        fits: Any = False
        if at < end and end - at <= 8:
            digits, fraction, fits = _decimal(place + at, end - at)
            number = numpy.int64(digits)
        if not fits:
            number, fraction = numpy.int64(0), numpy.int64(0)
            # A sixteenth digit is read only to be refused below.
            while at < end and data[at] >= 48 and data[at] <= 57 and whole < 16:
                number = number * 10 + data[at] - 48
                whole, at = whole + 1, at + 1
            if whole and at + 1 < end and data[at] == _POINT:
                at += 1
                while at < end and data[at] >= 48 and data[at] <= 57 and whole + fraction < 16:
                    number = number * 10 + data[at] - 48
                    fraction, at = fraction + 1, at + 1
            fits = at == end and whole > 0 and whole + fraction <= 15
        quotient = number / _POWERS[fraction]
        # The 29 bits of a float64's fraction that a float32 lacks, at exactly one half.
        between = (numpy.float64(quotient).view(numpy.int64) & 0x1FFFFFFF) == 0x10000000
        others[row] = between or not fits
        values[row] = numpy.float32(-quotient if negative else quotient)
    return values, others


@compiled
def pairs(data, starts, ends, separator, mark):
    """As `integers`, of fields like 7:0.5|12; also the span of each weight, empty for none."""
    most = 0
    for row in range(len(starts)):
        most += (ends[row] - starts[row] + 1) // 2
    offsets, values = numpy.zeros(len(starts) + 1, numpy.int64), numpy.empty(most, numpy.int64)
    begins, stops = numpy.empty(most, numpy.int64), numpy.empty(most, numpy.int64)
    size = 0
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        if at < end:
            while True:
                value, at, fits = _integer(data, at, end)
                marked = at < end and data[at] == mark
                at += marked
                begin = at
                while marked and at < end and data[at] != separator:
                    at += 1
                wrong = not fits or (marked and at == begin)
                if wrong or (at < end and data[at] != separator):
                    return offsets, values[:0], begins[:0], stops[:0], row
                values[size], begins[size], stops[size] = value, begin, at
                size += 1
                if at == end:
                    break
                at += 1
        offsets[row + 1] = size
    return offsets, values[:size], begins[:size], stops[:size], -1


@compiled
def parts(data, starts, ends, separator):
    """The spans between separators: offsets int64 [rows + 1], starts and ends of all parts."""
    most = 0
    for row in range(len(starts)):
        most += ends[row] - starts[row] + 1
    offsets = numpy.zeros(len(starts) + 1, numpy.int64)
    begins, stops = numpy.empty(most, numpy.int64), numpy.empty(most, numpy.int64)
    size = 0
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        if at < end:
            begins[size] = at
            while at < end:
                if data[at] == separator:
                    stops[size] = at
                    size += 1
                    begins[size] = at + 1
                at += 1
            stops[size] = end
            size += 1
        offsets[row + 1] = size
    return offsets, begins[:size], stops[:size]


@compiled
def unquoted(data, starts, ends, quote):
    """Fields without their quotes, doubled ones once: uint8 data, int64 offsets [rows + 1], row."""
    most = 0
    for row in range(len(starts)):
        most += ends[row] - starts[row]
    # 8 more, which the readers of numbers may touch.
    out, offsets = numpy.empty(most + 8, numpy.uint8), numpy.zeros(len(starts) + 1, numpy.int64)
    size = 0
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        if at < end and data[at] == quote:
            at += 1
            while at < end and (data[at] != quote or (at + 1 < end and data[at + 1] == quote)):
                at += data[at] == quote
                out[size] = data[at]
                size += 1
                at += 1
            if at != end - 1:
                return out, offsets, row
        else:
            for k in range(at, end):
                out[size] = data[k]
                size += 1
        offsets[row + 1] = size
    return out[:size], offsets, -1
