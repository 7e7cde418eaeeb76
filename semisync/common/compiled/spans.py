"""Copying and comparing pieces of bytes."""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import address, compiled, inlined, load8, load64


@inlined
def copy(source, start, target, at, length):
    """Copies `length` bytes; a call of memcpy for each would cost more than most strings."""
    for k in range(length):
        target[at + k] = source[start + k]


@compiled
def gather(data, starts, ends):
    """The strings data[start:end], one after the other: uint8 data and int64 offsets [n + 1]."""
    offsets = numpy.empty(len(starts) + 1, numpy.int64)
    offsets[0] = 0
    for i in range(len(starts)):
        offsets[i + 1] = offsets[i] + ends[i] - starts[i]
    out = numpy.empty(offsets[-1], numpy.uint8)
    for i in range(len(starts)):
        copy(data, starts[i], out, offsets[i], ends[i] - starts[i])
    return out, offsets


@compiled
def take(data, offsets, positions):
    """The strings at `positions` [n], as `gather`; the last offset is -1 if one does not exist."""
    bounds = numpy.empty(len(positions) + 1, numpy.int64)
    bounds[0] = 0
    count = len(offsets) - 1
    for i in range(len(positions)):
        at = positions[i]
        if at < 0 or at >= count:
            bounds[-1] = -1
            return numpy.empty(0, numpy.uint8), bounds
        bounds[i + 1] = bounds[i] + offsets[at + 1] - offsets[at]
    out = numpy.empty(bounds[-1], numpy.uint8)
    for i in range(len(positions)):
        at = positions[i]
        copy(data, offsets[at], out, bounds[i], offsets[at + 1] - offsets[at])
    return out, bounds


@inlined
def same(one, other, length):
    """Whether `length` bytes at two addresses are equal."""
    k = 0
    while k + 8 <= length:
        if load64(one + k) != load64(other + k):
            return False
        k += 8
    while k < length:
        if load8(one + k) != load8(other + k):
            return False
        k += 1
    return True


@compiled
def equal(data, offsets, other, others, step):
    """Whether each string equals its partner: bool [n]; step 0: there is one partner for all."""
    out = numpy.empty(len(offsets) - 1, numpy.bool_)
    one, two = address(data), address(other)
    for i in range(len(out)):
        at = i * step
        length = offsets[i + 1] - offsets[i]
        out[i] = length == others[at + 1] - others[at] and same(
            one + offsets[i], two + others[at], length
        )
    return out
