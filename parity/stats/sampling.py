"""From the placements of checked rows to the interval of a difference, of all rows or of a part."""

from typing import NamedTuple, Optional

import numpy as np

from parity.inputs.rows import Rows
from parity.stats.delong import Spread
from parity.stats.equivalence import (
    Interval,
    at_least,
    resolution,
    student_interval,
    student_p,
    unmoved_interval,
    unmoved_p,
)
from parity.stats.unmoved import Unmoved, unmoved


class Sampled(NamedTuple):
    """How surely a difference is known."""

    interval: Interval  # 90 %
    p: float  # of no difference
    still: Optional[Unmoved]  # where all rows see the same difference, and the error is 0


def sampled(rows: Rows, moved: np.ndarray, delta: float, found: Spread) -> Sampled:
    """The interval by Student's t, or by the rule of three where the error is 0.

    Args:
        moved: float64 (n,), candidate's placement - baseline's.
        delta: its mean over either class.
        found: its spread.
    """
    observations, error = found.observations, found.standard_error
    still = unmoved(rows, moved, found)
    if still is None:
        interval = student_interval(delta, error, found.freedom)
        if not found.freedom:
            interval = at_least(interval, delta, resolution(observations))
        return Sampled(interval, student_p(delta, error, found.freedom), None)
    interval = unmoved_interval(delta, observations, still.reach)
    p = unmoved_p(delta, observations, still.reach)
    return Sampled(at_least(interval, delta, resolution(observations)), p, still)
