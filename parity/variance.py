"""How far an AUC, or the difference of two, may lie from its value over all possible rows.

Let x be the placements of one model, or the difference of two models' placements, and a its
weighted mean, which is the same in both classes (an AUC, or the difference of two). Each row pulls
a away from the truth by about

    psi_i = w_i (x_i - a) / (sum of w over i's class)

Independent rows, n_c of them with weight in class c:

    Var(a) = sum over classes of n_c / (n_c - 1) * sum over the class of psi_i^2

which with weights 1 is s2(x|positives)/P + s2(x|negatives)/Q: DeLong, DeLong & Clarke-Pearson
(1988), paired when x is a difference. Weights are those of a sample (negatives kept with
probability 1/w, say), not repeat counts: a row of weight 2 is still one observation, and a common
factor changes nothing.

Rows in G clusters that vary together, such as the impressions of one user (Obuchowski 1997):

    Var(a) = G / (G - 1) * sum over clusters of (sum over the cluster of psi_i)^2

The design effect is the second over the first: how many times too small the first is.
"""

import math
from typing import NamedTuple, Optional

import numpy as np


class Spread(NamedTuple):
    """Standard errors of one estimate, in units of AUC."""

    independent: float  # as if every row stood alone
    clustered: Optional[float]  # None without clusters

    @property
    def standard_error(self) -> float:
        """The one to act on: by clusters where there are any."""
        return self.independent if self.clustered is None else self.clustered

    @property
    def design_effect(self) -> Optional[float]:
        """Clustered variance over that of independent rows; None where it is undefined."""
        if self.clustered is None or self.independent == 0:
            return None
        return (self.clustered / self.independent) ** 2


def spread(
    values: np.ndarray,
    estimate: float,
    positive: np.ndarray,
    weights: Optional[np.ndarray] = None,
    clusters: Optional[np.ndarray] = None,
) -> Spread:
    """Standard errors of `estimate`, the class mean of `values`.

    Args:
        values: float64 (n,) placements, or differences of placements.
        estimate: their weighted mean over either class.
        positive: bool (n,), at least two rows of each class.
        weights: float64 (n,), all above zero, or None.
        clusters: int64 (n,) codes from 0, at least two in use, or None.
    """
    positives = int(np.count_nonzero(positive))
    negatives = len(positive) - positives
    psi = values - estimate
    if weights is None:
        psi *= np.where(positive, 1 / positives, 1 / negatives)
    else:
        psi *= weights
        heavy = float(weights[positive].sum())
        psi *= np.where(positive, 1 / heavy, 1 / (float(weights.sum()) - heavy))

    square = psi * psi
    of_positives = float(square[positive].sum())
    of_negatives = float(square[~positive].sum())
    variance = of_positives * positives / (positives - 1)
    variance += of_negatives * negatives / (negatives - 1)
    independent = math.sqrt(variance)
    if clusters is None:
        return Spread(independent, None)

    sums = np.bincount(clusters, weights=psi)
    used = int(np.count_nonzero(np.bincount(clusters)))
    return Spread(independent, math.sqrt(float(sums @ sums) * used / (used - 1)))
