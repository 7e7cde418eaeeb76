"""How well probabilities fit the labels, which AUC, seeing ranks alone, cannot say.

    log loss   mean of -(y ln p + (1 - y) ln(1 - p)), in nats
    NE         log loss / the log loss of always predicting the mean label: below 1 is of use
               (He et al. 2014, normalized entropy)
    PCOC       sum of p / sum of y: predicted clicks over clicks, 1 if calibrated as a whole
    ECE        mean over bins of equal row count of |mean p - mean y|, by weight

All means are weighted where there are weights. They exist only for probabilities.

Differences of two models, candidate minus baseline, are paired: what both get wrong alike cancels.
Either has the variance n / (n - 1) sum psi^2 over the n rows or clusters, where psi is how far one
of them pulls the difference D:

    log loss   w_i (l_C - l_B - D)_i / sum w
    PCOC       w_i (p_C - p_B - D y)_i / sum w y (the delta method for a ratio of sums)
"""

import math
from typing import Dict, List, NamedTuple, Optional

import numpy as np

from parity.inputs.rows import Rows
from parity.stats.intervals import Interval, normal_interval

ECE_BINS = 20


class Calibration(NamedTuple):
    """One model's fit to the labels."""

    logloss: float  # nats
    ne: float
    pcoc: float
    ece: float


class Reliability(NamedTuple):
    """What is predicted and what happens, in at most ECE_BINS bins of equal row count by score."""

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
    """A paired difference of two models' mean losses, candidate minus baseline."""

    delta: float
    standard_error: float  # by clusters where there are any
    interval: Interval  # 90 %


def losses(positive: np.ndarray, scores: np.ndarray) -> Optional[np.ndarray]:
    """float64 (n,): each row's log loss; None unless every score lies strictly inside (0, 1)."""
    if scores.min() <= 0 or scores.max() >= 1:
        return None
    loss = np.negative(scores, dtype=np.float64)
    np.log1p(loss, out=loss)
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
    mean_label = float(np.average(positive, weights=weights))
    mean_loss = float(np.average(loss, weights=weights))
    entropy = -mean_label * math.log(mean_label) - (1 - mean_label) * math.log1p(-mean_label)
    mean_score = float(np.average(scores.astype(np.float64), weights=weights))
    return Calibration(mean_loss, mean_loss / entropy, mean_score / mean_label, fit.ece)


def reliability(
    positive: np.ndarray, scores: np.ndarray, weights: Optional[np.ndarray]
) -> Reliability:
    """The bins of checked rows: bool (n,), probabilities (n,), float64 (n,) weights or None."""
    rows = len(scores)
    cuts = np.unique(np.arange(1, ECE_BINS) * rows // ECE_BINS)
    edges = np.unique(np.partition(scores, cuts)[cuts])  # tied scores share a bin
    bins = np.searchsorted(edges, scores, side="right")
    if weights is None:
        return reliability_of_sums(
            np.bincount(bins), np.bincount(bins, scores), np.bincount(bins, positive)
        )
    columns = (weights, weights * scores, weights * positive)
    return reliability_of_sums(*(np.bincount(bins, column) for column in columns))


def reliability_of_sums(mass: np.ndarray, score: np.ndarray, label: np.ndarray) -> Reliability:
    """From each bin's weight, and the weighted sums of its scores and labels."""
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
    return mean_difference(delta, pulls, clusters)


def pcoc_difference(rows: Rows) -> Optional[MeanDifference]:
    """Of checked rows; None unless both models give probabilities, in (0, 1)."""
    scores = rows.baseline, rows.candidate
    if min(s.min() for s in scores) <= 0 or max(s.max() for s in scores) >= 1:
        return None
    pulls = rows.candidate.astype(np.float64) - rows.baseline
    labels = rows.positive.astype(np.float64)
    if rows.weights is not None:
        pulls, labels = pulls * rows.weights, labels * rows.weights
    total = float(labels.sum())
    delta = float(pulls.sum()) / total
    return mean_difference(delta, (pulls - delta * labels) / total, rows.clusters)


def mean_difference(
    delta: float, pulls: np.ndarray, clusters: Optional[np.ndarray] = None
) -> MeanDifference:
    """From psi of every row, float64 (n,), and the rows' clusters, int (n,) codes from 0."""
    if clusters is not None:
        pulls = np.bincount(clusters, pulls)[np.bincount(clusters) > 0]
    units = len(pulls)
    error = math.sqrt(float((pulls * pulls).sum()) * units / (units - 1))
    return MeanDifference(delta, error, normal_interval(delta, error))
