"""How far an AUC, or the difference of two, may lie from its value over all possible rows.

Let x be the placements of one model (parity.stats.roc), or the difference of two models'
placements, and a its weighted mean, which is the same in both classes (an AUC, or the difference of
two). Each row pulls a away from the truth by about

    psi_i = w_i (x_i - a) / (sum of w over i's class)

Independent rows, n_c of them with weight in class c:

    Var(a) = sum over classes of n_c / (n_c - 1) * sum over the class of psi_i^2

which with weights 1 is s2(x|positives)/P + s2(x|negatives)/Q: DeLong, DeLong & Clarke-Pearson
(1988), paired when x is a difference. Weights are those of a sample (negatives kept with
probability 1/w, say), not repeat counts: a row of weight 2 is still one observation, and a common
factor changes nothing.

Rows in clusters, such as the impressions of one user, vary together: their variance is
Obuchowski's (parity.stats.clusters). The design effect is the second over the first: how many times
too small the first is.

Three numbers tell how much a variance can bear:

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
from typing import NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.inputs.rows import Rows
from parity.stats.clusters import ClusterSums, carried
from parity.stats.equivalence import Evidence
from parity.stats.intervals import HITS, resolution
from parity.stats.sorting import tie_groups

ROUNDING = 1e-14  # placement differences that differ at all do so by 1 / (2 rows) or more


class Spread(NamedTuple):
    """Standard errors of one estimate, in units of AUC, and their basis."""

    independent: float  # as if every row stood alone
    clustered: Optional[float]  # None without clusters
    observations: float  # effective rows of the class with fewer, or clusters that hold it
    freedom: float  # degrees of freedom; 0 where the error is unknown
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

    def lone(self) -> "Spread":
        """The spread as of a single observation, where fewer than two clusters hold a class."""
        return self._replace(observations=1.0, freedom=0.0)


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
    return spread_of(
        [(float(s.sum()), len(s)) for s in of_classes],
        float((squares * squares).sum()),
        class_observations(positive, weights, clusters),
        None if clusters is None else ClusterSums.of(psi, positive, clusters),
    )


def spread_of(
    classes: Sequence[Tuple[float, int]],
    fourths: float,
    observations: Tuple[float, float],
    sums: Optional[ClusterSums] = None,
) -> Spread:
    """`spread`, from sums over rows, negatives first, and over clusters.

    Args:
        classes: sum psi^2 over each class, and how many rows it has.
        fourths: sum psi^4 over all rows.
        observations: from `class_observations`.
        sums: of psi over clusters, where the rows come in any.
    """
    parts = [squares * rows / (rows - 1) for squares, rows in classes]
    if sums is None:
        clustered, freedom = None, welch(parts, observations)
        carriers, step = carried(sum(squares for squares, _ in classes), fourths)
    else:
        clustered = sums.standard_error()
        # A cluster with both classes counts in both of Welch's parts, but is one observation.
        freedom = min(welch(sums.parts(), observations), sums.held.either - 1)
        carriers, step = carried(sums.squares, sums.fourths)
    return Spread(
        independent=math.sqrt(sum(parts)),
        clustered=clustered,
        observations=min(observations),
        freedom=freedom,
        carriers=carriers,
        step=step,
    )


def evidence_of(rows: Rows, moved: np.ndarray, delta: float, moves: Spread) -> Evidence:
    """The rows' evidence on a difference, rare faults left aside (parity.stats.rare_failures).

    Where all rows see the same difference the standard error is 0 and says nothing. Two models that
    rank every row alike are such a case, and so are few rows that one model ranks right and the
    other wrong.

    Args:
        moved: float64 (n,), candidate's placement - baseline's.
        delta: its mean over either class.
        moves: its spread.
    """
    passed = None
    if float(np.ptp(moved)) <= ROUNDING:
        old, new = (tie_groups(scores).mid_ranks() for scores in (rows.baseline, rows.candidate))
        passed = float(np.abs(new - old).max())
    return evidence_of_moves(delta, moves, passed, len(moved) - rows.rarer)


def evidence_of_moves(
    delta: float, moves: Spread, passed: Optional[float], common: int
) -> Evidence:
    """`evidence_of` from the figures of all rows together.

    Args:
        passed: by how many ranks a row moves at most, where all see the same difference; None
            where they do not.
        common: rows of the class with more.
    """
    if passed is not None:
        # A row of the rarer class passes at most 2 `passed` rows of the other.
        reach: Optional[float] = min(1.0, 2 * passed / common)
    else:
        # Pulls that cancel within every cluster leave no error but that of rounding.
        varies = moves.clustered is None or moves.clustered > 1e-9 * moves.independent
        reach = None if varies else 1.0
    if reach is not None:
        moves = moves._replace(independent=0.0, clustered=None)
    return evidence_from(delta, moves, reach, alike=reach is not None)


def evidence_from(
    delta: float, moves: Spread, reach: Optional[float], alike: bool, bound: float = 0.0
) -> Evidence:
    """The evidence of a difference and its spread, from rows or counts.

    Args:
        reach: how far a placement may move, where all rows see one difference.
        alike: whether they do, so that the interval is no narrower than their number vouches for.
        bound: certified, of delta.
    """
    vouched = alike or not moves.freedom
    return Evidence(
        delta=delta,
        standard_error=moves.standard_error,
        freedom=moves.freedom,
        observations=moves.observations,
        reach=reach,
        narrowest=resolution(moves.observations) if vouched else 0.0,
        bound=bound,
        allowance=HITS * moves.step,
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
    numbers = []
    for of_class in (~positive, positive):
        amounts = None if weights is None else weights[of_class]
        if clusters is not None:
            amounts = np.bincount(clusters[of_class], amounts).astype(float)
        numbers.append(
            float(np.count_nonzero(of_class)) if amounts is None else effective_number(amounts)
        )
    return numbers[0], numbers[1]


def welch(variances: Sequence[float], observations: Sequence[float]) -> float:
    """Welch and Satterthwaite's degrees of freedom of a sum of two classes' variances."""
    total = sum(variances)
    least = [max(n - 1, 1e-9) for n in observations]  # an effective number may be 1
    if not total:
        return min(least)
    return total**2 / sum(part**2 / degrees for part, degrees in zip(variances, least))


def effective_number(amounts: np.ndarray) -> float:
    """(sum m)^2 / sum m^2 (Kish 1965)."""
    return float(amounts.sum()) ** 2 / float((amounts * amounts).sum())
