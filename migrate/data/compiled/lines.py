"""Lines of text: counting them, and where their fields are.

A line that is empty is no row. Positions are those in `data`, uint8.

Separators and line ends are looked for in eight bytes at a time: a loop over bytes takes twice as
long, since the CPU cannot predict where a field ends.
Source: https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord
"""

from __future__ import annotations

from typing import Any

import numpy
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from migrate.runtime.compiled.jit import address, compiled, inlined, load64, u

_LF, _CR = 10, 13


def _trailing(typing_context, number):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


_trailing_zeros: Any = intrinsic(_trailing)


@compiled
def count(data, start, stop):
    """How many rows begin at `start` to before `stop`.

    A row begins after a line feed, or at 0, unless the line is empty there; data[stop] and the one
    after are looked at where they exist.
    """
    rows, size, at = 0, len(data), start
    if at == 0 and at < stop:
        empty = data[0] == _LF or (data[0] == _CR and (size == 1 or data[1] == _LF))
        rows += not empty
        at = 1
    if at >= stop:
        return rows
    before, after = data[at - 1 : stop - 1], data[at:stop]
    begun, returns = 0, 0
    for k in range(len(after)):  # vectorised, as one condition on both would not be
        begun += (before[k] == _LF) & (after[k] != _LF)
        returns += after[k] == _CR
    for k in range(at, stop if returns else at):
        if data[k - 1] == _LF and data[k] == _CR:
            begun -= k + 1 == size or data[k + 1] == _LF
    return rows + begun


@compiled
def holds(data, byte):
    """Whether a byte, from 0 on, is somewhere in the data."""
    found = 0
    for k in range(len(data)):
        found += data[k] == byte
    return found > 0


@compiled
def end_of_line(data, at):
    """The position after the first line feed from `at` on, or 0 if there is none."""
    for k in range(at, len(data)):
        if data[k] == _LF:
            return k + 1
    return 0


@compiled
def fields(data, rows, columns, separator, quote):
    """Where each field of each line begins: int64 [columns + 1, rows].

    A field ends one byte before the next one begins; the last entry is as if another followed.
    Also the number of rows found, at most `rows` and one more, and where a line that has another
    number of fields begins, or -1, and how many it has.
    quote: the byte around a field that holds a separator, or -1
    """
    starts = numpy.empty((columns + 1, rows), numpy.int64)
    at, end, row = 0, len(data), 0
    while at < end:
        byte = data[at]
        if byte == _LF or (byte == _CR and (at + 1 == end or data[at + 1] == _LF)):
            at += 1
            continue
        if row == rows:
            return starts, row + 1, -1, 0
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
            return starts, row, begin, field
        last = at
        if last > begin and data[last - 1] == _CR:
            last -= 1
        starts[columns, row] = last + 1
        row += 1
        at += 1
    return starts, row, -1, 0


@inlined
def _bytes_that_are(eight, pattern):
    """The highest bit of each byte of eight that is the pattern's."""
    differ = eight ^ pattern
    low = u(0x7F7F7F7F7F7F7F7F)
    return ~(((differ & low) + low) | differ | low)


@compiled
def plain_fields(data, rows, columns, separator):
    """As `fields`, of lines without a quote; after `data` 8 more bytes can be read."""
    starts = numpy.empty((columns + 1, rows), numpy.int64)
    first, end = address(data), len(data)
    separators, feeds = u(separator) * u(0x0101010101010101), u(0x0A0A0A0A0A0A0A0A)
    row, field, begin = 0, 1, numpy.int64(0)
    for word in range(0, end + 1, 8):
        eight = load64(first + word)
        ends = _bytes_that_are(eight, feeds)
        if word + 8 > end:  # what lies beyond is the end of the last line
            kept = (u(1) << u(8 * (end - word))) - u(1)
            ends = (ends & kept) | (u(0x80) << u(8 * (end - word)))
            eight &= kept
        found = _bytes_that_are(eight, separators) | ends
        while found:
            bit = _trailing_zeros(found)
            at = numpy.int64(word) + numpy.int64(bit >> u(3))
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
                    return starts, row + 1, -1, 0
                if field != columns:
                    return starts, row, begin, field
                starts[0, row] = begin
                starts[columns, row] = last + 1
                row += 1
            begin, field = at + 1, 1
    return starts, row, -1, 0
