"""The parts of split strings: starts and ends, int64 [parts], and parts per string."""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import address, compiled, inlined
from semisync.common.compiled.spans import same
from semisync.common.compiled.trimming import is_space


@inlined
def _no_integers():
    return [0 for _ in range(0)]


@compiled
def at_bytes(data, offsets, delimiters, skip_empty):
    """Parts between bytes that are delimiters (bool [256]); an empty string has no part."""
    starts, ends = _no_integers(), _no_integers()
    counts = numpy.zeros(len(offsets) - 1, numpy.int64)
    for i in range(len(counts)):
        start, end, before = offsets[i], offsets[i + 1], len(starts)
        if start == end:
            continue
        for at in range(start, end + 1):
            if at == end or delimiters[data[at]]:
                if at > start or not skip_empty:
                    starts.append(start)
                    ends.append(at)
                start = at + 1
        counts[i] = len(starts) - before
    return numpy.array(starts), numpy.array(ends), counts


@compiled
def at_separator(data, offsets, separator, most):
    """Parts between a separator (uint8, not empty); `most` splits if positive, else all."""
    starts, ends = _no_integers(), _no_integers()
    counts = numpy.zeros(len(offsets) - 1, numpy.int64)
    length, text, wanted = len(separator), address(data), address(separator)
    for i in range(len(counts)):
        start, end, splits = offsets[i], offsets[i + 1], 0
        at = start
        while at + length <= end and (most <= 0 or splits < most):
            if same(text + at, wanted, length):
                starts.append(start)
                ends.append(at)
                at += length
                start = at
                splits += 1
            else:
                at += 1
        starts.append(start)
        ends.append(end)
        counts[i] = splits + 1
    return numpy.array(starts), numpy.array(ends), counts


@compiled
def at_spaces(data, offsets, most):
    """Parts between runs of white space; after `most` splits, if positive, the rest as it is."""
    starts, ends = _no_integers(), _no_integers()
    counts = numpy.zeros(len(offsets) - 1, numpy.int64)
    for i in range(len(counts)):
        at, end, before = offsets[i], offsets[i + 1], len(starts)
        while at < end and is_space(data[at]):
            at += 1
        while at < end:
            start = at
            while at < end and not is_space(data[at]):
                at += 1
            starts.append(start)
            ends.append(at)
            while at < end and is_space(data[at]):
                at += 1
            if most > 0 and len(starts) - before == most:
                starts.append(at)
                ends.append(end)
                break
        counts[i] = len(starts) - before
    return numpy.array(starts), numpy.array(ends), counts
