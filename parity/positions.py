"""Where each row's score lies among the distinct scores of the positives, without a full sort.

With the positives' distinct scores v_0 < v_1 < ..., a row's code is

    2 j        strictly between v_(j-1) and v_j
    2 j + 1    equal to v_j

Rows of one code are alike to the positives, so counts by code hold everything that an AUC, its
placements and its curves need. Where positives are rare, as clicks are, this costs a sort of them
alone and a table look-up a row: several times less than sorting all rows.

The table divides the range of the scores' bits evenly. A cell without a v answers at once, one with
a single v after a comparison, and what is left is searched for.
"""

from typing import Tuple

import numpy as np

_CELLS_PER_VALUE = 16  # then few rows share a cell with a value; more would outgrow the cache
_MOST_BITS = 21
_BLOCK = 1 << 16  # rows at a time, so that the steps meet in the processor's cache


def positions(bits: np.ndarray, positive: np.ndarray) -> Tuple[np.ndarray, int]:
    """Codes of all rows, and how many codes there are.

    Args:
        bits: uint32 or uint64 (n,), from `parity.ordering.sortable_bits`.
        positive: bool (n,), at least one.

    Returns: int32 (n,) codes from 0, and their number, 2 * distinct scores + 1.
    """
    values = np.sort(bits[positive])
    values = values[np.concatenate(([True], values[1:] != values[:-1]))]
    lowest, kind = bits.min(), bits.dtype.type
    width = int(bits.max() - lowest).bit_length()
    size = min(_MOST_BITS, (_CELLS_PER_VALUE * len(values)).bit_length())
    shift = kind(max(0, width - size))
    held = np.bincount(((values - lowest) >> shift).astype(np.intp), minlength=1 << size)
    first = np.cumsum(held) - held
    # A cell's entry is the code of its rows, or, below 0, the first value to compare them with.
    table = np.where(held == 0, 2 * first, -1 - first).astype(np.int32)
    crowded = held > 1

    codes = np.empty(len(bits), np.int32)
    for start in range(0, len(bits), _BLOCK):
        block = bits[start : start + _BLOCK]
        cells = ((block - lowest) >> shift).astype(np.intp)
        found = codes[start : start + _BLOCK]
        np.take(table, cells, out=found, mode="clip")
        unsure = np.flatnonzero(found < 0)
        scores, value = block[unsure], -1 - found[unsure]
        beyond = scores > values[value]
        found[unsure] = 2 * value + (scores >= values[value]) + beyond
        left = unsure[beyond & crowded[cells[unsure]]]
        scores = block[left]
        value = np.searchsorted(values, scores)
        equal = values[np.minimum(value, len(values) - 1)] == scores
        found[left] = 2 * value + equal
    return codes, 2 * len(values) + 1
