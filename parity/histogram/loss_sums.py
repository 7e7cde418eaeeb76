"""Sums over rows that give both models' log losses and PCOCs, and their paired differences.

They exist while every score lies strictly inside (0, 1), and of logits. With weights w, 1 without:

    sum of w p for either model, w loss of the baseline, and the paired sums of the candidate's loss
    - the baseline's, of the candidate's score - the baseline's, and of the latter over the
    positive rows

Paired sums, over rows or over groups, give a paired difference of means, and add up. With r, one
row's part of the difference, and w, its weight, 1 without weights:

    n, sum of w, w r, w^2, w^2 r, w^2 r^2, w^4 r^4
"""

import math
from typing import Optional, Tuple

import numpy as np

from parity.inputs.rows import Rows
from parity.stats.calibration import FARTHEST_LOSS, MeanDifference, losses
from parity.stats.clusters import carried

SUMS = 7
COUNT, MASS, TOTAL, SQUARES, SQUARES_TOTAL, SQUARES2, FOURTHS = range(SUMS)
_SCORES, _LOSS = slice(0, 2), 2
_OF_LOSS, _OF_SCORE, _OF_POSITIVE = (slice(3 + SUMS * i, 3 + SUMS * (i + 1)) for i in range(3))


def sums_of(seen: np.ndarray, weights: Optional[np.ndarray] = None) -> np.ndarray:
    """float64 (SUMS,): the sums of r (`seen`, overwritten) and w, float64 (n,) each."""
    rows = len(seen)
    # Sums of products, not @: that would start BLAS's threads for too little work.
    if weights is None:
        mass = squares = float(rows)
        total = squares_total = seen.sum()
    else:
        mass, squares = weights.sum(), (weights * weights).sum()
        seen *= weights
        total, squares_total = seen.sum(), (seen * weights).sum()
    seen *= seen
    squares2 = seen.sum()
    seen *= seen
    return np.array([rows, mass, total, squares, squares_total, squares2, seen.sum()])


def difference_of(sums: np.ndarray, reach: float) -> MeanDifference:
    """The difference in the mean of r, as `parity.stats.calibration.mean_difference` finds it."""
    mean = float(sums[TOTAL] / sums[MASS])
    centred = sums[SQUARES2] - 2 * mean * sums[SQUARES_TOTAL] + mean**2 * sums[SQUARES]
    return from_squares(sums, mean, float(centred), float(sums[MASS]), reach)


def from_squares(
    sums: np.ndarray, delta: float, squares: float, mass: float, reach: float
) -> MeanDifference:
    """The difference from the sum of squares about it; all is divided by `mass`.

    The allowance is approximate, as the sums of powers are not about the difference.
    """
    rows = float(sums[COUNT])
    # A difference of sums: rounding may take it below 0.
    error = math.sqrt(max(0.0, squares) * rows / (rows - 1)) / mass
    _, step = carried(float(sums[SQUARES2]), float(sums[FOURTHS]))
    observations = float(sums[MASS] ** 2 / sums[SQUARES])
    return MeanDifference.of(delta, error, observations, step / mass, reach)


class LossSums:
    """The sums; `probabilities` says whether they exist."""

    def __init__(self, logits: Tuple[bool, bool] = (False, False)) -> None:
        self._logits = logits
        self.sums = np.zeros(3 + 3 * SUMS)
        self.probabilities = True

    def add(self, positives: np.ndarray, rows: Rows) -> None:
        """Adds rows; `positives` are the indices of the positive ones."""
        if not self.probabilities:
            return
        if not rows.fits():
            self.probabilities = False
            return
        scores, weights = (rows.probabilities(0), rows.probabilities(1)), rows.weights
        apart = np.subtract(scores[1], scores[0], dtype=np.float64)
        of_positive = apart[positives]
        loss, gap = _losses(positives, rows)
        if weights is None:
            self.sums[_SCORES] += [s.sum(dtype=np.float64) for s in scores]
            self.sums[_LOSS] += loss.sum()
        else:
            self.sums[_SCORES] += [(s * weights).sum() for s in scores]
            self.sums[_LOSS] += (loss * weights).sum()
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
        """The baseline's (0) or the candidate's (1) sum of w p."""
        return float(self.sums[_SCORES][model])

    def loss_difference(self) -> MeanDifference:
        """The difference in log loss, as `parity.stats.calibration.loss_difference` finds it."""
        return difference_of(self.sums[_OF_LOSS], FARTHEST_LOSS)

    def pcoc_difference(self) -> MeanDifference:
        """The difference in PCOC, as `parity.stats.calibration.pcoc_difference` finds it."""
        every, positive = self.sums[_OF_SCORE], self.sums[_OF_POSITIVE]
        total = float(positive[MASS])
        delta = float(every[TOTAL]) / total
        squares = every[SQUARES2] - 2 * delta * positive[SQUARES_TOTAL]
        squares += delta**2 * positive[SQUARES]
        return from_squares(every, delta, float(squares), total, float(every[MASS]) / total)


def _losses(positives: np.ndarray, rows: Rows) -> Tuple[np.ndarray, np.ndarray]:
    """float64 (n,): each row's log loss by the baseline, and the candidate's less that."""
    if any(rows.logits):
        old, new = (
            losses(rows.positive, scores, logits)
            for scores, logits in zip(rows.scores, rows.logits)
        )
        assert old is not None and new is not None  # as the rows fit
        return old, new - old
    old, new = (_chance_of_label(positives, scores) for scores in rows.scores)
    # The candidate's loss less the baseline's is ln(old / new): one logarithm, and no cancellation.
    np.divide(old, new, out=new)
    return np.negative(np.log(old, out=old), out=old), np.log(new, out=new)


def _chance_of_label(positives: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """float64 (n,): the model's probability of the observed label."""
    chance = np.subtract(1, scores, dtype=np.float64)
    chance[positives] = scores[positives]
    return chance
