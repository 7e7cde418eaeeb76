"""The Bayes-optimal AUC: that of the true click probabilities as scores.

With p_i the true probability of row i and independent labels, over all pairs i != j

    wins  = sum p_i (1 - p_j) [p_i > p_j],  a tie counting half
    AUC   = wins / sum p_i (1 - p_j)

which is the expected number of pairs that the truth ranks rightly over the expected number of
positive-negative pairs (Hanley & McNeil 1982, with the labels' probabilities as weights). It is a
property of the rows, not of the labels drawn; no model beats it on average.
"""

from typing import Optional

import numpy as np


def expected_auc(probabilities: np.ndarray) -> Optional[float]:
    """The expected AUC, over the labels, of the true probabilities used as scores.

    Args:
        probabilities: (n,) in [0, 1].

    Returns:
        A number in [0.5, 1], or None where no two rows can differ in label.
    """
    p = np.sort(np.asarray(probabilities, np.float64))
    if not len(p):
        return None
    first = np.flatnonzero(np.concatenate(([True], p[1:] != p[:-1])))
    positive = np.add.reduceat(p, first)
    negative = np.add.reduceat(1 - p, first)
    below = np.cumsum(negative) - negative
    # A row makes no pair with itself.
    itself = float(np.sum(p * (1 - p)))
    pairs = float(positive.sum() * negative.sum()) - itself
    wins = float(np.sum(positive * (below + negative / 2))) - itself / 2
    return wins / pairs if pairs > 1e-12 * len(p) else None
