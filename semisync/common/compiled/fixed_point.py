"""Floating-point numbers as printf's %f, exactly.

A float64 is mantissa / 2 ** shift. Its fraction times 10 ** precision is an integer of at most 113
bits over 2 ** shift; that is rounded, ties to even, as glibc does.
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.decimal import MINUS, PLUS, SPACE, ZERO, digits_of, write
from semisync.common.compiled.jit import compiled, inlined, u

MOST_DIGITS = 18  # 10 ** 18 is below 2 ** 60
LARGEST = 2.0**63

_POINT = 46
_WORDS = numpy.frombuffer(b"infnan", numpy.uint8)


@inlined
def _product(one, other):
    """The upper and the lower half of a product of two uint64."""
    low = u(0xFFFFFFFF)
    a, b = one >> u(32), one & low
    c, d = other >> u(32), other & low
    middle = (b * d >> u(32)) + (a * d & low) + (b * c & low)
    upper = a * c + (a * d >> u(32)) + (b * c >> u(32)) + (middle >> u(32))
    return upper, one * other


@compiled
def _parts(bits, scale):
    """The whole part and the rounded fraction times `scale` of a float64 below 2 ** 63."""
    exponent = (bits >> u(52)) & u(0x7FF)
    mantissa = bits & u(0xFFFFFFFFFFFFF)
    if exponent:
        mantissa |= u(1) << u(52)
    else:
        exponent = u(1)
    if exponent >= u(1075):  # the bias, 1023, and 52 bits of mantissa: no fraction is left
        return mantissa << (exponent - u(1075)), u(0)
    shift = u(1075) - exponent
    whole = mantissa >> shift if shift < u(64) else u(0)
    fraction = mantissa - (whole << shift) if shift < u(64) else mantissa
    if shift >= u(128):
        return whole, u(0)  # the fraction is below 2 ** -15 of the last digit
    upper, lower = _product(fraction, scale)
    beyond = u(0)
    if shift < u(64):
        quotient = (upper << (u(64) - shift)) | (lower >> shift)
        rest, half = lower & ((u(1) << shift) - u(1)), u(1) << (shift - u(1))
    elif shift == u(64):
        quotient, rest, half = upper, lower, u(1) << u(63)
    else:
        quotient, beyond = upper >> (shift - u(64)), lower
        rest, half = upper & ((u(1) << (shift - u(64))) - u(1)), u(1) << (shift - u(65))
    # Without digits after the point a tie goes by the whole part.
    odd = (quotient if scale > u(1) else whole) & u(1)
    if rest > half or (rest == half and (beyond or odd)):
        quotient += u(1)
    if quotient == scale:
        return whole + u(1), u(0)
    return whole, quotient


@compiled
def fixed(values, precision, width, flag):
    """float64 [n] below 2 ** 63, inf or NaN, as %<flag><width>.<precision>f: data and offsets.

    Args:
        precision: at most MOST_DIGITS.
        width: at least 0.
        flag: one of "0-+ " as its code, or 0.
    """
    bits = values.view(numpy.uint64)
    scale = u(1)
    for _ in range(precision):
        scale *= u(10)
    signed = flag in (PLUS, SPACE)
    after = precision + 1 if precision else 0  # the point and the digits after it
    offsets = numpy.empty(len(values) + 1, numpy.int64)
    offsets[0] = 0
    for i in range(len(values)):
        length = 3  # of "inf" and "nan"
        if numpy.isfinite(values[i]):
            length = digits_of(_parts(bits[i], scale)[0]) + after
        length += signed or bits[i] >> u(63) != u(0)
        offsets[i + 1] = offsets[i] + max(length, width)
    out = numpy.empty(offsets[-1], numpy.uint8)
    for i in range(len(values)):
        finite = numpy.isfinite(values[i])
        whole, fraction = _parts(bits[i], scale) if finite else (u(0), u(0))
        length = digits_of(whole) + after if finite else 3
        sign = MINUS if bits[i] >> u(63) else (flag if signed else 0)
        start, end = offsets[i], offsets[i + 1]
        padding = end - start - length - (sign != 0)
        if flag == MINUS:
            out[end - padding : end] = SPACE
            end -= padding
        elif flag == ZERO and finite:
            out[start : end - length] = ZERO
        else:
            out[start : start + padding] = SPACE
            start += padding
        if sign:
            out[start] = sign
        if not finite:
            word = 3 if numpy.isnan(values[i]) else 0
            out[end - 3 : end] = _WORDS[word : word + 3]
            continue
        if precision:
            write(fraction, out, end, precision)
            out[end - after] = _POINT
        write(whole, out, end - after, digits_of(whole))
    return out, offsets
