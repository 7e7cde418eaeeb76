"""Numbers into buckets, each of which is an id of its field.

Criteo's counts, after the winners of its Kaggle contest (Juan, Zhuang & Chin 2014, "3 Idiots";
github.com/ycjuan/kaggle-2014-criteo, converters/common.py, gen_feats):

    v > 2  ->  the text of int(log(v)^2)        else  ->  "SP" followed by v

Any other number: at most 32 buckets of equal frequency, for which no value counts for more than a
32nd of the rows (else a column that is mostly 0 would be one bucket). The edges come from the
earliest half of the rows alone, so that held-out rows have no say; a number with up to 32 values
there has a bucket for each. A missing number has a bucket of its own.
"""

import math
from typing import List

import numpy as np

from semisync.common.errors import BadInput
from semisync.demo.data.readers.columns import Column
from semisync.demo.data.readers.rescan import shown
from semisync.demo.data.readers.source import Where

BUCKETS = 32


def three_idiots(value: int) -> str:
    """The bucket of one of Criteo's counts."""
    return str(int(math.log(value) ** 2)) if value > 2 else f"SP{value}"


def count_buckets(column: Column, where: Where) -> List[str]:
    """Criteo's transform of each distinct value; "" where missing.

    Raises: BadInput, naming the first row whose value is not a whole number.
    """
    texts = column.texts
    if column.numbers is not None:
        texts = ["" if math.isnan(number) else repr(float(number)) for number in column.numbers]
    buckets: List[str] = []
    wrong: List[int] = []
    for code, text in enumerate(texts):
        try:
            buckets.append(three_idiots(_whole(text)) if text else "")
        except ValueError:
            buckets.append("")
            wrong.append(code)
    if wrong:
        code = min(wrong, key=column.first_row)
        raise BadInput(
            f"{where.row(column.first_row(code))}: column {column.name!r} holds "
            f"{shown(texts[code])}, expected a whole number or nothing"
        )
    return buckets


def _whole(text: str) -> int:
    """A count; pandas writes one as 260.0 where the column has gaps."""
    return int(text[:-2] if text.endswith(".0") else text)


def equal_buckets(numbers: np.ndarray, early: np.ndarray) -> List[str]:
    """The bucket of each distinct value; "" where missing.

    Args:
        numbers: float64 [distinct], NaN where missing.
        early: float64, the values of the rows that set the edges.
    """
    edges, counts = np.unique(early[~np.isnan(early)], return_counts=True)
    if len(edges) > BUCKETS:
        weights = np.minimum(counts, counts.sum() / BUCKETS)
        share = (np.cumsum(weights) - weights) / weights.sum()
        _, first = np.unique(np.floor(share * BUCKETS), return_index=True)
        edges = edges[first]
    found = np.searchsorted(edges, numbers, side="right")
    return ["" if np.isnan(n) else f"bucket {b}" for n, b in zip(numbers, found)]
