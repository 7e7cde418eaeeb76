"""Sums over rows that give both models' log losses and the paired difference, and that add up.

They exist while every score lies strictly inside (0, 1). With r = candidate's loss - baseline's of
a row, and w its weight, 1 without weights:

    sum of w p for either model, w loss of the baseline, w r, w^2, w^2 r, w^2 r^2
"""

import math
from typing import Optional

import numpy as np

from parity.stats.calibration import MeanDifference
from parity.stats.intervals import normal_interval

_SCORES, _LOSS, _GAP, _SQUARES, _SQUARES_GAP, _SQUARES_GAP2 = slice(0, 2), 2, 3, 4, 5, 6


class LossSums:
    """The seven sums; `probabilities` says whether they exist."""

    def __init__(self) -> None:
        self.sums = np.zeros(7)
        self.probabilities = True

    def add(
        self,
        positives: np.ndarray,
        baseline: np.ndarray,
        candidate: np.ndarray,
        weights: Optional[np.ndarray] = None,
    ) -> None:
        """Adds rows: the numbers of the positive ones, and the columns."""
        if not self.probabilities:
            return
        scores = baseline, candidate
        if min(s.min() for s in scores) <= 0 or max(s.max() for s in scores) >= 1:
            self.probabilities = False
            return
        old, new = (_chance_of_label(positives, s) for s in scores)
        np.divide(old, new, out=new)
        gap = np.log(new, out=new)
        loss = np.log(old, out=old)
        # Sums of products, not @: that would start BLAS's threads for too little work.
        if weights is None:
            self.sums[_SCORES] += [s.sum(dtype=np.float64) for s in scores]
            self.sums[_LOSS] -= loss.sum()
            self.sums[_GAP] += gap.sum()
            self.sums[_SQUARES] += len(gap)
            self.sums[_SQUARES_GAP] += gap.sum()
            gap *= gap
            self.sums[_SQUARES_GAP2] += gap.sum()
            return
        self.sums[_SCORES] += [(s * weights).sum() for s in scores]
        self.sums[_LOSS] -= (loss * weights).sum()
        self.sums[_SQUARES] += (weights * weights).sum()
        pull = gap * weights
        self.sums[_GAP] += pull.sum()
        self.sums[_SQUARES_GAP] += (pull * weights).sum()
        self.sums[_SQUARES_GAP2] += (pull * pull).sum()

    def merge(self, other: "LossSums") -> None:
        """Adds another part's rows."""
        self.probabilities &= other.probabilities
        self.sums = self.sums + other.sums

    def loss(self, model: int) -> float:
        """The baseline's (0) or the candidate's (1) sum of w loss, in nats."""
        return float(self.sums[_LOSS] + (self.sums[_GAP] if model else 0))

    def scores(self, model: int) -> float:
        """Sum of w p."""
        return float(self.sums[_SCORES][model])

    def difference(self, rows: int, weight: float) -> MeanDifference:
        """The paired difference as `parity.stats.calibration.loss_difference` finds it."""
        mean = float(self.sums[_GAP]) / weight
        spread = self.sums[_SQUARES_GAP2] - 2 * mean * self.sums[_SQUARES_GAP]
        spread += mean**2 * self.sums[_SQUARES]
        error = math.sqrt(max(0.0, float(spread)) * rows / (rows - 1)) / weight
        return MeanDifference(mean, error, normal_interval(mean, error))


def _chance_of_label(positives: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """float64 (n,): the probability that the model gave to what came about."""
    chance = np.subtract(1, scores, dtype=np.float64)
    chance[positives] = scores[positives]
    return chance
