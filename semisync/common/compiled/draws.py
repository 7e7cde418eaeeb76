"""Random numbers that depend on an id and a seed alone, not on what was drawn before.

The numbers of an id are a stream of splitmix64, which begins where the id's own hash says.
Source: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014; Box and
Muller, A Note on the Generation of Random Normal Deviates, 1958.
"""

from __future__ import annotations

import math

import numpy

from semisync.common.compiled.jit import compiled, inlined, u

_TRIES = 64  # of a normal value; more are needed for one of 10^80 values within two deviations


@inlined
def _mixed(bits):
    bits = (bits ^ (bits >> u(30))) * u(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> u(27))) * u(0x94D049BB133111EB)
    return bits ^ (bits >> u(31))


@inlined
def _drawn(start, number):
    """The bits of the number `number` in the stream that begins at `start`."""
    return _mixed(start + u(number + 1) * u(0x9E3779B97F4A7C15))


@compiled
def uniform(ids, seed, dim):
    """Numbers in [0, 1), float32 [n, dim], for int64 ids [n] and a uint64 seed."""
    out = numpy.empty((len(ids), dim), numpy.float32)
    for i in range(len(ids)):
        start = _mixed(_mixed(u(ids[i])) ^ seed)
        for k in range(dim):
            # 24 bits, which float32 holds exactly: more could be rounded up to 1.
            out[i, k] = numpy.float32(_drawn(start, k) >> u(40)) * numpy.float32(2.0**-24)
    return out


@compiled
def normal(ids, seed, dim, most):
    """Standard normal numbers, drawn again until they are within -most and most."""
    out = numpy.empty((len(ids), dim), numpy.float32)
    for i in range(len(ids)):
        start = _mixed(_mixed(u(ids[i])) ^ seed)
        for k in range(dim):
            number = 2 * _TRIES * k  # two per try: a value does not depend on the tries before it
            while True:
                # In (0, 1], since its logarithm is taken.
                one = (numpy.float64(_drawn(start, number) >> u(11)) + 1.0) * 2.0**-53
                other = numpy.float64(_drawn(start, number + 1) >> u(11)) * 2.0**-53
                z = math.sqrt(-2.0 * math.log(one)) * math.cos(2.0 * math.pi * other)
                if abs(z) <= most:
                    break
                number += 2
            out[i, k] = z
    return out
