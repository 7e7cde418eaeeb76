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

Rows in G clusters that vary together, such as the impressions of one user, of which G_p hold
positives and G_n negatives; u_g and d_g are the sums of psi over cluster g's positives and
negatives (Obuchowski 1997, Biometrics 53, 567-578: S10, S01 and S11):

    Var(a) = G_p / (G_p - 1) sum u_g^2 + G_n / (G_n - 1) sum d_g^2 + 2 G / (G - 1) sum u_g d_g

The design effect is the second over the first: how many times too small the first is.

How much a variance can bear is told by three numbers:

    observations   of the class with fewer: (sum m)^2 / sum m^2 over its rows' weights m, or over
                   the weights that its clusters hold (Kish 1965): the count where all are equal
    freedom        for Student's t, Welch and Satterthwaite's (v_p + v_n)^2 / (v_p^2 / (n_p - 1) +
                   v_n^2 / (n_n - 1)), where v is a class's part of the variance and n its
                   observations (Brunner & Munzel 2000 for placements; Carter, Schnepel &
                   Steigerwald 2017 count clusters of unequal size by their effective number)
    carriers       (sum psi^2)^2 / sum psi^4 over rows or clusters: the rows that the variance would
                   rest on if all had a like part in it; its own relative standard error is about
                   1 / sqrt(carriers), as that of s2 is sqrt((kurtosis - 1) / n)
"""

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from semisync.common.errors import BadInput


class Spread(NamedTuple):
    """Standard errors of one estimate, in units of AUC, and what they rest on."""

    independent: float  # as if every row stood alone
    clustered: Optional[float]  # None without clusters
    observations: float  # effective rows of the class with fewer, or clusters that hold it
    freedom: float  # degrees of freedom; 0 where nobody knows the error
    carriers: float  # rows or clusters that carry the variance; 0 where it is 0
    step: float  # AUC: how far one of those pulls, root of sum psi^4 / sum psi^2

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
        clusters: int64 (n,) codes from 0, at least two of which hold each class, or None.
    """
    psi = pulls(values, estimate, positive, weights)
    squares = psi * psi
    of_classes = (squares[~positive], squares[positive])
    parts = [float(s.sum()) * len(s) / (len(s) - 1) for s in of_classes]
    independent = math.sqrt(sum(parts))
    observations = class_observations(positive, weights, clusters)
    if clusters is None:
        freedom = welch(parts, observations)
        return Spread(independent, None, min(observations), freedom, *carried(squares))
    sums = ClusterSums.of(psi, positive, clusters)
    both = sums.negatives + sums.positives
    freedom = min(welch(sums.parts(), observations), sums.held.either - 1)
    return Spread(
        independent,
        math.sqrt(sums.variance()),
        min(observations),
        freedom,
        *carried(both * both),
    )


def pulls(
    values: np.ndarray, estimate: float, positive: np.ndarray, weights: Optional[np.ndarray]
) -> np.ndarray:
    """float64 (n,): psi of every row; arguments as of `spread`."""
    psi = values - estimate
    if weights is None:
        positives = int(np.count_nonzero(positive))
        psi *= np.where(positive, 1 / positives, 1 / (len(positive) - positives))
    else:
        psi *= weights
        heavy = float(weights[positive].sum())
        psi *= np.where(positive, 1 / heavy, 1 / (float(weights.sum()) - heavy))
    return psi


def class_observations(
    positive: np.ndarray, weights: Optional[np.ndarray], clusters: Optional[np.ndarray]
) -> Tuple[float, float]:
    """Effective rows, or clusters, of the negatives and of the positives; arguments of `spread`."""
    found = []
    for of_class in (~positive, positive):
        amounts = None if weights is None else weights[of_class]
        if clusters is not None:
            amounts = np.bincount(clusters[of_class], amounts).astype(float)
        found.append(
            float(np.count_nonzero(of_class)) if amounts is None else effective_number(amounts)
        )
    return found[0], found[1]


class Holding(NamedTuple):
    """How many clusters hold positives, negatives, and either."""

    positives: int
    negatives: int
    either: int

    @property
    def fewer(self) -> int:
        """Of the class that fewer hold."""
        return min(self.positives, self.negatives)


def holding(positives: np.ndarray, negatives: np.ndarray) -> Holding:
    """From the rows, or weight, that each cluster holds of either class, by code."""
    size = max(len(positives), len(negatives))
    held = [np.pad(amounts > 0, (0, size - len(amounts))) for amounts in (positives, negatives)]
    return Holding(*(int(np.count_nonzero(codes)) for codes in (*held, held[0] | held[1])))


def check_holding(held: Holding, kind: str = "cluster") -> Holding:
    """Raises: BadInput where the clusters are too few for a standard error; `kind` names them."""
    if held.either == 1:
        raise BadInput(f"all rows are in one {kind}; a standard error needs two {kind}s or more")
    if held.fewer == 1:
        rarer = "positive" if held.positives == 1 else "negative"
        raise BadInput(
            f"all {rarer} rows are in one of the {held.either:,} {kind}s; a standard error needs "
            f"two {kind}s that hold each class, so compare rows of more of them"
        )
    return held


def obuchowski(positives: float, negatives: float, across: float, held: Holding) -> float:
    """The variance from sum u^2, sum d^2 and sum u d over clusters; two hold each class at least.

    It is no less than 0: the first two factors are no smaller than the third.
    """
    factors = [count / (count - 1) for count in held]
    return max(0.0, factors[0] * positives + factors[1] * negatives + 2 * factors[2] * across)


class ClusterSums(NamedTuple):
    """Sums of psi over each cluster's rows of either class, float64 (codes,)."""

    negatives: np.ndarray
    positives: np.ndarray
    held: Holding

    @classmethod
    def of(cls, psi: np.ndarray, positive: np.ndarray, clusters: np.ndarray) -> "ClusterSums":
        """Adds up rows: float64 (n,) from `pulls`, and columns as of `spread`."""
        size = int(clusters.max()) + 1
        sums, rows = [], []
        for of_class in (~positive, positive):
            codes = clusters[of_class]
            sums.append(np.bincount(codes, psi[of_class], size))
            rows.append(np.bincount(codes, minlength=size))
        return cls(sums[0], sums[1], holding(rows[1], rows[0]))

    def parts(self) -> List[float]:
        """The negatives' and the positives' parts of the variance, without what they share."""
        counts = (self.held.negatives, self.held.positives)
        return [
            float(sums @ sums) * count / (count - 1)
            for sums, count in zip((self.negatives, self.positives), counts)
        ]

    def variance(self) -> float:
        """Obuchowski's."""
        up, down = self.positives, self.negatives
        return obuchowski(float(up @ up), float(down @ down), float(up @ down), self.held)


def welch(variances: Sequence[float], observations: Sequence[float]) -> float:
    """Welch and Satterthwaite's degrees of freedom of a sum of two classes' variances."""
    total = sum(variances)
    least = [max(n - 1, 1e-9) for n in observations]
    if not total:
        return min(least)
    return total**2 / sum(part**2 / degrees for part, degrees in zip(variances, least))


def effective_number(amounts: np.ndarray) -> float:
    """(sum m)^2 / sum m^2 (Kish 1965)."""
    return float(amounts.sum()) ** 2 / float(amounts @ amounts)


def carried(squares: np.ndarray) -> Tuple[float, float]:
    """`carriers` and `step` of a Spread, from psi^2 of rows or clusters."""
    return carried_by(float(squares.sum()), float(squares @ squares))


def carried_by(squares: float, fourths: float) -> Tuple[float, float]:
    """The same from sum psi^2 and sum psi^4."""
    if not fourths:
        return 0.0, 0.0
    return squares**2 / fourths, math.sqrt(fourths / squares)
