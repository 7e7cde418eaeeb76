"""How well probabilities fit the labels, which AUC, seeing ranks alone, cannot say.

    log loss   mean of -(y ln p + (1 - y) ln(1 - p)), in nats
    NE         log loss / the log loss of always predicting the mean label: below 1 is of use
               (He et al. 2014, normalized entropy)
    PCOC       sum of p / sum of y: predicted clicks over clicks, 1 if calibrated as a whole
    ECE        mean over bins of equal row count of |mean p - mean y|, by weight

All means are weighted where there are weights. They exist only for probabilities and logits.

Differences of two models, candidate minus baseline, are paired: common errors cancel.
Either has the variance n / (n - 1) sum psi^2 over the n rows or clusters, where psi is how far one
of them pulls the difference D:

    log loss   w_i (l_C - l_B - D)_i / sum w
    PCOC       w_i (p_C - p_B - D y)_i / sum w y (the delta method for a ratio of sums)

A requirement on one is judged as the difference in AUC is (parity.stats.equivalence), with
Student's t, an allowance for few rows that carry the error, and a floor for rare faults: 3.0 / n of
the rows or clusters, moved as far as a row can be.
"""

import math
from typing import Dict, List, NamedTuple, Optional

import numpy as np

from parity.inputs.logits import losses_of
from parity.inputs.rows import Rows
from parity.stats.clusters import carried
from parity.stats.delong import effective_number
from parity.stats.equivalence import Evidence
from parity.stats.intervals import HITS, Interval, student_interval, unseen

ECE_BINS = 20
# nats: a negative row's loss at the largest float32 below 1, which is 1 - 2^-24
FARTHEST_LOSS = 24 * math.log(2)


class Calibration(NamedTuple):
    """One model's fit to the labels."""

    logloss: float  # nats
    ne: float
    pcoc: float
    ece: float


class Reliability(NamedTuple):
    """Predicted and observed rates, in at most ECE_BINS bins of equal row count by score."""

    scores: np.ndarray  # float64 (bins,), rising: mean score
    labels: np.ndarray  # float64 (bins,): mean label
    shares: np.ndarray  # float64 (bins,): of the weight of all rows

    @property
    def ece(self) -> float:
        """Mean over bins of |mean score - mean label|, by weight."""
        return float(self.shares @ np.abs(self.scores - self.labels))

    def to_json(self) -> List[Dict[str, float]]:
        """A mapping per bin."""
        return [
            {"score": score, "label": label, "share": share}
            for score, label, share in zip(*(column.tolist() for column in self))
        ]


class MeanDifference(NamedTuple):
    """A paired difference of two models' means, candidate minus baseline."""

    delta: float
    standard_error: float  # by clusters where there are any
    interval: Interval
    freedom: float  # degrees of freedom of the standard error
    allowance: float  # for few rows or clusters that carry the standard error
    floor: float  # the largest move by faults too rare to have hit a row

    @classmethod
    def of(
        cls, delta: float, error: float, observations: float, step: float, reach: float
    ) -> "MeanDifference":
        """Args:
        observations: effective rows or clusters.
        step: how far one of those pulls that carry the error (parity.stats.delong.Spread).
        reach: how far a fault could move it that hits them all.
        """
        interval = student_interval(delta, error, observations - 1)
        floor = unseen(observations) * reach
        return cls(delta, error, interval, observations - 1, HITS * step, floor)

    @property
    def evidence(self) -> Evidence:
        """The evidence for `decide`."""
        return Evidence(
            delta=self.delta,
            standard_error=self.standard_error,
            freedom=self.freedom,
            # No `resolution`: that is of ranks, which move by steps of 1 / observations.
            observations=math.inf,
            allowance=self.allowance,
            floor=self.floor,
        )

    def times(self, scale: float) -> "MeanDifference":
        """The difference times `scale`, in another unit."""
        low, high = self.interval
        return MeanDifference(
            self.delta * scale,
            self.standard_error * scale,
            Interval(low * scale, high * scale),
            self.freedom,
            self.allowance * scale,
            self.floor * scale,
        )


def losses(positive: np.ndarray, scores: np.ndarray, logits: bool = False) -> Optional[np.ndarray]:
    """float64 (n,): each row's log loss; None unless every score lies strictly inside (0, 1), or
    they are logits."""
    if logits:
        return losses_of(positive, scores)
    if scores.min() <= 0 or scores.max() >= 1:
        return None
    loss = np.negative(scores, dtype=np.float64)
    np.log1p(loss, out=loss)  # ln(1 - p) of a small p, which 1 - p would round away
    loss[positive] = np.log(scores[positive].astype(np.float64))
    return np.negative(loss, out=loss)


def calibration(
    positive: np.ndarray,
    scores: np.ndarray,
    loss: np.ndarray,
    weights: Optional[np.ndarray],
    fit: Reliability,
) -> Calibration:
    """All four figures.

    Args:
        positive: bool (n,), both classes.
        scores: (n,) probabilities.
        loss: float64 (n,), from `losses`.
        weights: float64 (n,) above 0, or None.
        fit: from `reliability` of the same rows.
    """
    return calibration_of(
        float(np.average(positive, weights=weights)),
        float(np.average(loss, weights=weights)),
        float(np.average(scores.astype(np.float64), weights=weights)),
        fit,
    )


def calibration_of(label: float, loss: float, score: float, fit: Reliability) -> Calibration:
    """All four figures, from the means of the labels, the losses and the scores."""
    entropy = -label * math.log(label) - (1 - label) * math.log1p(-label)
    return Calibration(loss, loss / entropy, score / label, fit.ece)


def reliability(
    positive: np.ndarray, scores: np.ndarray, weights: Optional[np.ndarray]
) -> Reliability:
    """The bins of checked rows: bool (n,), probabilities (n,), float64 (n,) weights or None."""
    rows = len(scores)
    cuts = np.unique(np.arange(1, ECE_BINS) * rows // ECE_BINS)  # fewer where rows are few
    edges = np.unique(np.partition(scores, cuts)[cuts])  # tied scores share a bin
    bins = np.searchsorted(edges, scores, side="right")
    if weights is None:
        return reliability_of_sums(
            np.bincount(bins), np.bincount(bins, scores), np.bincount(bins, positive)
        )
    columns = (weights, weights * scores, weights * positive)
    return reliability_of_sums(*(np.bincount(bins, column) for column in columns))


def reliability_of_sums(mass: np.ndarray, score: np.ndarray, label: np.ndarray) -> Reliability:
    """The bins, from each one's weight and the weighted sums of its scores and labels."""
    used = mass > 0
    mass, score, label = mass[used], score[used], label[used]
    return Reliability(score / mass, label / mass, mass / mass.sum())


def loss_difference(
    baseline: np.ndarray,
    candidate: np.ndarray,
    weights: Optional[np.ndarray],
    clusters: Optional[np.ndarray],
) -> MeanDifference:
    """The paired difference of mean loss, whose error is far below that of either mean.

    Args:
        baseline, candidate: float64 (n,), the losses of the same rows.
        weights, clusters: as in `parity.stats.delong.spread`.
    """
    pulls = candidate - baseline
    delta = float(np.average(pulls, weights=weights))
    pulls -= delta
    if weights is not None:
        pulls *= weights
    pulls /= len(pulls) if weights is None else float(weights.sum())
    return mean_difference(delta, pulls, FARTHEST_LOSS, weights, clusters)


def pcoc_difference(rows: Rows) -> Optional[MeanDifference]:
    """The difference in PCOC; None unless both models' scores have a log loss."""
    if not rows.fits():
        return None
    pulls = rows.probabilities(1).astype(np.float64) - rows.probabilities(0)
    labels = rows.positive.astype(np.float64)
    if rows.weights is not None:
        pulls, labels = pulls * rows.weights, labels * rows.weights
    total = float(labels.sum())
    delta = float(pulls.sum()) / total
    mass = len(pulls) if rows.weights is None else float(rows.weights.sum())
    pulls = (pulls - delta * labels) / total
    return mean_difference(delta, pulls, mass / total, rows.weights, rows.clusters)


def mean_difference(
    delta: float,
    pulls: np.ndarray,
    reach: float,
    weights: Optional[np.ndarray] = None,
    clusters: Optional[np.ndarray] = None,
) -> MeanDifference:
    """A paired difference of means, from its rows.

    Args:
        delta: the difference.
        pulls: float64 (n,), psi of every row.
        reach: how far a fault could move delta that hits all rows.
        weights, clusters: as in `parity.stats.delong.spread`.
    """
    observations = len(pulls) if weights is None else effective_number(weights)
    if clusters is not None:
        held = np.bincount(clusters) > 0  # of some of the rows, some codes may not occur
        pulls = np.bincount(clusters, pulls)[held]
        observations = effective_number(np.bincount(clusters, weights)[held].astype(float))
    squares = pulls * pulls
    sums = float(squares.sum()), float((squares * squares).sum())
    return mean_difference_of(delta, *sums, len(pulls), observations, reach)


def mean_difference_of(
    delta: float, squares: float, fourths: float, units: int, observations: float, reach: float
) -> MeanDifference:
    """`mean_difference`, from sum psi^2 and sum psi^4 over `units` rows or clusters."""
    _, step = carried(squares, fourths)
    error = math.sqrt(squares * units / (units - 1))
    return MeanDifference.of(delta, error, observations, step, reach)
