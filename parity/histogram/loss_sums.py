"""Sums over rows that give both models' log losses and PCOCs, and their paired differences.

They exist while every score lies strictly inside (0, 1). With weights w, 1 without:

    sum of w p for either model, w loss of the baseline, and the paired sums
    (parity.histogram.paired_sums) of the candidate's loss - the baseline's, of the candidate's
    score - the baseline's, and of the latter over the positive rows
"""

from typing import Optional

import numpy as np

from parity.histogram.paired_sums import (
    MASS,
    SQUARES,
    SQUARES2,
    SQUARES_TOTAL,
    SUMS,
    TOTAL,
    difference_of,
    from_squares,
    sums_of,
)
from parity.stats.calibration import FARTHEST_LOSS, MeanDifference

_SCORES, _LOSS = slice(0, 2), 2
_OF_LOSS, _OF_SCORE, _OF_POSITIVE = (slice(3 + SUMS * i, 3 + SUMS * (i + 1)) for i in range(3))


class LossSums:
    """The sums; `probabilities` says whether they exist."""

    def __init__(self) -> None:
        self.sums = np.zeros(3 + 3 * SUMS)
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
        apart = np.subtract(candidate, baseline, dtype=np.float64)
        of_positive = apart[positives]
        old, new = (_chance_of_label(positives, s) for s in scores)
        np.divide(old, new, out=new)
        gap = np.log(new, out=new)
        loss = np.log(old, out=old)
        if weights is None:
            self.sums[_SCORES] += [s.sum(dtype=np.float64) for s in scores]
            self.sums[_LOSS] -= loss.sum()
        else:
            self.sums[_SCORES] += [(s * weights).sum() for s in scores]
            self.sums[_LOSS] -= (loss * weights).sum()
        self.sums[_OF_LOSS] += sums_of(gap, weights)
        self.sums[_OF_SCORE] += sums_of(apart, weights)
        heavy = None if weights is None else weights[positives]
        self.sums[_OF_POSITIVE] += sums_of(of_positive, heavy)

    def merge(self, other: "LossSums") -> None:
        """Adds another part's rows."""
        self.probabilities &= other.probabilities
        self.sums = self.sums + other.sums

    def loss(self, model: int) -> float:
        """The baseline's (0) or the candidate's (1) sum of w loss, in nats."""
        return float(self.sums[_LOSS] + (self.sums[_OF_LOSS][TOTAL] if model else 0))

    def scores(self, model: int) -> float:
        """Sum of w p."""
        return float(self.sums[_SCORES][model])

    def loss_difference(self) -> MeanDifference:
        """As `parity.stats.calibration.loss_difference` finds it."""
        return difference_of(self.sums[_OF_LOSS], FARTHEST_LOSS)

    def pcoc_difference(self) -> MeanDifference:
        """As `parity.stats.calibration.pcoc_difference` finds it."""
        every, positive = self.sums[_OF_SCORE], self.sums[_OF_POSITIVE]
        total = float(positive[MASS])
        delta = float(every[TOTAL]) / total
        squares = every[SQUARES2] - 2 * delta * positive[SQUARES_TOTAL]
        squares += delta**2 * positive[SQUARES]
        return from_squares(every, delta, float(squares), total, float(every[MASS]) / total)


def _chance_of_label(positives: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """float64 (n,): the probability that the model gave to what came about."""
    chance = np.subtract(1, scores, dtype=np.float64)
    chance[positives] = scores[positives]
    return chance
