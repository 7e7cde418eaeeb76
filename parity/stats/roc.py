"""One model's scores ranked against the labels: its exact AUC, its placements, its ROC curve.

    AUC = (pairs that the positive wins + half of the ties) / all positive-negative pairs

which is the Mann-Whitney statistic (Hanley & McNeil 1982). Without weights the pairs are counted
in integers, so the result is the correctly rounded quotient, whatever the order of the rows. With
weights a pair counts with the product of its two weights. Unlike `tf.metrics.auc`, nothing is
binned; unlike TorchRec's and FBGEMM's metrics, ties count half and so a constant score has AUC 0.5.

The placement of a row (DeLong, DeLong & Clarke-Pearson 1988) is the share of the other class that
it is ranked rightly against:

    positive i:  V_i = (negatives below i + half of those tied with i) / all negatives
    negative j:  V_j = 1 - (positives below j + half of those tied with j) / all positives

so the mean of V over either class is the AUC. Rows are put into levels that rise with the score;
those of one level are tied, or negatives with no positive between them. Counts by level
then give every placement (Sun & Xu 2014 do it with mid-ranks). With weights, "negatives" reads
"weight of the negatives", and the mean over a class is weighted as well.
"""

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from parity.inputs.checks import check_one_model
from parity.stats.sorting import look_up, sortable_bits, tie_groups

RARE = 8  # with at most one positive in so many rows, a look-up is faster than a sort of all rows


def auc(labels: Any, scores: Any, weights: Any = None) -> float:
    """Exact AUC of one model.

    Args:
        labels: (n,) 0 or 1, or bool; both classes must occur.
        scores: (n,) finite numbers, the higher the likelier a 1; probabilities or logits. float32
            is ranked as it is and is the fastest.
        weights: (n,) finite and >= 0, or None for ones.

    Returns:
        A number in [0, 1].

    Raises:
        BadInput: a column is not as above; the message names it and the first row at fault.

    Examples:
        >>> parity.auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        0.75
    """
    positive, scores, weights = check_one_model(labels, scores, weights)
    if weights is not None:
        return rank(scores, positive, weights).area()
    rare, common = np.sort(scores[positive]), np.sort(scores[~positive])
    swapped = len(rare) > len(common)
    if swapped:
        rare, common = common, rare
    pairs = len(rare) * len(common)
    # A score of the rarer class wins against those below it, and half against its equals.
    doubled = sum(int(np.searchsorted(common, rare, side).sum()) for side in ("left", "right"))
    return (2 * pairs - doubled if swapped else doubled) / (2 * pairs)


class Ranking(NamedTuple):
    """Each row's level, and how much of each class lies before each level's lower edge.

    Attributes:
        positives, negatives: int64 counts, or float64 sums of weights, (levels + 1,).
    """

    level: np.ndarray  # int32 or int64 (n,): rises with the score
    label: np.ndarray  # bool (n,)
    positives: np.ndarray
    negatives: np.ndarray

    def area(self) -> float:
        """The AUC; correctly rounded where the ranking counts rows."""
        won = np.diff(self.positives) * (self.negatives[1:] + self.negatives[:-1])
        return float(won.sum().item() / (2 * self.positives[-1].item() * self.negatives[-1].item()))

    def placements(self) -> np.ndarray:
        """float64 (n,): the placement of each row."""
        placements = (1 - _middle(self.positives))[self.level]
        positive = np.flatnonzero(self.label)
        placements[positive] = _middle(self.negatives)[self.level[positive]]
        return placements

    def average_precision(self) -> float:
        """Area under the precision-recall curve, as the step sum of (recall gained) x precision.

        sklearn's `average_precision_score`. Levels without a positive gain no recall.
        """
        caught = self.positives[-1] - self.positives[:-1]
        flagged = caught + (self.negatives[-1] - self.negatives[:-1])
        gained = np.diff(self.positives) / self.positives[-1]
        some = gained > 0
        return float((gained[some] * caught[some] / flagged[some]).sum())

    def tied_pairs(self) -> int:
        """How many positive-negative pairs of rows have one score; each counts half in the AUC."""
        levels = len(self.positives) - 1
        rows = np.bincount(self.level, minlength=levels)
        positives = np.bincount(self.level[self.label], minlength=levels)
        return int((positives * (rows - positives)).sum())

    def curve(self, points: int = 128) -> Tuple[np.ndarray, np.ndarray]:
        """The ROC curve, thinned: false and true positive rates, from (0, 0) to (1, 1).

        At most `points` + 1 float64 points, evenly spread along the curve, each exactly on it.
        """
        missed = self.positives / self.positives[-1]
        passed = self.negatives / self.negatives[-1]
        along = (missed + passed) / 2
        chosen = np.unique(np.searchsorted(along, np.linspace(0, along[-1], points + 1)))
        return 1 - passed[chosen][::-1], 1 - missed[chosen][::-1]


def rank(scores: np.ndarray, positive: np.ndarray, weights: Optional[np.ndarray]) -> Ranking:
    """Ranks checked scores, float32 or float64 (n,), against bool (n,) labels."""
    if RARE * np.count_nonzero(positive) <= len(positive):
        values = np.unique(sortable_bits(scores[np.flatnonzero(positive)]))
        levels = 2 * len(values) + 1
        level = np.empty(len(scores), np.int32)
        filled = 0
        for block in look_up(scores, values, np.arange(levels, dtype=np.int32)):
            level[filled : filled + len(block)] = block
            filled += len(block)
    else:
        groups = tie_groups(scores)
        levels = len(groups.edges) - 1
        level = np.empty(len(groups.order), np.int64)
        level[groups.order] = np.repeat(np.arange(levels), np.diff(groups.edges))
    if weights is None:
        of_all = np.bincount(level, minlength=levels)
        of_positives = np.bincount(level[positive], minlength=levels)
        of_negatives = of_all - of_positives
    else:
        of_positives, of_negatives = (
            np.bincount(level[rows], weights[rows], levels) for rows in (positive, ~positive)
        )
    return Ranking(level, positive, _before(of_positives), _before(of_negatives))


def _before(amounts: np.ndarray) -> np.ndarray:
    return np.concatenate((np.zeros(1, amounts.dtype), np.cumsum(amounts)))


def _middle(before: np.ndarray) -> np.ndarray:
    """Share of the total that lies below each level, with half of the level's own."""
    return (before[1:] + before[:-1]) / (2 * before[-1])
