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

from parity.ordering import sortable_bits

_CELLS_PER_VALUE = 16  # then few rows share a cell with a value; more would outgrow the cache
_MOST_BITS = 21
_BLOCK = 1 << 16  # rows at a time, so that the steps meet in the processor's cache


def positions(scores: np.ndarray, positive: np.ndarray) -> Tuple[np.ndarray, int]:
    """Codes of all rows, and how many codes there are.

    Args:
        scores: float32 or float64 (n,), finite.
        positive: bool (n,), at least one.

    Returns: int32 (n,) codes from 0, and their number, 2 * distinct scores + 1.
    """
    values = np.sort(sortable_bits(scores[positive]))
    values = values[np.concatenate(([True], values[1:] != values[:-1]))]
    lowest, highest = sortable_bits(np.array([scores.min(), scores.max()]))
    size = min(_MOST_BITS, (_CELLS_PER_VALUE * len(values)).bit_length())
    shift = values.dtype.type(max(0, int(highest - lowest).bit_length() - size))
    held = np.bincount(((values - lowest) >> shift).astype(np.intp), minlength=1 << size)
    crowded = held > 1
    # A cell's entry is the code of its rows, or, below 0, the first value to compare them with.
    table = np.cumsum(held, dtype=np.int32)
    table *= 2
    occupied = np.flatnonzero(held)
    table[occupied] = held[occupied] - table[occupied] // 2 - 1

    codes = np.empty(len(scores), np.int32)
    for start in range(0, len(scores), _BLOCK):
        block = sortable_bits(scores[start : start + _BLOCK])
        cells = ((block - lowest) >> shift).astype(np.intp)
        found = codes[start : start + _BLOCK]
        np.take(table, cells, out=found, mode="clip")
        unsure = np.flatnonzero(found < 0)
        value = -1 - found[unsure]
        bits, compared = block[unsure], values[value]
        beyond = bits > compared
        found[unsure] = 2 * value + (bits >= compared) + beyond
        left = unsure[beyond]
        left = left[crowded[cells[left]]]
        bits = block[left]
        value = np.searchsorted(values, bits)
        equal = values[np.minimum(value, len(values) - 1)] == bits
        found[left] = 2 * value + equal
    return codes, 2 * len(values) + 1
