"""FarmHash's Fingerprint64 and TensorFlow's FingerprintCat64.

Fingerprint64 never changes between versions; its code differs by length: 0, 1-3, 4-7, 8-16, 17-32,
33-64, and longer ones in blocks of 64 bytes of which the last may overlap the one before. A string
of 128, 192, ... bytes ends with a whole block: its loop runs up to the last 64 bytes and excludes
them.
Source: farmhashna::Hash64 of google/farmhash; FingerprintCat64 of
tensorflow/core/platform/fingerprint.h
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import address, compiled, inlined, load8, load32, load64, u

_K0 = u(0xC3A5C85C97CB3127)
_K1 = u(0xB492B66FBE98F273)
_K2 = u(0x9AE16A3B2F90404F)


@inlined
def _rotated(value, bits):
    return (value >> u(bits)) | (value << u(64 - bits))


@inlined
def _shift_mixed(value):
    return value ^ (value >> u(47))


@inlined
def _hash_16(first, second, multiplier):
    a = _shift_mixed((first ^ second) * multiplier)
    return _shift_mixed((second ^ a) * multiplier) * multiplier


@compiled
def _up_to_16(start, length):
    if length >= 8:
        multiplier = _K2 + u(length) * u(2)
        a = load64(start) + _K2
        b = load64(start + length - 8)
        c = _rotated(b, 37) * multiplier + a
        d = (_rotated(a, 25) + b) * multiplier
        return _hash_16(c, d, multiplier)
    if length >= 4:
        multiplier = _K2 + u(length) * u(2)
        head, tail = load32(start), load32(start + length - 4)
        return _hash_16(u(length) + (head << u(3)), tail, multiplier)
    if length > 0:
        a, b = load8(start), load8(start + (length >> 1))
        y = a + (b << u(8))
        z = u(length) + (load8(start + length - 1) << u(2))
        return _shift_mixed(y * _K2 ^ z * _K0) * _K2
    return _K2


@compiled
def _up_to_32(start, length):
    multiplier = _K2 + u(length) * u(2)
    a = load64(start) * _K1
    b = load64(start + 8)
    c = load64(start + length - 8) * multiplier
    d = load64(start + length - 16) * _K2
    return _hash_16(
        _rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c, multiplier
    )


@compiled
def _up_to_64(start, length):
    multiplier = _K2 + u(length) * u(2)
    a = load64(start) * _K2
    b = load64(start + 8)
    c = load64(start + length - 8) * multiplier
    d = load64(start + length - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _hash_16(y, a + _rotated(b + _K2, 18) + c, multiplier)
    e = load64(start + 16) * multiplier
    f = load64(start + 24)
    g = (y + load64(start + length - 32)) * multiplier
    h = (z + load64(start + length - 24)) * multiplier
    return _hash_16(
        _rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, multiplier
    )


@inlined
def _weak_32(start, a, b):
    """WeakHashLen32WithSeeds: a pair of the 32 bytes at `start` and two seeds."""
    w, x = load64(start), load64(start + 8)
    y, z = load64(start + 16), load64(start + 24)
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x
    a += y
    b += _rotated(a, 44)
    return a + z, b + c


@compiled
def _longer(start, length):
    seed = u(81)  # farmhashna's own
    x = seed
    y = seed * _K1 + u(113)
    z = _shift_mixed(y * _K2 + u(113)) * _K2
    v0, v1, w0, w1 = u(0), u(0), u(0), u(0)
    x = x * _K2 + load64(start)
    at, end = start, start + ((length - 1) >> 6 << 6)
    last = start + length - 64
    while at < end:
        x = _rotated(x + y + v0 + load64(at + 8), 37) * _K1
        y = _rotated(y + v1 + load64(at + 48), 42) * _K1
        x ^= w1
        y += v0 + load64(at + 40)
        z = _rotated(z + w0, 33) * _K1
        v0, v1 = _weak_32(at, v1 * _K1, x + w0)
        w0, w1 = _weak_32(at + 32, z + w1, y + load64(at + 16))
        x, z = z, x
        at += 64
    multiplier = _K1 + ((z & u(0xFF)) << u(1))
    w0 += u((length - 1) & 63)
    v0 += w0
    w0 += v0
    x = _rotated(x + y + v0 + load64(last + 8), 37) * multiplier
    y = _rotated(y + v1 + load64(last + 48), 42) * multiplier
    x ^= w1 * u(9)
    y += v0 * u(9) + load64(last + 40)
    z = _rotated(z + w0, 33) * multiplier
    v0, v1 = _weak_32(last, v1 * multiplier, x + w0)
    w0, w1 = _weak_32(last + 32, z + w1, y + load64(last + 16))
    x, z = z, x
    return _hash_16(
        _hash_16(v0, w0, multiplier) + _shift_mixed(y) * _K0 + z,
        _hash_16(v1, w1, multiplier) + x,
        multiplier,
    )


@compiled
def fingerprint(start, length):
    """Fingerprint64 of the `length` bytes at the address `start`, as uint64."""
    if length <= 16:
        return _up_to_16(start, length)
    if length <= 32:
        return _up_to_32(start, length)
    if length <= 64:
        return _up_to_64(start, length)
    return _longer(start, length)


@compiled
def fingerprints(data, offsets):
    """Fingerprint64 of each string, uint64 [n]."""
    out, start = numpy.empty(len(offsets) - 1, numpy.uint64), address(data)
    for i in range(len(out)):
        out[i] = fingerprint(start + offsets[i], offsets[i + 1] - offsets[i])
    return out


@compiled
def buckets(data, offsets, count):
    """Fingerprint64 of each string modulo `count` (uint64), as int64 [n]."""
    out, start = numpy.empty(len(offsets) - 1, numpy.int64), address(data)
    for i in range(len(out)):
        out[i] = fingerprint(start + offsets[i], offsets[i + 1] - offsets[i]) % count
    return out


@inlined
def concatenated(first, second):
    """FingerprintCat64 of two fingerprints, uint64."""
    multiplier = u(0xC6A4A7935BD1E995)
    result = first ^ multiplier
    result ^= _shift_mixed(second * multiplier) * multiplier
    result *= multiplier
    return _shift_mixed(_shift_mixed(result) * multiplier)


@compiled
def concatenated_pairs(first, second):
    """FingerprintCat64 of each pair, uint64 [n]."""
    out = numpy.empty(len(first), numpy.uint64)
    for i in range(len(first)):
        out[i] = concatenated(first[i], second[i])
    return out
