"""The Comparison of counted rows: the same as of rows in memory, with a certified bound."""

import math
from typing import List, Optional, Tuple

import numpy as np

from parity.comparison import concluded
from parity.doubts import SAME_SCORES
from parity.histogram.bins import COARSE_BINS, COARSE_BITS, lower_edges, middles
from parity.histogram.estimate import Estimate, Model, models_of
from parity.histogram.joint import Cells
from parity.histogram.second_pass import ByGroup
from parity.histogram.summary import Summary
from parity.inputs.checks import check_margin, refuse_label
from parity.inputs.logits import logit, sigmoid
from parity.notes import why_no_counted_losses
from parity.result import Comparison, Side
from parity.stats.calibration import (
    ECE_BINS,
    Calibration,
    Reliability,
    calibration_of,
    reliability_of_sums,
)
from parity.stats.equivalence import too_rough
from parity.stats.rare_failures import Sample, rare_failures
from parity.stats.score_difference import BINS as DIFFERENCE_BINS
from parity.stats.score_difference import (
    JointScores,
    Quantiles,
    ScoreDifference,
    joint_scores,
)
from parity.verified import Verified
from semisync.common.errors import BadInput


def compare_summary(
    summary: Summary,
    margin: float = 5e-4,
    by_group: Optional[ByGroup] = None,
    estimate: Optional[Estimate] = None,
    verified: Optional[Verified] = None,
) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    The interval is that of the upper standard error (parity.histogram.estimate), widened by the
    certified bound. Score differences are those of the coarse bins' middles.

    Args:
        by_group: the result of a second pass over the rows, or None for independent rows.
        estimate: of the summary, where it was made before.
        verified: the record that stands for the rows that rare faults take.

    Raises:
        BadInput: fewer than two rows of a class.
        UsageError: the margin is out of range.
    """
    check_margin(margin)
    models = models_of(checked(summary))
    estimate = estimate or Estimate(summary, models)
    counted, of_classes = estimate.spread(), estimate.observations
    own_errors = estimate.own_errors()
    gaucs: List[Optional[float]] = [None, None]
    if by_group is not None:
        counted, of_classes = by_group.spread, by_group.observations
        own_errors, gaucs = by_group.own_errors, by_group.gaucs
    moves = counted.moves
    sample = Sample(
        rows=summary.rows,
        observations=of_classes,
        reaches=estimate.reaches(),
        carriers=moves.carriers,
        step=moves.step,
        alike=not summary.weighted and by_group is None,
    )
    loss = pcoc = None
    if summary.losses.probabilities:
        loss, pcoc = summary.losses.loss_difference(), summary.losses.pcoc_difference()
    if by_group is not None:
        loss, pcoc = by_group.loss_difference, by_group.pcoc_difference
    sides = [_side(estimate, m, models[m], own_errors[m], gaucs[m]) for m in (0, 1)]
    return concluded(
        estimate.evidence(counted),
        rare_failures(sample, margin),
        margin,
        verified,
        baseline=sides[0],
        candidate=sides[1],
        rows=summary.rows,
        positives=summary.positives,
        standard_error_independent=moves.independent,
        clusters=None if by_group is None else by_group.groups,
        design_effect=moves.design_effect,
        weighted=summary.weighted,
        logloss_difference=loss,
        pcoc_difference=pcoc,
        gauc_difference=None if by_group is None else by_group.gauc_difference,
        score_difference=_score_difference(summary),
        notes=notes_on_bound(estimate.bound, margin),
        unavailable=why_no_counted_losses(summary.losses.probabilities),
        bound=estimate.bound,
        warnings=(SAME_SCORES,) if summary.same else (),
    )


def checked(summary: Summary) -> Summary:
    """Raises BadInput for fewer than two rows of a class, and for scores that are the label."""
    if summary.rarer < 2:
        negatives = summary.rows - summary.positives
        raise BadInput(
            f"there are {summary.positives} positive and {negatives} negative rows; a standard "
            "error needs two rows of each class"
        )
    for name, of_labels in zip(
        ("the baseline's score", "the candidate's score"), summary.rows_by_bin
    ):
        bins = (np.flatnonzero(rows)[[0, -1]] for rows in of_labels)
        refuse_label(name, *(lower_edges(ends).tolist() for ends in bins))
    return summary


def notes_on_bound(bound: float, margin: float) -> List[str]:
    """The certainty of the difference, and the advice where it is too rough."""
    notes = [
        f"Counted in histograms: the difference is certain to {bound:.1g} besides the sampling "
        "error, and the interval includes that."
    ]
    if too_rough(bound, margin):
        notes.append(
            f"That is more than a twentieth of the margin ({margin / 20:.1g}): compare exactly, "
            "where memory allows, or state a wider margin beforehand."
        )
    return notes


def _side(
    estimate: Estimate,
    model: int,
    own: Model,
    error: Tuple[float, float],
    gauc: Optional[float],
) -> Side:
    fit = _reliability(estimate.summary, own, estimate.summary.logits[model])
    return Side(
        auc=estimate.aucs[model],
        standard_error=error[0],
        calibration=_calibration(estimate.summary, model, own, fit),
        pr_auc=own.ranking.average_precision(),
        gauc=gauc,
        tf1_compat_auc=estimate.summary.above[model].area(own.bins, own.mass),
        tied_pairs=int((own.counts[0] * own.counts[1]).sum()),
        curve=own.ranking.curve(),
        reliability=fit,
        freedom=error[1],
    )


def _reliability(summary: Summary, own: Model, logits: bool) -> Optional[Reliability]:
    if not summary.losses.probabilities:
        return None
    of_bins, mass = own.counts.sum(axis=0), own.mass.sum(axis=0)
    # By the place of a bin's first row: rows of one bin stay together, as ties do.
    group = (np.cumsum(of_bins) - of_bins) * ECE_BINS // int(of_bins.sum())
    scores = middles(own.bins)
    columns = (mass, mass * (sigmoid(scores) if logits else scores), own.mass[1])
    return reliability_of_sums(*(np.bincount(group, column) for column in columns))


def _calibration(
    summary: Summary, model: int, own: Model, fit: Optional[Reliability]
) -> Optional[Calibration]:
    if fit is None:
        return None
    mass, positives = float(own.mass.sum()), float(own.mass[1].sum())
    loss, score = summary.losses.loss(model), summary.losses.scores(model)
    return calibration_of(positives / mass, loss / mass, score / mass, fit)


def _score_difference(summary: Summary) -> ScoreDifference:
    cells = summary.joint.cells()
    middle = middles(np.arange(COARSE_BINS), COARSE_BITS)
    old, new = (sigmoid(middle) if logits else middle for logits in summary.logits)
    difference = new[cells.bins(1)] - old[cells.bins(0)]
    size, logits = _quantiles(difference, cells), None
    if summary.losses.probabilities:
        with np.errstate(invalid="ignore"):  # logits of bins outside (0, 1), which hold no rows
            old, new = (_as_shown(middle, summary, model) for model in (0, 1))
        logits = _quantiles(new[cells.bins(1)] - old[cells.bins(0)], cells)
    reach = size.p99 or size.max or 1.0
    edges = np.linspace(-reach, reach, DIFFERENCE_BINS + 1)
    place = (np.clip(difference / reach, -1, 1) + 1) * (DIFFERENCE_BINS / 2)
    place = np.minimum(place.astype(np.intp), DIFFERENCE_BINS - 1)  # the last edge is inside
    histogram = np.bincount(place, cells.rows, DIFFERENCE_BINS)
    return ScoreDifference(
        *size,
        logit=logits,
        ks=_farthest_apart(summary),
        spearman=_correlation(cells),
        edges=edges,
        counts=histogram.astype(np.int64),
        joint=_joint_scores(summary),
    )


def _quantiles(difference: np.ndarray, cells: Cells) -> Quantiles:
    """Quantiles of |difference|, float64 (cells,), over rows."""
    order = np.argsort(np.abs(difference))
    size, before = np.abs(difference)[order], np.cumsum(cells.rows[order])
    places = np.searchsorted(before, np.array([0.5, 0.9, 0.99, 1]) * before[-1])
    return Quantiles(*(float(size[min(i, len(size) - 1)]) for i in places))


def _correlation(cells: Cells) -> Optional[float]:
    """Spearman's, of the ranks of coarse bins; None where a model's scores are all in one."""
    ranks = []
    for model in (0, 1):
        bins = cells.bins(model)
        rows = np.bincount(bins, cells.rows)
        ranks.append((np.cumsum(rows) - (rows + rows.sum()) / 2)[bins])
    first, second = ranks
    products = ((first, second), (first, first), (second, second))
    across, *own = (float((a * b * cells.rows).sum()) for a, b in products)
    scale = math.sqrt(own[0]) * math.sqrt(own[1])
    return across / scale if scale else None


def _farthest_apart(summary: Summary) -> float:
    """The Kolmogorov-Smirnov statistic of the bins."""
    rows = summary.rows_by_bin[:, :, summary.span()].sum(axis=1)
    if summary.logits[0] == summary.logits[1]:
        reached = np.cumsum(rows, axis=1)
        return float(np.abs(reached[0] - reached[1]).max()) / summary.rows
    scores = middles(np.arange(summary.span().start, summary.span().stop))
    shown = np.concatenate([sigmoid(scores) if logits else scores for logits in summary.logits])
    order = np.argsort(shown, kind="stable")
    gap = np.cumsum(np.concatenate([rows[0], -rows[1]])[order])
    last = np.append(np.diff(shown[order]) > 0, True)  # of each score that occurs
    return float(np.abs(gap[last]).max()) / summary.rows


def _joint_scores(summary: Summary) -> JointScores:
    """Joint scores, with 4 x 4 cells as one, which is still finer than a figure shows."""
    cells, bits = summary.joint.cells(), 2
    side = COARSE_BINS >> bits
    place = (cells.bins(0) >> bits) * side + (cells.bins(1) >> bits)
    rows = np.bincount(place, cells.rows)
    used = np.flatnonzero(rows)
    old, new = (
        _as_shown(middles(bins, COARSE_BITS + bits), summary, model)
        for model, bins in enumerate((used // side, used % side))
    )
    return joint_scores(old, new, summary.losses.probabilities, rows[used])


def _as_shown(scores: np.ndarray, summary: Summary, model: int) -> np.ndarray:
    """Scores as logits where all rows have a log loss, else as probabilities or as they are."""
    if summary.losses.probabilities:
        return scores if summary.logits[model] else logit(scores)
    return sigmoid(scores) if summary.logits[model] else scores
