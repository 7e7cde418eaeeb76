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

from parity.stats.level import CONFIDENCE, alpha
from parity.stats.student import quantile, two_sided

ALPHA = (1 - CONFIDENCE) / 2  # at which the rule of three tells what no row shows
POWER = 0.8  # with which `rows_to_settle` finds equal models equivalent
_NEARLY_NORMAL = 1000  # degrees of freedom, where t is less than a thousandth above the normal's


class Verdict(str, enum.Enum):
    """The answer; each member equals its own name as a string."""

    EQUIVALENT = "EQUIVALENT"
    NOT_EQUIVALENT = "NOT_EQUIVALENT"
    INCONCLUSIVE = "INCONCLUSIVE"


class Interval(NamedTuple):
    """Of a difference, at the confidence of parity.stats.level: 90 % unless said otherwise."""

    low: float
    high: float


def normal_interval(delta: float, standard_error: float) -> Interval:
    """delta -+ 1.645 standard errors, at the usual confidence (parity.stats.level)."""
    half = NormalDist().inv_cdf(1 - alpha()) * standard_error
    return Interval(delta - half, delta + half)


def student_interval(delta: float, standard_error: float, freedom: float) -> Interval:
    """delta -+ t standard errors, as few rows do not know their own.

    Args:
        freedom: degrees of freedom of the standard error; below 1 they count as 1.
    """
    if freedom > _NEARLY_NORMAL:
        return normal_interval(delta, standard_error)
    half = quantile(1 - alpha(), max(1.0, freedom)) * standard_error
    return Interval(delta - half, delta + half)


def half_in_errors(interval: Interval) -> float:
    """The standard error of which the interval is the normal one."""
    return (interval.high - interval.low) / 2 / NormalDist().inv_cdf(1 - alpha())


def unmoved_interval(delta: float, observations: float, reach: float) -> Interval:
    """The interval where every row sees the same difference, so that the standard error is 0.

    Zero is then what a small sample shows, not what is known: a share `unseen` may differ from the
    rest, each by at most reach + |delta|.

    Args:
        delta: the difference.
        observations: `parity.stats.delong.Spread.observations`.
        reach: how far a placement may move between the models, at most 1. Like a standard error it
            is taken from the sample: two models whose ranks differ only in the last digits of
            their scores swap neighbours, and move no placement far.
    """
    half = unseen(observations) * (reach + abs(delta))
    return Interval(delta - half, delta + half)


def student_p(delta: float, standard_error: float, freedom: float) -> float:
    """The two-sided p-value of no difference; 1 of a single cluster, whose error nobody knows."""
    if freedom <= 0:
        return 1.0
    t = abs(delta) / standard_error
    if freedom > _NEARLY_NORMAL:  # erfc has the tail that 1 - P(|T| < t) rounds away
        return math.erfc(t / math.sqrt(2))
    return two_sided(t, max(1.0, freedom))


def unmoved_p(delta: float, observations: float, reach: float) -> float:
    """The two-sided p-value of no difference where every row sees the same one.

    Without one a share of |delta| / (reach + |delta|) differs from the rest, which so many
    observations miss with probability (1 - share)^observations. Arguments: of `unmoved_interval`.
    """
    if not reach:  # ranked alike; what there is of a delta is rounding
        return 1.0
    return min(1.0, 2 * (reach / (reach + abs(delta))) ** observations)


def resolution(observations: float) -> float:
    """The narrowest half-width that a sample can vouch for, whatever it shows.

    A share `unseen` of all observations may differ although the sample shows none that does, and
    the sample's own placements cannot tell a move of less than one step, 1 / observations. So two
    models that rank five rows alike are not thereby the same model: at the default margin it takes
    78 observations, 3.0 / 78^2 < 0.0005.
    """
    return unseen(observations) / observations


def observations_to_resolve(margin: float) -> int:
    """The fewest observations whose `resolution` is below the margin."""
    return math.floor(math.sqrt(-math.log(ALPHA) / margin)) + 1


def at_least(interval: Interval, delta: float, half: float) -> Interval:
    """The interval, widened where it is narrower than delta -+ half."""
    return Interval(min(interval.low, delta - half), max(interval.high, delta + half))


def unseen(observations: float) -> float:
    """The largest share that may differ where none of the observations does, the "rule of three".

    If a share s of all differs, n observations miss it with probability (1 - s)^n, so with 95 %
    confidence s < -ln(0.05) / n (Hanley & Lippman-Hand 1983).
    """
    return min(1.0, -math.log(ALPHA) / observations)


def judge(interval: Interval, margin: float) -> Verdict:
    """Where the interval lies with respect to +-margin."""
    if -margin < interval.low and interval.high < margin:
        return Verdict.EQUIVALENT
    if interval.low > margin or interval.high < -margin:
        return Verdict.NOT_EQUIVALENT
    return Verdict.INCONCLUSIVE


def rows_to_settle(
    rows: int, observations: float, interval: Interval, margin: float, allowance: float = 0.0
) -> int:
    """Rows of the same kind with which two equal models pass four times out of five.

    Equal models pass with probability 2 Phi(margin/SE - 1.645) - 1, and SE falls with the root of
    the rows, so SE must fall to margin / (1.645 + 1.282). A true difference near the margin needs
    more, one far outside it fewer. `resolution` must fall below the margin as well.

    Args:
        rows: in the sample that gave `interval`, whose half-width is 1.645 SE.
        observations: `parity.stats.delong.Spread.observations` of those.
        allowance: of parity.stats.rare_failures, which falls with the rows: equal models pass where
            margin - allowance rows / N is 2.93 SE sqrt(rows / N), N the rows that it takes.
    """
    normal = NormalDist()
    error = half_in_errors(interval)
    reach = error * (normal.inv_cdf(1 - alpha()) + normal.inv_cdf((1 + POWER) / 2))
    shown = (interval.high - interval.low) / 2 > 1.01 * resolution(observations)
    root = (reach + math.sqrt(reach**2 + 4 * allowance * margin)) / (2 * margin)
    by_error = rows * root**2 if shown else 0
    by_resolution = rows * observations_to_resolve(margin) / observations
    return math.ceil(max(by_error, by_resolution))
