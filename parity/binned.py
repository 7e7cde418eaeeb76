"""From counts (parity.summary) to the same Comparison that rows give, with a certified bound.

Each row's placements are known to half the mass of its bin. The standard error comes from the
cells of coarse bins; by Minkowski's inequality the true one is at most theirs with the root mean
square of those halves added to each class's spread, and that upper value is reported.
"""

import math
from typing import NamedTuple, Optional

import numpy as np

from parity.agreement import BINS as DIFFERENCE_BINS
from parity.agreement import ScoreDifference, joint_scores
from parity.bins import COARSE_BINS, COARSE_BITS, middles
from parity.calibration import (
    ECE_BINS,
    Calibration,
    MeanDifference,
    Reliability,
    reliability_of_sums,
)
from parity.comparison import check_margin, notes_on_few
from parity.equivalence import (
    Interval,
    Verdict,
    at_least,
    judge,
    normal_interval,
    resolution,
    rows_to_settle,
)
from parity.joint import Cells
from parity.ranking import Ranking
from parity.result import Comparison, Side
from parity.summary import Summary
from semisync.errors import BadInput


class _Model(NamedTuple):
    """One model's bins in use, by rising score."""

    bins: np.ndarray  # their numbers
    counts: np.ndarray  # int64 (label, bins): rows
    mass: np.ndarray  # int64 or float64 (label, bins): rows, or their weights
    ranking: Ranking
    bound: float  # of the AUC's error


def compare_summary(summary: Summary, margin: float = 5e-4) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    The interval is the normal one of the upper standard error, widened by the certified bound.
    Score differences are those of the coarse bins' middles.

    Raises: BadInput for fewer than two rows of a class; UsageError for the margin.
    """
    check_margin(margin)
    rows, positives = summary.rows, summary.positives
    negatives = rows - positives
    if min(positives, negatives) < 2:
        raise BadInput(
            f"there are {positives} positive and {negatives} negative rows; a standard error needs "
            "two rows of each class"
        )
    old, new = (_model(summary, model) for model in (0, 1))
    bound = old.bound + new.bound
    delta = new.ranking.area() - old.ranking.area()
    cells = summary.joint.cells()
    placed = [_placements(summary, model, cells) for model in (0, 1)]
    moved = placed[1].values - placed[0].values - delta
    error = _upper_error(summary, cells, moved, placed[0].doubts + placed[1].doubts, bound)
    sides = [
        _side(summary, model, own, _own_error(summary, cells, own, placement))
        for model, (own, placement) in enumerate(zip((old, new), placed))
    ]
    interval = normal_interval(delta, error)
    interval = Interval(interval.low - bound, interval.high + bound)
    observations = min(positives, negatives)
    interval = at_least(interval, delta, resolution(observations))
    verdict = judge(interval, margin)
    notes = [
        f"Counted in histograms: the difference is certain to {bound:.1g} besides the sampling "
        "error, and the interval includes that."
    ]
    if bound >= margin / 20:
        notes.append(
            f"That is more than a twentieth of the margin ({margin / 20:.1g}): compare exactly, "
            "where memory allows, or state a wider margin beforehand."
        )
        if verdict is not Verdict.INCONCLUSIVE:
            verdict = Verdict.INCONCLUSIVE
    return Comparison(
        verdict=verdict,
        delta=delta,
        standard_error=error,
        interval=interval,
        margin=float(margin),
        baseline=sides[0],
        candidate=sides[1],
        rows=rows,
        positives=positives,
        standard_error_independent=error,
        clusters=None,
        design_effect=None,
        weighted=summary.weighted,
        rows_to_settle=rows_to_settle(rows, observations, interval, margin)
        if verdict is Verdict.INCONCLUSIVE and bound < margin / 20
        else None,
        logloss_difference=_loss_difference(summary),
        score_difference=_score_difference(summary, cells),
        notes=(*notes, *notes_on_few(observations, margin)),
        bound=bound,
    )


def _model(summary: Summary, model: int) -> _Model:
    used = np.flatnonzero(summary.rows_by_bin[model].any(axis=0))
    counts, mass = summary.rows_by_bin[model][:, used], summary.mass[model][:, used]
    negatives, positives = (np.concatenate(([0], np.cumsum(of_class))) for of_class in mass)
    empty = np.zeros(0, np.int64)
    shared = float((mass[0].astype(float) * mass[1]).sum())
    bound = shared / (2 * float(positives[-1]) * float(negatives[-1]))
    return _Model(used, counts, mass, Ranking(empty, empty > 0, positives, negatives), bound)


class _Placements(NamedTuple):
    """Of one model, by cell; float64 (cells,)."""

    values: np.ndarray
    doubts: np.ndarray  # half the mass of the row's bin: how far off the value may be


def _placements(summary: Summary, model: int, cells: Cells) -> _Placements:
    mass = summary.mass[model].reshape(2, COARSE_BINS, 1 << COARSE_BITS).sum(axis=2)
    share = mass / mass.sum(axis=1, keepdims=True)
    below = np.cumsum(share, axis=1) - share / 2
    bins, positive = cells.bins(model), cells.positive
    values = np.where(positive, below[0][bins], 1 - below[1][bins])
    return _Placements(values, np.where(positive, share[0][bins], share[1][bins]) / 2)


def _upper_error(
    summary: Summary, cells: Cells, values: np.ndarray, doubts: np.ndarray, slack: float
) -> float:
    """What the standard error is at most.

    Args:
        values: of each cell, less the estimate that they are to vary about.
        doubts: how far off each may be.
        slack: how far off the estimate may be.
    """
    variance = 0.0
    for label, of_class in enumerate((~cells.positive, cells.positive)):
        rows = float(cells.rows[of_class].sum())
        share = cells.squares[of_class] / float(summary.mass[0, label].sum()) ** 2
        apart = math.sqrt(float((share * values[of_class] ** 2).sum()))
        unsure = math.sqrt(float((share * doubts[of_class] ** 2).sum()))
        unsure += slack * math.sqrt(float(share.sum()))
        variance += (apart + unsure) ** 2 * rows / (rows - 1)
    return math.sqrt(variance)


def _own_error(summary: Summary, cells: Cells, own: _Model, placed: _Placements) -> float:
    """Of a model's AUC; not an upper value, as no verdict rests on it."""
    values = placed.values - own.ranking.area()
    return _upper_error(summary, cells, values, np.zeros(len(values)), 0.0)


def _side(summary: Summary, model: int, own: _Model, error: float) -> Side:
    fit = _reliability(summary, own)
    return Side(
        auc=own.ranking.area(),
        standard_error=error,
        calibration=_calibration(summary, model, own, fit),
        pr_auc=own.ranking.average_precision(),
        gauc=None,
        tf1_compat_auc=None,
        tied_pairs=int((own.counts[0] * own.counts[1]).sum()),
        curve=own.ranking.curve(),
        reliability=fit,
    )


def _reliability(summary: Summary, own: _Model) -> Optional[Reliability]:
    if not summary.losses.probabilities:
        return None
    of_bins, mass = own.counts.sum(axis=0), own.mass.sum(axis=0)
    group = (np.cumsum(of_bins) - of_bins) * ECE_BINS // int(of_bins.sum())
    columns = (mass, mass * middles(own.bins), own.mass[1])
    return reliability_of_sums(*(np.bincount(group, column) for column in columns))


def _calibration(
    summary: Summary, model: int, own: _Model, fit: Optional[Reliability]
) -> Optional[Calibration]:
    if fit is None:
        return None
    mass, positives = float(own.mass.sum()), float(own.mass[1].sum())
    mean = positives / mass
    entropy = -mean * math.log(mean) - (1 - mean) * math.log1p(-mean)
    loss = summary.losses.loss(model) / mass
    return Calibration(loss, loss / entropy, summary.losses.scores(model) / positives, fit.ece)


def _loss_difference(summary: Summary) -> Optional[MeanDifference]:
    if not summary.losses.probabilities:
        return None
    return summary.losses.difference(summary.rows, float(summary.mass[0].sum()))


def _score_difference(summary: Summary, cells: Cells) -> ScoreDifference:
    counts = cells.rows
    middle = middles(np.arange(COARSE_BINS), COARSE_BITS)
    old, new = (middle[cells.bins(model)] for model in (0, 1))
    difference = new - old
    order = np.argsort(np.abs(difference))
    size, before = np.abs(difference)[order], np.cumsum(counts[order])
    places = np.searchsorted(before, np.array([0.5, 0.9, 0.99, 1]) * before[-1])
    p50, p90, p99, most = (float(size[min(i, len(size) - 1)]) for i in places)
    reach = p99 or most or 1.0
    edges = np.linspace(-reach, reach, DIFFERENCE_BINS + 1)
    place = (np.clip(difference / reach, -1, 1) + 1) * (DIFFERENCE_BINS / 2)
    place = np.minimum(place.astype(np.intp), DIFFERENCE_BINS - 1)
    histogram = np.bincount(place, counts, DIFFERENCE_BINS)
    reached = [np.cumsum(fine.sum(axis=0)) for fine in summary.rows_by_bin]
    ks = float(np.abs(reached[0] - reached[1]).max()) / summary.rows
    return ScoreDifference(
        p50,
        p90,
        p99,
        most,
        logit=None,
        ks=ks,
        spearman=None,
        edges=edges,
        counts=histogram.astype(np.int64),
        joint=joint_scores(old, new, summary.losses.probabilities, counts),
    )
