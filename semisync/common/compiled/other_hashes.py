"""The hashes of TensorFlow besides FarmHash's: Hash64 (Murmur's), and SipHash-2-4 with a key.

Source: tensorflow/core/lib/hash/hash.cc; SipHash as in Aumasson and Bernstein's paper, of which
TensorFlow has highwayhash's implementation (strong_hash.h).
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import address, compiled, inlined, load8, load64, u

_MURMUR = u(0xC6A4A7935BD1E995)
_SEED = u(0xDECAFCAFFE)


@compiled
def hash64_buckets(data, offsets, count):
    """Hash64 of each string modulo `count` (uint64), as int64 [n]."""
    out, first = numpy.empty(len(offsets) - 1, numpy.int64), address(data)
    for i in range(len(out)):
        start, end = first + offsets[i], first + offsets[i + 1]
        result = _SEED ^ (u(end - start) * _MURMUR)
        while start + 8 <= end:
            word = load64(start) * _MURMUR
            word = (word ^ (word >> u(47))) * _MURMUR
            result = (result ^ word) * _MURMUR
            start += 8
        if start < end:
            result = (result ^ _rest(start, end)) * _MURMUR
        result = (result ^ (result >> u(47))) * _MURMUR
        out[i] = (result ^ (result >> u(47))) % count
    return out


@inlined
def _rest(start, end):
    """The bytes from `start` to `end`, fewer than eight, as a little-endian number."""
    rest = u(0)
    for k in range(end - start):
        rest |= load8(start + k) << u(8 * k)
    return rest


@inlined
def _left(value, bits):
    return (value << u(bits)) | (value >> u(64 - bits))


@inlined
def _round(v0, v1, v2, v3):
    v0 += v1
    v2 += v3
    v1 = _left(v1, 13) ^ v0
    v3 = _left(v3, 16) ^ v2
    v0 = _left(v0, 32)
    v2 += v1
    v0 += v3
    v1 = _left(v1, 17) ^ v2
    v3 = _left(v3, 21) ^ v0
    return v0, v1, _left(v2, 32), v3


@compiled
def sip_buckets(data, offsets, key0, key1, count):
    """SipHash-2-4 of each string with the key (uint64, uint64), modulo `count`, as int64 [n]."""
    out, first = numpy.empty(len(offsets) - 1, numpy.int64), address(data)
    for i in range(len(out)):
        start, end = first + offsets[i], first + offsets[i + 1]
        length = end - start
        # SipHash's constants, in ASCII: "somepseudorandomlygeneratedbytes".
        v0, v1 = key0 ^ u(0x736F6D6570736575), key1 ^ u(0x646F72616E646F6D)
        v2, v3 = key0 ^ u(0x6C7967656E657261), key1 ^ u(0x7465646279746573)
        while start <= end:  # the last word is the rest, and the length in its highest byte
            if start + 8 <= end:
                word = load64(start)
            else:
                word = _rest(start, end) | (u(length & 255) << u(56))
            v3 ^= word
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0 ^= word
            start += 8
        v2 ^= u(255)
        for _ in range(4):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        out[i] = (v0 ^ v1 ^ v2 ^ v3) % count
    return out
