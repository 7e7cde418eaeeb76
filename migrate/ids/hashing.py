"""The slots in which TorchRec's HashZchManagedCollisionModule looks for an id.

The rows of a table are divided into buckets of equal size. An id belongs to bucket id % buckets,
and is searched for from row murmur(id) % size of its bucket on, one row after the other, wrapping
around at the end of the bucket. murmur is 64-bit MurmurHash3 of the id and a zero, seed 0, both
halves folded together.
Source: torchrec/modules/hash_mc_modules.py; fbgemm's zero_collision_hash.
"""

from __future__ import annotations

import numpy

_BLOCK = 1 << 15  # ids hashed at a time: they fit into a CPU's cache


def home_rows(ids: numpy.ndarray, rows: int, buckets: int) -> numpy.ndarray:
    """The row [n] int64 at which the search for each of `ids` [n] int64 begins."""
    return homes(places(ids, rows, buckets), rows)


def places(ids: numpy.ndarray, rows: int, buckets: int) -> numpy.ndarray:
    """Numbers [n] int64, not negative, that sort `ids` [n] int64 by their home rows.

    The bits below the home row are hash bits that did not determine it, so that two ids rarely
    share a place.
    """
    size = rows // buckets
    bits = _bits_below(rows)
    rest = _u((1 << bits) - 1)
    placed = numpy.empty(len(ids), numpy.int64)
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        hashed = murmur(block)
        turns = hashed // _u(size)  # by far faster than %
        hashed -= turns * _u(size)
        home = hashed.view(numpy.int64)
        home += (block - block // buckets * buckets) * size
        home <<= bits
        home |= (turns & rest).view(numpy.int64)
        placed[start : start + _BLOCK] = home
    return placed


def homes(places: numpy.ndarray, rows: int) -> numpy.ndarray:
    """The home rows [n] int64 of ids with these `places` [n] int64."""
    return places >> _bits_below(rows)


def _bits_below(rows: int) -> int:
    """Bits of a place that are not the number of a row: 63 in all."""
    return 63 - (rows - 1).bit_length()


def murmur(ids: numpy.ndarray) -> numpy.ndarray:
    """The hash of each of `ids` [n] int64, as uint64 [n]."""
    with numpy.errstate(over="ignore"):
        one = _rotated(ids.view(numpy.uint64) * _u(0x87C37B91114253D5), 31)
        one = _rotated(one * _u(0x4CF5AD432745937F), 27) * _u(5) + _u(0x52DCE729)
        # The second eight bytes are the zero, which leaves the second half 0 before `one` is added.
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
    rotated: numpy.ndarray = (values << _u(bits)) | (values >> _u(64 - bits))
    return rotated


def _mixed(values: numpy.ndarray) -> numpy.ndarray:
    values = (values ^ (values >> _u(33))) * _u(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> _u(33))) * _u(0xC4CEB9FE1A85EC53)
    values ^= values >> _u(33)
    return values
