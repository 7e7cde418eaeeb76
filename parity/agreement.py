"""How near two models' scores are to each other, row by row, and to the labels.

These say why two AUCs differ, or that equal AUCs hide different scores: AUC sees ranks alone, so
a miscalibrated model can have the AUC of a good one.

    log loss = - mean of (y ln p + (1 - y) ln(1 - p)), in nats, weighted where there are weights
"""

from typing import NamedTuple, Optional

import numpy as np

BINS = 41  # odd, so that no difference at all falls in the middle of a bin


class ScoreDifference(NamedTuple):
    """Quantiles over rows of |candidate score - baseline score|, and a histogram with its sign."""

    p50: float
    p99: float
    max: float
    edges: np.ndarray  # float64 (BINS + 1,), symmetric; the outermost bins also hold what is beyond
    counts: np.ndarray  # int64 (BINS,)


def log_loss(
    positive: np.ndarray, scores: np.ndarray, weights: Optional[np.ndarray]
) -> Optional[float]:
    """Log loss in nats, or None unless every score is a probability strictly inside (0, 1)."""
    if scores.min() <= 0 or scores.max() >= 1:
        return None
    right = scores.astype(np.float64)
    losses = np.empty_like(right)
    losses[positive] = np.log(right[positive])
    losses[~positive] = np.log1p(-right[~positive])
    return -float(np.average(losses, weights=weights))


def score_difference(baseline: np.ndarray, candidate: np.ndarray) -> ScoreDifference:
    """Compares the scores of the same rows, float32 or float64 (n,)."""
    difference = candidate.astype(np.float64) - baseline
    size = np.abs(difference)
    p50, p99, largest = (float(value) for value in np.quantile(size, (0.5, 0.99, 1)))
    reach = p99 or largest or 1.0
    edges = np.linspace(-reach, reach, BINS + 1)
    counts, _ = np.histogram(np.clip(difference, -reach, reach), edges)
    return ScoreDifference(p50, p99, largest, edges, counts)
