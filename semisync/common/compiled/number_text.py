"""Numbers read from text, with TensorFlow's grammar.

An integer: white space, "-", digits, white space. A floating-point number may also have "+", a
point, an exponent, or be "inf", "infinity" or "nan" in any case; white space alone is 0. Numbers in
hexadecimal are left out: TensorFlow 1.15 loses the sign of some. A number whose digits and power of
ten are both exact in float64 is one multiplication or division; others are left to the caller.
Source: tensorflow/core/lib/strings/numbers.cc and double-conversion
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled, inlined, u
from semisync.common.compiled.trimming import strip

INVALID, EXACT, HARD = 0, 1, 2

_MINUS, _PLUS, _POINT = 45, 43, 46
_INFINITY = numpy.frombuffer(b"infinity", numpy.uint8)
_NAN = numpy.frombuffer(b"nan", numpy.uint8)
_POWERS = numpy.array([10.0**k for k in range(23)])  # all exact in float64


@inlined
def _is_digit(byte):
    return byte >= 48 and byte <= 57


@compiled
def integers(data, offsets, most):
    """Integers up to `most` (int64) from as many below 0 and one more: int64 [n], bool [n]."""
    out = numpy.zeros(len(offsets) - 1, numpy.int64)
    valid = numpy.zeros(len(out), numpy.bool_)
    for i in range(len(out)):
        at, end = strip(data, offsets[i], offsets[i + 1])
        negative = at < end and data[at] == _MINUS
        at += negative
        limit = u(most) + u(negative)
        magnitude = u(0)
        fits = at < end
        while at < end and fits:
            digit = u(data[at]) - u(48)
            # Compared before it grows, since it would wrap around.
            fits = _is_digit(data[at]) and magnitude <= (limit - digit) // u(10)
            magnitude = magnitude * u(10) + digit
            at += 1
        if fits:
            out[i] = u(0) - magnitude if negative else magnitude
            valid[i] = True
    return out, valid


@inlined
def _is_word(data, at, end, word, length):
    """Whether the text is the first `length` letters of a word, in any case."""
    matching = 0
    # | 32 turns an upper-case letter into its lower-case one.
    while matching < min(length, end - at) and data[at + matching] | 32 == word[matching]:
        matching += 1
    return matching == length == end - at


@inlined
def _decimal(data, at, end):
    """A decimal number without a sign, and whether it is one, and exact."""
    mantissa, kept, digits, exponent, point = u(0), 0, 0, 0, False
    while at < end and (_is_digit(data[at]) or (data[at] == _POINT and not point)):
        if data[at] == _POINT:
            point = True
        else:
            digits += 1
            mantissa = mantissa * u(10) + (u(data[at]) - u(48))
            kept += kept > 0 or data[at] != 48
            exponent -= point
        at += 1
    if not digits:
        return 0.0, INVALID
    if at < end:
        if data[at] | 32 != 101:
            return 0.0, INVALID
        at += 1
        negative = at < end and data[at] == _MINUS
        at += at < end and (data[at] == _MINUS or data[at] == _PLUS)
        if at == end:
            return 0.0, INVALID
        power = 0
        while at < end:
            if not _is_digit(data[at]):
                return 0.0, INVALID
            power = min(power * 10 + (data[at] - 48), 1 << 30)  # HARD anyway, without overflow
            at += 1
        exponent += -power if negative else power
    if not kept:
        return 0.0, EXACT
    # Clinger's fast path: integers below 2**53 and powers of ten up to 10**22 are exact doubles,
    # so that one operation rounds once, correctly.
    if kept > 19 or mantissa >> u(53) or exponent > 22 or exponent < -22:
        return 0.0, HARD
    if exponent < 0:
        return float(mantissa) / _POWERS[-exponent], EXACT
    return float(mantissa) * _POWERS[exponent], EXACT


@compiled
def floats(data, offsets):
    """float64 [n], and per number INVALID, EXACT or HARD: it is one, but not computed here."""
    out = numpy.zeros(len(offsets) - 1)
    states = numpy.zeros(len(out), numpy.uint8)
    for i in range(len(out)):
        at, end = strip(data, offsets[i], offsets[i + 1])
        if at == end:
            states[i] = EXACT if offsets[i] < offsets[i + 1] else INVALID
            continue
        negative = data[at] == _MINUS
        at += negative or data[at] == _PLUS
        if _is_word(data, at, end, _INFINITY, 3) or _is_word(data, at, end, _INFINITY, 8):
            out[i], states[i] = numpy.inf, EXACT
        elif _is_word(data, at, end, _NAN, 3):
            out[i], states[i] = numpy.nan, EXACT
        else:
            out[i], states[i] = _decimal(data, at, end)
        if negative:
            out[i] = -out[i]
    return out, states
