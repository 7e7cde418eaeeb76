"""Sorting scores by their bits: the order is exact, ties are exact, and integers sort fast.

An IEEE float sorts like an unsigned integer of its bits once negatives are complemented and the
sign bit of the others is set (the order-preserving flip of radix sorts, Herf 2001). Two values
compare equal as floats iff their bits are equal, save for -0.0, which is turned into 0.0 first,
and NaN, which the caller has refused.

The flip leaves the sign in the top bit. Within one sign that bit says nothing, so its place is
free for a payload: `labelled_halves` shifts it out and puts the label in, and a single sort of
integers then replaces an argsort and a gather.
"""

from typing import Iterator, NamedTuple, Tuple

import numpy as np

_UNSIGNED = {4: np.uint32, 8: np.uint64}
_SIGNED = {4: np.int32, 8: np.int64}


class TieGroups(NamedTuple):
    """Rows by rising score. Group g, rows of one score, is order[edges[g]:edges[g + 1]]."""

    order: np.ndarray  # int64 (rows,)
    edges: np.ndarray  # int64 (groups + 1,), from 0 to rows

    def mid_ranks(self) -> np.ndarray:
        """float64 (rows,): the rank, from 0, of each row's score; the middle one of its ties."""
        ranks = np.empty(len(self.order))
        middles = (self.edges[:-1] + self.edges[1:] - 1) / 2
        ranks[self.order] = np.repeat(middles, np.diff(self.edges))
        return ranks


def sortable_bits(scores: np.ndarray) -> np.ndarray:
    """uint32 or uint64 (n,) that sorts and compares as `scores` (float32 or float64) does."""
    size = scores.dtype.itemsize
    bits = (scores + scores.dtype.type(0)).view(_UNSIGNED[size])  # -0.0 + 0.0 is 0.0
    flip = (bits.view(_SIGNED[size]) >> (8 * size - 1)).view(bits.dtype)  # all ones if negative
    flip |= _sign_bit(bits)
    bits ^= flip
    return bits


def distinct_bits(scores: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The sortable bits of the distinct scores, rising, and how many rows have each."""
    bits = np.sort(sortable_bits(scores))
    first = np.flatnonzero(np.concatenate(([True], bits[1:] != bits[:-1])))
    return bits[first], np.diff(np.append(first, len(bits)))


def labelled_halves(scores: np.ndarray, positive: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the scores below zero, then the others, each sorted, with the label in bit 0.

    Within a half, the entries of one score differ in bit 0 alone: its negatives come first.
    Scores are float32 or float64 (n,), `positive` is bool (n,); a half may be empty.
    """
    bits = sortable_bits(scores)
    upper = bits >= _sign_bit(bits)
    whole = upper.all()
    for half in (~upper, upper):
        if whole and half is upper:
            packed, labels = bits, positive
        else:
            packed, labels = bits[half], positive[half]
        packed <<= bits.dtype.type(1)
        packed |= labels.view(np.uint8)
        packed.sort()
        yield packed


def tie_groups(scores: np.ndarray) -> TieGroups:
    """Sorts the rows by score; float32 or float64 (n,). O(n log n)."""
    bits = sortable_bits(scores)
    rows = len(bits)
    if bits.dtype == np.uint32 and rows <= 2**32:
        # The row number rides in the low half: one sort of uint64 instead of an argsort.
        packed = bits.astype(np.uint64)
        packed <<= np.uint64(32)
        packed |= np.arange(rows, dtype=np.uint64)
        packed.sort()
        order = (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)
        packed >>= np.uint64(32)
    else:
        order = np.argsort(bits)
        packed = bits[order]
    inner = np.flatnonzero(packed[1:] != packed[:-1]) + 1
    return TieGroups(order, np.concatenate(([0], inner, [rows])))


def _sign_bit(bits: np.ndarray) -> np.unsignedinteger:
    return bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
