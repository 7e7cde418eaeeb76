"""Sums over rows, or over groups, that give a paired difference of means, and that add up.

With r, one row's part of the difference, and w, its weight, 1 without weights:

    n, sum of w, w r, w^2, w^2 r, w^2 r^2, w^4 r^4
"""

import math
from typing import Optional

import numpy as np

from parity.stats.calibration import MeanDifference
from parity.stats.clusters import carried

SUMS = 7
COUNT, MASS, TOTAL, SQUARES, SQUARES_TOTAL, SQUARES2, FOURTHS = range(SUMS)


def sums_of(seen: np.ndarray, weights: Optional[np.ndarray] = None) -> np.ndarray:
    """float64 (SUMS,): of r and w, float64 (n,) each; `seen` is overwritten."""
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
    error = math.sqrt(max(0.0, squares) * rows / (rows - 1)) / mass
    _, step = carried(float(sums[SQUARES2]), float(sums[FOURTHS]))
    observations = float(sums[MASS] ** 2 / sums[SQUARES])
    return MeanDifference.of(delta, error, observations, step / mass, reach)
