"""From counts (parity.summary) to the same Comparison that rows give, with a certified bound."""

import math
from typing import NamedTuple, Optional

import numpy as np

from parity.agreement import BINS, ScoreDifference
from parity.calibration import ECE_BINS, Calibration, MeanDifference
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
from parity.ranking import Ranking
from parity.result import Comparison, Side
from parity.summary import FINE_BITS, JOINT_BITS, Summary
from semisync.errors import BadInput


class _Model(NamedTuple):
    """One model's bins in use, by rising score."""

    bins: np.ndarray  # their numbers
    counts: np.ndarray  # int64 (label, bins)
    ranking: Ranking
    bound: float  # of the AUC's error


def compare_summary(summary: Summary, margin: float = 5e-4) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    The interval is the normal one of the upper standard error, widened by the certified bound.
    Score differences are those of the bins' middles, 1/256 of a score apart at most.

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
    old, new = (_model(summary.fine[model]) for model in (0, 1))
    bound = old.bound + new.bound
    delta = new.ranking.area() - old.ranking.area()
    error = _paired_error(summary)
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
        baseline=_side(summary, 0, old),
        candidate=_side(summary, 1, new),
        rows=rows,
        positives=positives,
        standard_error_independent=error,
        clusters=None,
        design_effect=None,
        weighted=False,
        rows_to_settle=rows_to_settle(rows, observations, interval, margin)
        if verdict is Verdict.INCONCLUSIVE and bound < margin / 20
        else None,
        logloss_difference=_loss_difference(summary),
        score_difference=_score_difference(summary, old, new),
        notes=(*notes, *notes_on_few(observations, margin)),
        bound=bound,
    )


def _model(fine: np.ndarray) -> _Model:
    used = np.flatnonzero(fine.any(axis=0))
    counts = fine[:, used]
    negatives, positives = (np.concatenate(([0], np.cumsum(of_class))) for of_class in counts)
    empty = np.zeros(0, np.int64)
    shared = float((counts[0].astype(float) * counts[1]).sum())
    bound = shared / (2 * float(positives[-1]) * float(negatives[-1]))
    return _Model(used, counts, Ranking(empty, empty > 0, positives, negatives), bound)


def _paired_error(summary: Summary) -> float:
    """The upper standard error of the difference, from the joint cells."""
    keys, counts = summary.cells()
    positive = (keys & np.uint64(1)).astype(bool)
    mask = np.uint64((1 << JOINT_BITS) - 1)
    shifts = (1 + JOINT_BITS, 1)
    moved, doubt = np.zeros(len(keys)), np.zeros(len(keys))
    for model, shift in enumerate(shifts):
        level = ((keys >> np.uint64(shift)) & mask).astype(np.intp)
        coarse = summary.fine[model].reshape(2, 1 << JOINT_BITS, -1).sum(axis=2)
        share = coarse / coarse.sum(axis=1, keepdims=True)
        below = np.cumsum(share, axis=1) - share / 2
        placement = np.where(positive, below[0][level], 1 - below[1][level])
        moved += placement if model else -placement
        doubt += np.where(positive, share[0][level], share[1][level]) / 2
    variance = 0.0
    for of_class in (positive, ~positive):
        total = float(counts[of_class].sum())
        weight = counts[of_class] / total
        mean = float(weight @ moved[of_class])
        apart = math.sqrt(float(weight @ (moved[of_class] - mean) ** 2))
        unsure = math.sqrt(float(weight @ doubt[of_class] ** 2))
        variance += (apart + unsure) ** 2 / (total - 1)
    return math.sqrt(variance)


def _side(summary: Summary, model: int, own: _Model) -> Side:
    below = [np.cumsum(c) - c / 2 for c in own.counts]
    placements = below[0] / own.counts[0].sum(), 1 - below[1] / own.counts[1].sum()
    auc, variance = own.ranking.area(), 0.0
    for count, placement in zip(own.counts[::-1], placements):
        total = int(count.sum())
        variance += float(count @ (placement - auc) ** 2) / total / (total - 1)
    return Side(
        auc=auc,
        standard_error=math.sqrt(variance),
        calibration=_calibration(summary, model, own),
        pr_auc=own.ranking.average_precision(),
        gauc=None,
        tf1_compat_auc=None,
        tied_pairs=int((own.counts[0] * own.counts[1]).sum()),
        curve=own.ranking.curve(),
    )


def _calibration(summary: Summary, model: int, own: _Model) -> Optional[Calibration]:
    if not summary.probabilities:
        return None
    rows, positives = summary.rows, summary.positives
    mean = positives / rows
    entropy = -mean * math.log(mean) - (1 - mean) * math.log1p(-mean)
    loss = float(summary.loss_sums[model]) / rows
    of_bins = own.counts.sum(axis=0)
    group = (np.cumsum(of_bins) - of_bins) * ECE_BINS // rows
    gap = of_bins * middles(own.bins, FINE_BITS) - own.counts[1]
    ece = float(np.abs(np.bincount(group, gap)).sum()) / rows
    return Calibration(loss, loss / entropy, float(summary.score_sums[model]) / positives, ece)


def _loss_difference(summary: Summary) -> Optional[MeanDifference]:
    if not summary.probabilities:
        return None
    rows = summary.rows
    total, squares = (float(value) for value in summary.difference)
    mean = total / rows
    error = math.sqrt(max(0.0, squares / rows - mean**2) / (rows - 1))
    return MeanDifference(mean, error, normal_interval(mean, error))


def _score_difference(summary: Summary, old: _Model, new: _Model) -> ScoreDifference:
    keys, counts = summary.cells()
    mask = np.uint64((1 << JOINT_BITS) - 1)
    scores = [
        middles(((keys >> np.uint64(shift)) & mask).astype(np.int64), JOINT_BITS)
        for shift in (1 + JOINT_BITS, 1)
    ]
    difference = scores[1] - scores[0]
    order = np.argsort(np.abs(difference))
    size, before = np.abs(difference)[order], np.cumsum(counts[order])
    places = np.searchsorted(before, np.array([0.5, 0.9, 0.99, 1]) * before[-1])
    p50, p90, p99, most = (float(size[min(i, len(size) - 1)]) for i in places)
    reach = p99 or most or 1.0
    edges = np.linspace(-reach, reach, BINS + 1)
    histogram, _ = np.histogram(np.clip(difference, -reach, reach), edges, weights=counts)
    reached = [np.cumsum(fine.sum(axis=0)) for fine in summary.fine]
    ks = float(np.abs(reached[0] - reached[1]).max()) / summary.rows
    return ScoreDifference(p50, p90, p99, most, None, ks, None, edges, histogram.astype(np.int64))


def middles(bins: np.ndarray, bits: int) -> np.ndarray:
    """float64: the score in the middle of each bin, undoing `parity.ordering.sortable_bits`."""
    low = bins.astype(np.uint32) << np.uint32(32 - bits)
    high = low | np.uint32((1 << (32 - bits)) - 1)
    return (_scores(low) + _scores(high)) / 2


def _scores(bits: np.ndarray) -> np.ndarray:
    sign = np.uint32(1 << 31)
    back = np.where(bits & sign, bits ^ sign, ~bits)
    scores = back.astype(np.uint32).view(np.float32).astype(np.float64)
    largest = float(np.finfo(np.float32).max)
    return np.nan_to_num(scores, nan=largest, posinf=largest, neginf=-largest)
