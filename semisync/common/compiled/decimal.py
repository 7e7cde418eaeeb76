"""Integers as decimal text, for AsString and for the hash buckets of integers.

Source of the formats: printf, which TensorFlow 1.15's AsString calls (as_string_op.cc).
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.farmhash import fingerprint
from semisync.common.compiled.jit import address, compiled, inlined, u

LONGEST = 20  # a sign and 19 digits, or 20 digits

ZERO, SPACE, MINUS, PLUS = 48, 32, 45, 43


@inlined
def _magnitude(value):
    """The absolute value as uint64, that of the smallest int64 included."""
    return u(0) - u(value) if value < 0 else u(value)


@inlined
def digits_of(magnitude):
    """How many decimal digits a uint64 has."""
    count = 1
    while magnitude >= u(10000):  # four digits by one division
        magnitude //= u(10000)
        count += 4
    if magnitude >= u(100):
        return count + 2 + (magnitude >= u(1000))
    return count + (magnitude >= u(10))


@inlined
def write(magnitude, out, end, count):
    """Writes `count` digits that end before `end`."""
    for k in range(count):
        rest = magnitude // u(10)
        out[end - 1 - k] = ZERO + (magnitude - rest * u(10))
        magnitude = rest


@compiled
def buckets(values, count):
    """Fingerprint64 of each integer's decimal text modulo `count` (uint64), as int64 [n]."""
    out = numpy.empty(len(values), numpy.int64)
    text = numpy.empty(LONGEST, numpy.uint8)
    for i in range(len(values)):
        magnitude = _magnitude(values[i])
        digits = digits_of(magnitude)
        length = digits + (values[i] < 0)
        text[0] = MINUS
        write(magnitude, text, length, digits)
        out[i] = fingerprint(address(text), length) % count
    return out


@compiled
def integers(values, width, flag):
    """int64 [n] as printf's %<flag><width>d: uint8 data and int64 offsets [n + 1].

    Args:
        flag: one of "0-+ #" as its code, or 0.
        width: at least 0.
    """
    signed = flag in (PLUS, SPACE)
    offsets = numpy.empty(len(values) + 1, numpy.int64)
    offsets[0] = 0
    for i in range(len(values)):
        length = digits_of(_magnitude(values[i])) + (values[i] < 0 or signed)
        offsets[i + 1] = offsets[i] + max(length, width)
    out = numpy.empty(offsets[-1], numpy.uint8)
    for i in range(len(values)):
        magnitude = _magnitude(values[i])
        digits = digits_of(magnitude)
        sign = MINUS if values[i] < 0 else (flag if signed else 0)
        start, end = offsets[i], offsets[i + 1]
        padding = end - start - digits - (sign != 0)
        # As printf does: zeros go between the sign and the digits, spaces before the sign.
        if flag == MINUS:
            out[end - padding : end] = SPACE
            end -= padding
        elif flag == ZERO:
            out[end - digits - padding : end - digits] = ZERO
        else:
            out[start : start + padding] = SPACE
            start += padding
        if sign:
            out[start] = sign
        write(magnitude, out, end, digits)
    return out, offsets
