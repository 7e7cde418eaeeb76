"""Paired differences of figures beyond AUC, candidate minus baseline, each with its interval.

    PCOC   sum w (p_C - p_B) / sum w y. A row, or a cluster, pulls it by
           psi_i = w_i (p_C - p_B - D y)_i / sum w y, D being the difference (the delta method for a
           ratio of sums)
    GAUC   sum n_g (AUC_C - AUC_B)_g / sum n_g over the groups g of both classes; a group pulls it
           by psi_g = n_g (d_g - D) / sum n_g

Either has the variance n / (n - 1) sum psi^2 over the n rows, clusters or groups. What both models
get wrong alike cancels, as it does in the difference of AUCs.
"""

import math
from typing import Optional

import numpy as np

from parity.inputs.rows import Rows
from parity.stats.calibration import MeanDifference
from parity.stats.equivalence import normal_interval
from parity.stats.grouped import WithinGroups


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
    pulls = (pulls - delta * labels) / total
    if rows.clusters is not None:
        sums = np.bincount(rows.clusters, pulls)
        pulls = sums[np.bincount(rows.clusters) > 0]
    return _difference(delta, pulls)


def gauc_difference(
    old: Optional[WithinGroups], new: Optional[WithinGroups]
) -> Optional[MeanDifference]:
    """Of the same rows; None without clusters, or with fewer than two that hold both classes."""
    if old is None or new is None:
        return None
    if len(old.areas) < 2:
        return None
    apart, share = new.areas - old.areas, old.weights / old.weights.sum()
    delta = float(apart @ share)
    return _difference(delta, share * (apart - delta))


def _difference(delta: float, pulls: np.ndarray) -> MeanDifference:
    error = math.sqrt(float(pulls @ pulls) * len(pulls) / (len(pulls) - 1))
    return MeanDifference(delta, error, normal_interval(delta, error))
