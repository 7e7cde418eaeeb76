"""The value that `tf.metrics.auc` shows, to reconcile a dashboard with the exact AUC.

TensorFlow 1's metric counts rows above 200 thresholds that divide [0, 1] evenly and joins the
points by straight lines. With rare positives most scores lie below the first few thresholds, so it
is off by thousandths, and a shift of the logits, which changes no rank, moves it as much. Use it to
explain an old figure, never to compare two models.
"""

from typing import Any, Optional

import numpy as np

from parity.inputs.checks import check_one_model
from semisync.common.errors import BadInput

THRESHOLDS = 200  # tf.metrics.auc's default
# Both of TensorFlow 1.15's metrics_impl.py, there kepsilon and epsilon.
_BEYOND = 1e-7  # by which the outermost thresholds lie outside [0, 1]
_EPSILON = 1e-6  # added to every denominator, and to the true positives


def tf1_compat_auc(labels: Any, scores: Any, weights: Any = None) -> float:
    """`tf.metrics.auc` with its defaults (ROC, trapezoidal), to its float32 rounding.

    TensorFlow sums in float32 and so drops whole rows above 2^24, depending on the batches; that
    part of its error is left out here.

    Args:
        labels, weights: as for `parity.auc`.
        scores: (n,) probabilities in [0, 1], compared in float32.

    Returns:
        A number in [0, 1].

    Raises:
        BadInput: as `parity.auc`, or a score outside [0, 1].

    Examples:
        >>> round(parity.tf1_compat_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
        0.75
    """
    positive, checked, weights = check_one_model(labels, scores, weights)
    outside = (checked < 0) | (checked > 1)
    if outside.any():
        index = int(outside.argmax())
        raise BadInput(
            f"scores[{index}] is {checked[index]}; tf.metrics.auc takes probabilities in [0, 1]"
        )
    return thresholded_auc(positive, checked, weights)


def thresholded_auc(
    positive: np.ndarray, scores: np.ndarray, weights: Optional[np.ndarray]
) -> float:
    """`tf1_compat_auc` of checked bool (n,) labels and scores within [0, 1]."""
    above = np.searchsorted(thresholds(), scores.astype(np.float32))
    amounts = (
        np.bincount(above[rows], None if weights is None else weights[rows], THRESHOLDS + 1)
        for rows in (positive, ~positive)
    )
    return area_above(*amounts)


def thresholds() -> np.ndarray:
    """float32 (THRESHOLDS,), rising."""
    inner = np.arange(1, THRESHOLDS - 1) / (THRESHOLDS - 1)
    return np.concatenate(([-_BEYOND], inner, [1 + _BEYOND])).astype(np.float32)


def area_above(positives: np.ndarray, negatives: np.ndarray) -> float:
    """The AUC from each class's amount above each threshold, (THRESHOLDS + 1,)."""
    hits, false_alarms = (np.cumsum(a[::-1])[::-1][1:] for a in (positives, negatives))
    # The lowest threshold is below every score, so its count is the class's total.
    true_rate = (hits + _EPSILON) / (hits[0] + _EPSILON)
    false_rate = false_alarms / (false_alarms[0] + _EPSILON)
    widths = false_rate[:-1] - false_rate[1:]
    return float((widths * (true_rate[:-1] + true_rate[1:]) / 2).sum())
