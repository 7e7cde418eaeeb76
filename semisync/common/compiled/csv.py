"""The fields of CSV records, with the rules of TensorFlow's DecodeCSV.

Fields are separated by one byte. A field in quotes may have delimiters, line ends and doubled
quotes. Line ends before a field are left out; elsewhere, and so quotes, they are an error.
Source: ExtractFields in tensorflow/core/kernels/decode_csv_op.cc
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled

COUNT, BARE_QUOTE, INNER_QUOTE, OPEN_QUOTE = 1, 2, 3, 4  # a record's error

_QUOTE = 34
_LINE_ENDS = (10, 13)


@compiled
def _field(data, at, end, delimiter, quotes, out, size):
    """One field, copied to `out` from `size` on: the position after it, its end in `out`, error."""
    if not quotes or data[at] != _QUOTE:
        while at < end and data[at] != delimiter:
            byte = data[at]
            if (quotes and byte == _QUOTE) or byte in _LINE_ENDS:
                return at, size, BARE_QUOTE
            out[size] = byte
            size += 1
            at += 1
        return at + 1, size, 0
    at += 1
    while at < end - 1 and (data[at] != _QUOTE or data[at + 1] != delimiter):
        if data[at] == _QUOTE:
            if data[at + 1] != _QUOTE:
                return at, size, INNER_QUOTE
            at += 1
        out[size] = data[at]
        size += 1
        at += 1
    if at < end and data[at] == _QUOTE and (at == end - 1 or data[at + 1] == delimiter):
        return at + 2, size, 0  # behind the quote and the delimiter
    return at, size, OPEN_QUOTE


@compiled
def fields(data, offsets, delimiter, quotes, selected, columns):
    """The bytes of all fields, and the end of each: uint8, int64 [records, columns + 1].

    Also the first wrong record, or -1, and its error.

    Args:
        selected: int64 [columns], the fields to take, ascending; empty: all, as many as `columns`.
    """
    out = numpy.empty(offsets[-1] - offsets[0], numpy.uint8)
    ends = numpy.zeros((len(offsets) - 1, columns + 1), numpy.int64)
    size = 0
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        ends[row, 0] = size
        seen, taken = 0, 0
        while at <= end and offsets[row] < end:  # an empty record has no field
            if at < end and data[at] in _LINE_ENDS:
                at += 1
                continue
            if at == end and data[end - 1] != delimiter:
                break
            before = size
            if at < end:
                at, size, error = _field(data, at, end, delimiter, quotes, out, size)
                if error:
                    return out, ends, row, error
            else:
                at += 1  # the empty field after the last delimiter
            if len(selected) and (taken == columns or selected[taken] != seen):
                size = before
            else:
                if taken == columns:
                    return out, ends, row, COUNT
                taken += 1
                ends[row, taken] = size
            seen += 1
            if len(selected) and taken == columns:
                break
        if taken != columns:
            return out, ends, row, COUNT
    return out, ends, -1, 0
