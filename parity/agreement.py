"""How near two models' scores are to each other, row by row and as a whole.

These say why two AUCs differ, or that equal AUCs hide different scores: AUC sees ranks alone, so
a miscalibrated model can have the AUC of a good one.

    KS         largest distance between the two distribution functions of the scores
    Spearman   correlation of the ranks, ties at their middle rank

All are over rows, unweighted.
"""

from typing import NamedTuple, Optional

import numpy as np

from parity.ordering import TieGroups, tie_groups

BINS = 41  # odd, so that no difference at all falls in the middle of a bin


class Quantiles(NamedTuple):
    """Of the size of a difference, over rows."""

    p50: float
    p90: float
    p99: float
    max: float


class ScoreDifference(NamedTuple):
    """|candidate score - baseline score|, a histogram with its sign, and whole-sample figures."""

    p50: float
    p90: float
    p99: float
    max: float
    logit: Optional[Quantiles]  # |difference of logits|; None unless all scores lie in (0, 1)
    ks: float
    spearman: Optional[float]  # None where a model's scores are all alike
    edges: np.ndarray  # float64 (BINS + 1,), symmetric; the outermost bins also hold what is beyond
    counts: np.ndarray  # int64 (BINS,)


def score_difference(baseline: np.ndarray, candidate: np.ndarray) -> ScoreDifference:
    """Compares the scores of the same rows, float32 or float64 (n,)."""
    difference = candidate.astype(np.float64) - baseline
    size = _quantiles(difference)
    reach = size.p99 or size.max or 1.0
    edges = np.linspace(-reach, reach, BINS + 1)
    counts, _ = np.histogram(np.clip(difference, -reach, reach), edges)
    groups = tie_groups(baseline), tie_groups(candidate)
    return ScoreDifference(
        *size,
        logit=_logit_quantiles(baseline, candidate),
        ks=_farthest_apart(baseline, candidate, *groups),
        spearman=_correlation(*(group.mid_ranks() for group in groups)),
        edges=edges,
        counts=counts,
    )


def _quantiles(difference: np.ndarray) -> Quantiles:
    return Quantiles(*(float(q) for q in np.quantile(np.abs(difference), (0.5, 0.9, 0.99, 1))))


def _logit_quantiles(baseline: np.ndarray, candidate: np.ndarray) -> Optional[Quantiles]:
    if min(baseline.min(), candidate.min()) <= 0 or max(baseline.max(), candidate.max()) >= 1:
        return None
    old, new = (scores.astype(np.float64) for scores in (baseline, candidate))
    return _quantiles(np.log(new / old) - (np.log1p(-new) - np.log1p(-old)))


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
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale else None
