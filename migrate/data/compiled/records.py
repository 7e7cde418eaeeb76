"""The fields of lines: where they are, and of columns of ids at once which integers.

A line that is empty is not a row. Positions are those in `data`, uint8.

Separators, line ends and digits are looked for in eight bytes at a time: a loop over bytes takes
twice as long, since the CPU cannot predict where a field ends.
"""

from __future__ import annotations

from typing import Any

import numpy

from semisync.common.compiled.jit import (
    address,
    bytes_that_are,
    compiled,
    inlined,
    load8,
    load64,
    trailing_zeros,
    u,
)

_LF, _CR, _MINUS = 10, 13, 45


@compiled
def fields(data, starts, separator, quote):
    """Fills in where each field of each line begins.

    Gives the number of rows found, at most `rows` and one more; the start of a line with another
    number of fields, or -1; and that number, or -1 for a line with a quote that is not closed.

    Args:
        starts: int64 [columns + 1, rows]; a field ends one byte before the next one begins, and
            the last entry is as if another followed.
        quote: the byte around a field that holds a separator, or -1.
    """
    columns, rows = len(starts) - 1, starts.shape[1]
    at, end, row = 0, len(data), 0
    while at < end:
        byte = data[at]
        if byte == _LF or (byte == _CR and (at + 1 == end or data[at + 1] == _LF)):
            at += 1
            continue
        if row == rows:
            return row + 1, -1, 0
        begin = at
        starts[0, row] = at
        field = 1
        while True:
            if quote >= 0 and at < end and data[at] == quote:
                at += 1
                while at < end and data[at] != _LF:
                    if data[at] == quote:
                        if at + 1 < end and data[at + 1] == quote:
                            at += 1
                        else:
                            break
                    at += 1
                if at == end or data[at] == _LF:
                    return row, begin, -1
            while at < end and data[at] != separator and data[at] != _LF:
                at += 1
            if at < end and data[at] == separator:
                at += 1
                if field < columns:
                    starts[field, row] = at
                field += 1
            else:
                break
        if field != columns:
            return row, begin, field
        # The CR of CRLF is no part of the last field.
        last = at
        if last > begin and data[last - 1] == _CR:
            last -= 1
        starts[columns, row] = last + 1
        row += 1
        at += 1
    return row, -1, 0


@compiled
def plain_fields(data, starts, separator):
    """As `fields`, of lines without a quote; after `data` 8 more bytes can be read."""
    columns, rows = len(starts) - 1, starts.shape[1]
    first, end = address(data), len(data)
    separators, feeds = u(separator) * u(0x0101010101010101), u(0x0A0A0A0A0A0A0A0A)
    row, field, begin = 0, 1, numpy.int64(0)
    for word in range(0, end + 1, 8):
        eight = load64(first + word)
        ends = bytes_that_are(eight, feeds)
        if word + 8 > end:  # beyond it is the end of the last line
            # Bytes after the data may be anything; the end of the data counts as a line end.
            kept = (u(1) << u(8 * (end - word))) - u(1)
            ends = (ends & kept) | (u(0x80) << u(8 * (end - word)))
            eight &= kept
        found = bytes_that_are(eight, separators) | ends
        while found:
            bit = trailing_zeros(found)
            at = numpy.int64(word) + numpy.int64(bit >> u(3))
            # Clears the lowest bit.
            found &= found - u(1)
            if not (ends >> bit) & u(1):
                if field < columns and row < rows:
                    starts[field, row] = at + 1
                field += 1
                continue
            last = at
            if last > begin and data[last - 1] == _CR:
                last -= 1
            if last > begin:
                if row == rows:
                    return row + 1, -1, 0
                if field != columns:
                    return row, begin, field
                starts[0, row] = begin
                starts[columns, row] = last + 1
                row += 1
            begin, field = at + 1, 1
    return row, -1, 0


@inlined
def _number(digits, count):
    """The number that the first 0 to 8 bytes are, each the value of a digit; 0 bytes mean nothing.

    Source: https://kholdstare.github.io/technical/2020/05/26/faster-integer-parsing.html
    """
    eight = digits << (u(64 - 8 * count) & u(63))
    # 2561 is 10 * 2^8 + 1: pairs of digits become numbers below 100; then by 100, and by 10,000.
    two = (eight * u(2561)) >> u(8)
    four = ((two & u(0x00FF00FF00FF00FF)) * u(6553601)) >> u(16)
    return ((four & u(0x0000FFFF0000FFFF)) * u(42949672960001)) >> u(32)


@inlined
def _digits(place):
    """Eight bytes as the values of digits, and the highest bit of each byte that is not a digit."""
    values = load64(place) ^ u(0x3030303030303030)
    # 0x76 + 9 is 0x7F: the sum sets a byte's highest bit if its value is more than 9.
    others = ((values & u(0x7F7F7F7F7F7F7F7F)) + u(0x7676767676767676)) | values
    return values, others & u(0x8080808080808080)


@inlined
def _integer(place, negative):
    """The integer at an address, its number of digits, and whether it fits; 0, 0, True if none."""
    digits, stops = _digits(place)
    count = numpy.int64(trailing_zeros(stops) >> u(3))
    number, fits = _number(digits, count), True
    if not stops:
        number, count = _number(digits, 8), numpy.int64(8)
        digits, stops = _digits(place + count)
        if not stops:
            number, count = number * u(100_000_000) + _number(digits, 8), numpy.int64(16)
            digits, stops = _digits(place + count)
        more = numpy.int64(trailing_zeros(stops) >> u(3))
        for k in range(more):
            number = number * u(10) + ((digits >> u(8 * k)) & u(15))
        count += more
        # With 20 digits or more `number` may have overflowed.
        fits = (stops != u(0)) & (count <= 19)
        fits &= number <= u(9223372036854775807) + u(negative)
    return numpy.int64(u(0) - number if negative else number), count, fits


@compiled
def columns(data, slots, separator, between, values, offsets, spans):
    """Fields, and the integers of columns of ids, in one pass over lines without a quote.

    After `data` 8 more bytes can be read, zeros unless `data` ends with a line feed.

    The output arrays: values int64 [columns of ids, most ids of one + 1]; offsets int32 [columns of
    ids, rows + 1]; spans, starts and ends of other fields, int64 [other columns, 2, rows].

    Whether all is plain. It is not where a line has another number of fields, and where an id has
    20 digits, is not an integer or beyond int64; `plain_fields` and `tokens.integers` say more.

    Args:
        slots: int64 [columns]; k for the k-th column of ids, -1 - k for the k-th of the others.
        between: the byte between ids.
    """
    ids, rows = len(values), spans.shape[2]
    offsets[:, 0] = 0
    sizes, kinds = numpy.zeros(ids, numpy.uint64), numpy.zeros(256, numpy.uint64)
    # Bit 0: another id of the column follows; bit 1: another column.
    kinds[between], kinds[separator] = 1, 2
    first, end, row = address(data), len(data), 0
    at: Any = numpy.int64(0)
    column: Any = 0
    separators, feeds = u(separator) * u(0x0101010101010101), u(0x0A0A0A0A0A0A0A0A)
    while at < end:
        byte = data[at]
        if byte == _LF or (byte == _CR and (at + 1 == end or data[at + 1] == _LF)):
            at += 1
            continue
        if row == rows:
            return False
        column, wrong, inside = 0, False, u(0)
        while True:
            if column == len(slots):
                return False
            slot, stop = slots[column], at
            if slot < 0:
                while stop < end:
                    eight = load64(first + stop)
                    found = bytes_that_are(eight, separators) | bytes_that_are(eight, feeds)
                    if found:
                        stop += numpy.int64(trailing_zeros(found) >> u(3))
                        break
                    stop += 8
                stop = min(stop, end)
                byte = data[stop] if stop < end else _LF
                ends = byte == _LF and stop > at and data[stop - 1] == _CR
                spans[-1 - slot, 0, row], spans[-1 - slot, 1, row] = at, stop - ends
                kind = kinds[byte]
            else:
                negative = load8(first + at) == u(_MINUS)
                number, count, fits = _integer(first + at + negative, negative)
                stop += negative + count
                size = sizes[slot]
                values[slot, size] = number
                size += u(count > 0)  # no branch, which the CPU could not predict
                sizes[slot] = size
                offsets[slot, row + 1] = size
                byte = numpy.int64(load8(first + stop)) if stop < end else _LF
                kind = kinds[byte]
                # No digits are a missing id if they are the whole field, but not beside a
                # `between`, nor after a minus.
                bad = ((kind | inside) & u(1)) + u(negative) > u(0)
                wrong |= (not fits) | ((count == 0) & bad)
                inside = kind
            if not kind:
                break
            column += numpy.int64(kind >> u(1))
            at = stop + 1
        if byte == _CR and (stop + 1 == end or data[stop + 1] == _LF):
            stop, byte = stop + 1, _LF
        if byte != _LF or wrong or column + 1 != len(slots):
            return False
        row += 1
        at = stop + 1
    return row == rows
