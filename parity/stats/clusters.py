"""The variance of an AUC, or of a difference of two, where rows come in clusters.

Rows in G clusters vary together, such as the impressions of one user; G_p of them hold positives
and G_n negatives. With u_g and d_g, the sums of psi (parity.stats.delong) over cluster g's
positives and negatives (Obuchowski 1997, Biometrics 53, 567-578: S10, S01 and S11):

    Var(a) = G_p / (G_p - 1) sum u_g^2 + G_n / (G_n - 1) sum d_g^2 + 2 G / (G - 1) sum u_g d_g

Only sums over clusters occur in it, so they add up over blocks of whole clusters: that is how more
rows than fit memory are compared (parity.histogram.second_pass).
"""

import math
from typing import List, NamedTuple, Tuple

import numpy as np

from semisync.common.errors import BadInput


class Holding(NamedTuple):
    """How many clusters hold positives, negatives, and either."""

    positives: int
    negatives: int
    either: int

    @property
    def fewer(self) -> int:
        """How many hold the class that fewer hold."""
        return min(self.positives, self.negatives)


def holding(positive: np.ndarray, clusters: np.ndarray) -> Holding:
    """How many clusters hold each class: bool (n,) labels, int (n,) codes from 0."""
    held = [clusters_of(c, clusters) > 0 for c in (positive, ~positive)]
    return Holding(*(int(np.count_nonzero(codes)) for codes in (*held, held[0] | held[1])))


def clusters_of(chosen: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """int64 (codes,): how many of the chosen rows each cluster holds."""
    return np.bincount(clusters[chosen], minlength=int(clusters.max()) + 1)


def check_holding(held: Holding, kind: str = "cluster") -> Holding:
    """Raises BadInput if the clusters are too few for a standard error; `kind` names them."""
    if held.either == 1:
        raise BadInput(f"all rows are in one {kind}; a standard error needs two {kind}s or more")
    if held.fewer == 1:
        rarer = "positive" if held.positives == 1 else "negative"
        raise BadInput(
            f"all {rarer} rows are in one of the {held.either:,} {kind}s; a standard error needs "
            f"two {kind}s that hold each class, so compare rows of more of them"
        )
    return held


class ClusterSums(NamedTuple):
    """Sums over clusters for a variance, with u and d as above."""

    positives: float  # sum u^2
    negatives: float  # sum d^2
    across: float  # sum u d
    squares: float  # sum (u + d)^2
    fourths: float  # sum (u + d)^4
    held: Holding

    @classmethod
    def of(cls, psi: np.ndarray, positive: np.ndarray, clusters: np.ndarray) -> "ClusterSums":
        """Adds up rows of whole clusters: float64 (n,), bool (n,), int (n,) codes from 0."""
        size = int(clusters.max()) + 1
        up, down = (np.bincount(clusters[c], psi[c], size) for c in (positive, ~positive))
        both = up + down
        # Sums of products, not @: that would start BLAS's threads for too little work.
        return cls(
            positives=float((up * up).sum()),
            negatives=float((down * down).sum()),
            across=float((up * down).sum()),
            squares=float((both * both).sum()),
            fourths=float((both**4).sum()),
            held=holding(positive, clusters),
        )

    def joined(self, other: "ClusterSums") -> "ClusterSums":
        """The sums of these clusters and of others, which share none with them."""
        held = Holding(*(ours + theirs for ours, theirs in zip(self.held, other.held)))
        sums = {name: getattr(self, name) + getattr(other, name) for name in self._fields[:-1]}
        return ClusterSums(**sums, held=held)

    def parts(self) -> List[float]:
        """The negatives' and the positives' parts of the variance, without their covariance."""
        return [
            squares * count / (count - 1)
            for squares, count in (
                (self.negatives, self.held.negatives),
                (self.positives, self.held.positives),
            )
        ]

    def standard_error(self) -> float:
        """Obuchowski's."""
        shared = 2 * self.across * self.held.either / (self.held.either - 1)
        # Below 0 by rounding alone: 2 |u d| <= u^2 + d^2, and G / (G - 1) is the least factor.
        return math.sqrt(max(0.0, sum(self.parts()) + shared))

    def error_of_total(self) -> float:
        """The standard error of a mean over rows, whose classes do not matter."""
        return math.sqrt(self.squares * self.held.either / (self.held.either - 1))


def carried(squares: float, fourths: float) -> Tuple[float, float]:
    """How many rows or clusters carry a variance, and how far one of them pulls.

    From sum psi^2 and sum psi^4: `carriers` and `step` of parity.stats.delong.Spread.
    """
    if not fourths:
        return 0.0, 0.0
    return squares**2 / fourths, math.sqrt(fourths / squares)
