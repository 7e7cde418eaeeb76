"""How near two models' scores are to each other, row by row and as a whole.

These say why two AUCs differ, or that equal AUCs hide different scores: AUC sees ranks alone, so
a miscalibrated model can have the AUC of a good one.

    KS         largest distance between the two distribution functions of the scores
    Spearman   correlation of the ranks, ties at their middle rank

All are over rows, unweighted.
"""

from typing import NamedTuple, Optional, Tuple

import numpy as np

from parity.inputs.logits import logit
from parity.inputs.rows import Rows
from parity.stats.sorting import TieGroups, tie_groups

CELLS = 40  # per axis of the joint counts
SAMPLE = 100_000  # rows that the joint counts take, at most
BINS = 41  # odd, so that no difference at all falls in the middle of a bin


class Quantiles(NamedTuple):
    """Quantiles of the absolute difference, over rows."""

    p50: float
    p90: float
    p99: float
    max: float


class JointScores(NamedTuple):
    """How many rows, or rows of a sample, have which pair of scores."""

    logits: bool  # whether `edges` are logits, else scores
    edges: np.ndarray  # float64 (CELLS + 1,), of both axes; the outermost also hold all beyond
    counts: np.ndarray  # float64 (CELLS, CELLS): baseline's cell, candidate's cell


class ScoreDifference(NamedTuple):
    """|candidate score - baseline score|, a histogram with its sign, and whole-sample figures."""

    p50: float
    p90: float
    p99: float
    max: float
    logit: Optional[Quantiles]  # |difference of logits|; None unless all rows have a log loss
    ks: float
    spearman: Optional[float]  # None where a model's scores are all alike
    edges: np.ndarray  # float64 (BINS + 1,), symmetric; the outermost bins also hold all beyond
    counts: np.ndarray  # int64 (BINS,)
    joint: JointScores


def score_difference(rows: Rows) -> ScoreDifference:
    """Compares the scores of the same rows, logits as their probabilities; ranks are as given."""
    baseline, candidate = rows.probabilities(0), rows.probabilities(1)
    difference = candidate.astype(np.float64) - baseline
    size = _quantiles(difference)
    reach = size.p99 or size.max or 1.0  # above 0, also where most or all scores are equal
    edges = np.linspace(-reach, reach, BINS + 1)
    counts, _ = np.histogram(np.clip(difference, -reach, reach), edges)
    ordered = rows.on_one_scale()
    groups = tie_groups(ordered[0]), tie_groups(ordered[1])
    return ScoreDifference(
        *size,
        logit=_quantiles(_logit_difference(rows)) if rows.fits() else None,
        ks=_farthest_apart(*ordered, *groups),
        spearman=_correlation(*(group.mid_ranks() for group in groups)),
        edges=edges,
        counts=counts,
        joint=_joint_of_sample(rows),
    )


def _quantiles(difference: np.ndarray) -> Quantiles:
    return Quantiles(*(float(q) for q in np.quantile(np.abs(difference), (0.5, 0.9, 0.99, 1))))


def _logit_difference(rows: Rows) -> np.ndarray:
    if any(rows.logits):
        old, new = _as_logits(rows)
        return new - old
    old, new = (rows.probabilities(m).astype(np.float64) for m in (0, 1))
    # The difference of two logits near 0 would lose the digits in which they differ.
    return np.log(new / old) - (np.log1p(-new) - np.log1p(-old))


def _as_logits(rows: Rows) -> Tuple[np.ndarray, np.ndarray]:
    """The logits of both models, float64 (n,) each, of rows that have a log loss."""
    old, new = (
        scores if given else logit(scores)
        for scores, given in zip(
            (rows.baseline.astype(np.float64), rows.candidate.astype(np.float64)), rows.logits
        )
    )
    return old, new


def joint_scores(
    baseline: np.ndarray,
    candidate: np.ndarray,
    logits: bool,
    counts: Optional[np.ndarray] = None,
) -> JointScores:
    """Counts pairs of scores, (n,) each, between the quantiles 0.001 and 0.999 of both.

    Args:
        logits: they are logits.
        counts: (n,), how many rows each pair stands for; 1 without.
    """
    pair = [scores.astype(np.float64) for scores in (baseline, candidate)]
    weights = np.ones(len(pair[0])) if counts is None else counts.astype(np.float64)
    both = np.concatenate(pair)
    order = np.argsort(both)
    before = np.cumsum(np.concatenate((weights, weights))[order])
    ends = np.searchsorted(before, np.array([0.001, 0.999]) * before[-1])
    low, high = both[order[ends]]
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, CELLS + 1)
    old, new = (np.clip(scores, low, high) for scores in pair)
    return JointScores(logits, edges, np.histogram2d(old, new, [edges, edges], weights=weights)[0])


def _joint_of_sample(rows: Rows) -> JointScores:
    """The joint scores of a sample, all that a figure shows, drawn with a fixed seed; as logits
    where all have a log loss."""
    logits = rows.fits()
    if len(rows.positive) > SAMPLE:
        chosen = np.random.default_rng(0).integers(0, len(rows.positive), SAMPLE)
        rows = rows.take(chosen)
    shown = _as_logits(rows) if logits else (rows.probabilities(0), rows.probabilities(1))
    return joint_scores(*shown, logits)


def _farthest_apart(
    baseline: np.ndarray, candidate: np.ndarray, old: TieGroups, new: TieGroups
) -> float:
    """The Kolmogorov-Smirnov statistic: the largest gap is at a score of one or the other."""
    sorted_scores = baseline[old.order], candidate[new.order]
    gap = 0
    for own, others, groups in (
        (sorted_scores[0], sorted_scores[1], old),
        (sorted_scores[1], sorted_scores[0], new),
    ):
        upper = groups.edges[1:]
        reached = np.searchsorted(others, own[upper - 1], side="right")
        gap = max(gap, int(np.abs(upper - reached).max()))
    return gap / len(baseline)


def _correlation(first: np.ndarray, second: np.ndarray) -> Optional[float]:
    first, second = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((first * first).sum() * (second * second).sum()))
    return float((first * second).sum()) / scale if scale else None
