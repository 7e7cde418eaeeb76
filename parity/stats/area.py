"""Exact area under the ROC curve: the chance that a positive scores above a negative.

    AUC = (pairs that the positive wins + half of the ties) / all positive-negative pairs

which is the Mann-Whitney statistic (Hanley & McNeil 1982). Without weights the pairs are counted
in integers, so the result is the correctly rounded quotient, whatever the order of the rows. With
weights a pair counts with the product of its two weights.

Unlike `tf.metrics.auc`, nothing is binned; unlike TorchRec's and FBGEMM's metrics, ties count half
and so a constant score has AUC 0.5.
"""

from typing import Any, NamedTuple

import numpy as np

from parity.inputs.checks import (
    Column,
    check_labels,
    check_same_length,
    check_scores,
    check_weights,
)
from parity.stats.ordering import distinct_bits, labelled_halves
from parity.stats.positions import look_up
from parity.stats.ranking import RARE, rank


def auc(labels: Any, scores: Any, weights: Any = None) -> float:
    """Exact AUC of one model.

    Args:
        labels: (n,) 0 or 1, or bool; both classes must occur.
        scores: (n,) finite numbers, the higher the likelier a 1; probabilities or logits. float32
            is ranked as it is and is the fastest.
        weights: (n,) finite and >= 0, or None for ones.

    Returns: a number in [0, 1].

    Raises: BadInput, naming the argument and the first row at fault.
    """
    positive = check_labels(labels, Column("labels"))
    scores = check_scores(scores, Column("scores"))
    check_same_length(positive, scores, Column("scores"))
    if weights is not None:
        weights = check_weights(weights, positive, Column("weights"))
        return rank(scores, positive, weights).area()
    positives = np.count_nonzero(positive)
    if RARE * min(positives, len(positive) - positives) <= len(positive):
        return _area_by_rarer(scores, positive)
    total = _Count(0, 0, 0)
    for half in labelled_halves(scores, positive):
        total = total.followed_by(_count(half))
    return total.doubled_wins / (2 * total.positives * total.negatives)


def _area_by_rarer(scores: np.ndarray, positive: np.ndarray) -> float:
    """Looks every row up among the rarer class's scores.

    A row passes `below` rows of that class and ties with `held` of them: it counts
    2 * below + held, and over the rows of the rarer class itself that adds up to their square.
    """
    rows, positives = len(positive), int(np.count_nonzero(positive))
    rare = positive if 2 * positives <= rows else ~positive
    few = min(positives, rows - positives)
    values, held = distinct_bits(scores[np.flatnonzero(rare)])
    passed = np.zeros(2 * len(values) + 1, np.int32 if few < 1 << 30 else np.int64)
    up_to = 2 * np.cumsum(held)
    passed[1::2] = up_to - held
    passed[2::2] = up_to
    total = sum(int(block.sum(dtype=np.int64)) for block in look_up(scores, values, passed))
    doubled = total - few * few
    pairs = 2 * few * (rows - few)
    return (pairs - doubled if rare is positive else doubled) / pairs


class _Count(NamedTuple):
    """Pairs within a range of scores, in Python integers so that nothing overflows or rounds."""

    doubled_wins: int  # 2 for a positive above a negative, 1 for a tie
    positives: int
    negatives: int

    def followed_by(self, higher: "_Count") -> "_Count":
        across = 2 * higher.positives * self.negatives
        return _Count(
            self.doubled_wins + higher.doubled_wins + across,
            self.positives + higher.positives,
            self.negatives + higher.negatives,
        )


def _count(packed: np.ndarray) -> _Count:
    """Counts the pairs of one half of `labelled_halves`."""
    where = np.flatnonzero((packed & packed.dtype.type(1)).astype(bool))
    positives = len(where)
    negatives = len(packed) - positives
    if not positives or not negatives:
        return _Count(0, positives, negatives)
    # The i-th positive, at `where[i]`, has where[i] - i negatives before it, tied ones included.
    before = int(where.sum()) - positives * (positives - 1) // 2

    # Only the first positive of a score can follow a negative of that score directly. (One at 0
    # follows nothing; index -1 then reads the largest entry, which is above its own.)
    values = packed[where]
    first = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    repeats = np.diff(np.append(first, positives))
    start, value = where[first], values[first]
    tied = packed[start - 1] == value - packed.dtype.type(1)
    start, value, repeats = start[tied], value[tied], repeats[tied]
    ties = int(((start - np.searchsorted(packed, value - packed.dtype.type(1))) * repeats).sum())
    return _Count(2 * before - ties, positives, negatives)
