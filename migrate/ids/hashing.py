"""Where TorchRec's HashZchManagedCollisionModule looks for an id.

The rows of a table are divided into buckets of equal size. An id belongs to bucket id % buckets,
and is looked for from row murmur(id) % size of its bucket on, one row after the other, going round
at the end of the bucket. murmur is 64-bit MurmurHash3 of the id and a zero, seed 0, both halves
folded together.
Source: torchrec/modules/hash_mc_modules.py; fbgemm's zero_collision_hash.
"""

from __future__ import annotations

import numpy

_BLOCK = 1 << 15  # ids hashed at a time: what fits into a processor's cache


def home_rows(ids: numpy.ndarray, rows: int, buckets: int) -> numpy.ndarray:
    """The row [n] int64 at which the search for each of `ids` [n] int64 begins."""
    size = rows // buckets
    found = numpy.empty(len(ids), numpy.int64)
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        inside = murmur(block) % numpy.uint64(size)
        found[start : start + _BLOCK] = block % buckets * size + inside.view(numpy.int64)
    return found


def murmur(ids: numpy.ndarray) -> numpy.ndarray:
    """The hash of each of `ids` [n] int64, as uint64 [n]."""
    with numpy.errstate(over="ignore"):
        one = _rotated(ids.view(numpy.uint64) * _u(0x87C37B91114253D5), 31)
        one = _rotated(one * _u(0x4CF5AD432745937F), 27) * _u(5) + _u(0x52DCE729)
        two = one * _u(5) + _u(0x38495AB5)
        one ^= _u(16)  # the length of the input in bytes
        two ^= _u(16)
        one += two
        two += one
        one = _mixed(one)
        two = _mixed(two)
        one += two
        two += one
    return one ^ two


def _u(value: int) -> numpy.uint64:
    return numpy.uint64(value)


def _rotated(values: numpy.ndarray, bits: int) -> numpy.ndarray:
    found: numpy.ndarray = (values << _u(bits)) | (values >> _u(64 - bits))
    return found


def _mixed(values: numpy.ndarray) -> numpy.ndarray:
    values = (values ^ (values >> _u(33))) * _u(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> _u(33))) * _u(0xC4CEB9FE1A85EC53)
    values ^= values >> _u(33)
    return values
