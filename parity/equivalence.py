"""From a difference and its standard error to a verdict: two one-sided tests (TOST).

Two models are equivalent when both "the difference is at least the margin" and "it is at most
minus the margin" are rejected at alpha = 0.05, that is, when the 90 % interval lies inside the
margin (Schuirmann 1987). A difference that is merely "not significant" shows nothing: a small
sample never shows one.

    EQUIVALENT       -margin < low and high < margin
    NOT_EQUIVALENT   the whole interval lies above margin, or below -margin
    INCONCLUSIVE     anything else; more rows would settle it
"""

import enum
import math
from statistics import NormalDist
from typing import NamedTuple

ALPHA = 0.05  # of each one-sided test
CONFIDENCE = 1 - 2 * ALPHA  # of the interval
POWER = 0.8  # with which `rows_to_settle` finds equal models equivalent


class Verdict(str, enum.Enum):
    """The answer; each member equals its own name as a string."""

    EQUIVALENT = "EQUIVALENT"
    NOT_EQUIVALENT = "NOT_EQUIVALENT"
    INCONCLUSIVE = "INCONCLUSIVE"


class Interval(NamedTuple):
    """The 90 % interval of a difference of two AUCs."""

    low: float
    high: float


def normal_interval(delta: float, standard_error: float) -> Interval:
    """delta -+ 1.645 standard errors."""
    half = NormalDist().inv_cdf(1 - ALPHA) * standard_error
    return Interval(delta - half, delta + half)


def unmoved_interval(delta: float, observations: int, reach: float) -> Interval:
    """The interval where every row sees the same difference, so that the standard error is 0.

    Zero is then what a small sample shows, not what is known: `_unseen` observations may differ
    from the rest, each by at most reach + |delta|.

    Args:
        delta: the difference.
        observations: rows of the rarer class, or clusters if there are fewer.
        reach: how far a placement may move between the models, at most 1. Like a standard error it
            is taken from the sample: two models whose ranks differ only in the last digits of
            their scores swap neighbours, and move no placement far.
    """
    half = _unseen(observations) * (reach + abs(delta))
    return Interval(delta - half, delta + half)


def normal_p(delta: float, standard_error: float, observations: int) -> float:
    """The two-sided p-value of no difference; 1 of a single cluster, whose error nobody knows."""
    if observations == 1:
        return 1.0
    return math.erfc(abs(delta) / standard_error / math.sqrt(2))


def unmoved_p(delta: float, observations: int, reach: float) -> float:
    """The two-sided p-value of no difference where every row sees the same one.

    Without one a share of |delta| / (reach + |delta|) differs from the rest, which so many
    observations miss with probability (1 - share)^observations. Arguments: of `unmoved_interval`.
    """
    if not reach:  # ranked alike; what there is of a delta is rounding
        return 1.0
    return min(1.0, 2 * (reach / (reach + abs(delta))) ** observations)


def resolution(observations: int) -> float:
    """The narrowest half-width that a sample can vouch for, whatever it shows.

    A share `_unseen` of all observations may differ although the sample shows none that does, and
    the sample's own placements cannot tell a move of less than one step, 1 / observations. So two
    models that rank five rows alike are not thereby the same model: at the default margin it takes
    78 observations, 3.0 / 78^2 < 0.0005.
    """
    return _unseen(observations) / observations


def observations_to_resolve(margin: float) -> int:
    """The fewest observations whose `resolution` is below the margin."""
    return math.floor(math.sqrt(-math.log(ALPHA) / margin)) + 1


def at_least(interval: Interval, delta: float, half: float) -> Interval:
    """The interval, widened where it is narrower than delta -+ half."""
    return Interval(min(interval.low, delta - half), max(interval.high, delta + half))


def _unseen(observations: int) -> float:
    """The largest share that may differ where none of the observations does, the "rule of three".

    If a share s of all differs, n observations miss it with probability (1 - s)^n, so with 95 %
    confidence s < -ln(0.05) / n.
    """
    return min(1.0, -math.log(ALPHA) / observations)


def judge(interval: Interval, margin: float) -> Verdict:
    """Where the interval lies with respect to +-margin."""
    if -margin < interval.low and interval.high < margin:
        return Verdict.EQUIVALENT
    if interval.low > margin or interval.high < -margin:
        return Verdict.NOT_EQUIVALENT
    return Verdict.INCONCLUSIVE


def rows_to_settle(rows: int, observations: int, interval: Interval, margin: float) -> int:
    """Rows of the same kind with which two equal models pass four times out of five.

    Equal models pass with probability 2 Phi(margin/SE - 1.645) - 1, and SE falls with the root of
    the rows, so SE must fall to margin / (1.645 + 1.282). A true difference near the margin needs
    more, one far outside it fewer. `resolution` must fall below the margin as well.

    Args:
        rows: in the sample that gave `interval`, whose half-width is 1.645 SE.
        observations: of those, the rows of the rarer class, or the clusters.
    """
    normal = NormalDist()
    tail = normal.inv_cdf(1 - ALPHA)
    half = (interval.high - interval.low) / 2
    target = margin / (tail + normal.inv_cdf((1 + POWER) / 2))
    by_error = rows * (half / tail / target) ** 2 if half > 1.01 * resolution(observations) else 0
    by_resolution = rows * observations_to_resolve(margin) / observations
    return math.ceil(max(by_error, by_resolution))
