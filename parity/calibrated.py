"""Whether two models are calibrated alike, which their AUCs cannot see."""

from typing import Optional

from parity.result import Comparison

WORTH = 0.01  # of the baseline's log loss, or of the positives: a smaller difference is not named


def calibrated_alike(comparison: Comparison) -> Optional[bool]:
    """Whether log loss and PCOC agree, to within WORTH or to within chance.

    Returns:
        None where neither side has any, as its scores are no probabilities.
    """
    old, new = comparison.baseline.calibration, comparison.candidate.calibration
    if old is None or new is None:
        return None if old is new else False
    differences = (
        (comparison.logloss_difference, old.logloss),
        (comparison.pcoc_difference, 1.0),
    )
    return not any(
        difference is not None
        and abs(difference.delta) > WORTH * scale
        and not difference.interval[0] <= 0 <= difference.interval[1]
        for difference, scale in differences
    )
