"""Sorting scores by their bits: the order is exact, ties are exact, and integers sort fast.

An IEEE float sorts like an unsigned integer of its bits once negatives are complemented and the
sign bit of the others is set (the order-preserving flip of radix sorts, Herf 2001). Two values
compare equal as floats iff their bits are equal, save for -0.0, which is turned into 0.0 first,
and NaN, which the caller has refused.

Where one class is rare, as clicks are, a sort of all rows is not needed. With that class's distinct
scores v_0 < v_1 < ..., a row's code is

    2 j        strictly between v_(j-1) and v_j
    2 j + 1    equal to v_j

Rows of one code are alike to the rarer class, so what depends on the code holds everything that an
AUC, its placements and its curves need. It costs a sort of that class alone and a table look-up per
row, several times less than sorting all rows. The table divides the range of the scores' bits
evenly. A cell without a v answers at once; a row of another one is compared with the cell's first v
and, if it lies above that, with those that follow.
"""

from typing import Iterator, NamedTuple

import numpy as np

_UNSIGNED = {4: np.uint32, 8: np.uint64}
_SIGNED = {4: np.int32, 8: np.int64}

_CELLS_PER_VALUE = 16  # then few rows share a cell with a value; more would outgrow the cache
_MOST_BITS = 22
_STEPS = 4  # values of a crowded cell that are tried one by one, before a binary search
_BLOCK = 1 << 16  # rows at a time, so that the steps meet in the processor's cache


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


def look_up(scores: np.ndarray, values: np.ndarray, entries: np.ndarray) -> Iterator[np.ndarray]:
    """Yields `entries[code]` for all rows in order, a block at a time, each valid until the next.

    Args:
        scores: float32 or float64 (n,), finite.
        values: the sortable bits of the rarer class's distinct scores, rising; at least one.
        entries: int32 or int64 (2 * len(values) + 1,), none below 0: the value of each code.
    """
    lowest, highest = sortable_bits(np.array([scores.min(), scores.max()]))
    size = min(_MOST_BITS, (_CELLS_PER_VALUE * len(values)).bit_length())
    shift = values.dtype.type(max(0, int(highest - lowest).bit_length() - size))
    table = _table((values - lowest) >> shift, int((highest - lowest) >> shift) + 1, entries)
    values = np.append(values, np.iinfo(values.dtype).max)  # above every finite score
    answers = np.empty(_BLOCK, table.dtype)
    for start in range(0, len(scores), _BLOCK):
        block = sortable_bits(scores[start : start + _BLOCK])
        cells = ((block - lowest) >> shift).astype(np.intp)
        # No cell is out of range; by default np.take buffers `out`.
        answer = np.take(table, cells, out=answers[: len(cells)], mode="clip")
        unsure = np.flatnonzero(answer < 0)
        bits = block[unsure]
        place = _first_not_below(bits, values, -1 - answer[unsure])
        answer[unsure] = entries[2 * place + (bits == values[place])]
        yield answer


def _table(cells: np.ndarray, count: int, entries: np.ndarray) -> np.ndarray:
    """The answer of each cell; or, where it holds values, -1 - the index of the first of them."""
    first = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
    occupied = cells[first].astype(np.intp)
    answers = np.empty(2 * len(first) + 1, entries.dtype)
    answers[::2] = entries[2 * np.append(first, len(cells))]  # of the empty cells before, after
    answers[1::2] = -1 - first
    lengths = np.ones(len(answers), np.intp)
    lengths[::2] = np.diff(np.concatenate(([-1], occupied, [count]))) - 1
    return np.repeat(answers, lengths)


def _first_not_below(bits: np.ndarray, values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Index of the first of the values that is not below each of the bits, from `start` on."""
    place = start.astype(np.intp)
    left = np.flatnonzero(bits > values[place])
    # Most cells hold few values: some steps are cheaper than a binary search for each.
    for _ in range(_STEPS):
        place[left] += 1
        left = left[bits[left] > values[place[left]]]
    place[left] = np.searchsorted(values, bits[left])
    return place


def _sign_bit(bits: np.ndarray) -> np.unsignedinteger:
    return bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
