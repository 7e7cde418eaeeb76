"""One model's scores ranked against the labels: its AUC, its placements, its ROC curve.

The placement of a row (DeLong, DeLong & Clarke-Pearson 1988) is the share of the other class that
it is ranked rightly against:

    positive i:  V_i = (negatives below i + half of those tied with i) / all negatives
    negative j:  V_j = 1 - (positives below j + half of those tied with j) / all positives

so the mean of V over either class is the AUC. Mid-ranks over tie groups give every placement after
one sort (Sun & Xu 2014). With weights, "negatives" reads "weight of the negatives", and the mean
over a class is weighted as well.
"""

from typing import NamedTuple, Optional, Tuple

import numpy as np

from parity.ordering import TieGroups, tie_groups


class Ranking(NamedTuple):
    """Tie groups, and how much of each class lies before each of their edges.

    `positives` and `negatives` are int64 counts, or float64 sums of weights, (groups + 1,).
    """

    groups: TieGroups
    label: np.ndarray  # bool (n,): whether each row is positive, by rising score
    positives: np.ndarray
    negatives: np.ndarray

    def area(self) -> float:
        """The AUC; correctly rounded where the ranking counts rows."""
        won = np.diff(self.positives) * (self.negatives[1:] + self.negatives[:-1])
        return float(won.sum().item() / (2 * self.positives[-1].item() * self.negatives[-1].item()))

    def placements(self) -> np.ndarray:
        """float64 (n,): the placement of each row, in the rows' own order."""
        group = np.repeat(np.arange(len(self.groups.edges) - 1), np.diff(self.groups.edges))
        rising = (1 - _middle(self.positives))[group]
        rising[self.label] = _middle(self.negatives)[group[self.label]]
        placements = np.empty_like(rising)
        placements[self.groups.order] = rising
        return placements

    def tied_pairs(self) -> int:
        """How many positive-negative pairs of rows have one score; each counts half in the AUC."""
        edges = self.groups.edges
        sizes = np.diff(edges)
        shared = np.flatnonzero(sizes > 1)
        before = np.concatenate(([0], np.cumsum(self.label, dtype=np.int64)))
        positives = before[edges[shared + 1]] - before[edges[shared]]
        return int((positives * (sizes[shared] - positives)).sum())

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
    groups = tie_groups(scores)
    label = positive[groups.order]
    if weights is None:
        positives = _before(label, groups.edges, np.int64)
        return Ranking(groups, label, positives, groups.edges - positives)
    weight = weights[groups.order]
    return Ranking(
        groups,
        label,
        _before(np.where(label, weight, 0.0), groups.edges, np.float64),
        _before(np.where(label, 0.0, weight), groups.edges, np.float64),
    )


def _before(values: np.ndarray, edges: np.ndarray, dtype: type) -> np.ndarray:
    """Sum of `values` before each edge."""
    return np.concatenate((np.zeros(1, dtype), np.cumsum(values, dtype=dtype)))[edges]


def _middle(before: np.ndarray) -> np.ndarray:
    """Share of the total that lies below each group, with half of the group's own."""
    return (before[1:] + before[:-1]) / (2 * before[-1])
