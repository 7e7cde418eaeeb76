"""Lines of text, uint8: how many there are, and where one ends. Empty ones are not rows."""

from __future__ import annotations

from semisync.common.compiled.jit import compiled

_LF, _CR = 10, 13


@compiled
def count(data, start, stop):
    """How many rows start in data[start:stop].

    A row starts after a line feed, or at 0, unless the line is empty; of a line that starts with
    the last byte, a carriage return, data[stop] decides that, where it exists.
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
    # A line that is a carriage return alone is empty too; most files have none.
    for k in range(at, stop if returns else at):
        if data[k - 1] == _LF and data[k] == _CR:
            begun -= k + 1 == size or data[k + 1] == _LF
    return rows + begun


@compiled
def occurrences(data, byte):
    """How often a byte, from 0 on, is in the data."""
    found = 0
    for k in range(len(data)):
        found += data[k] == byte
    return found


@compiled
def end_of_line(data, at):
    """The position after the first line feed from `at` on, or 0 if there is none."""
    for k in range(at, len(data)):
        if data[k] == _LF:
            return k + 1
    return 0
