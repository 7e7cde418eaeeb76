"""Intervals of a difference: at which confidence, of which width, and how narrow they may be.

1. The confidence holds for everything that is compared within a block:

       with parity.at_confidence(0.95):
           result = parity.compare(labels, baseline, candidate)

   Two one-sided tests at alpha pass where the interval of confidence 1 - 2 alpha lies inside the
   margin. The level is one thread's or task's, and a Comparison keeps the one that it was made at.
2. The width is Student's t, since a few rows do not know their own variance. With
   t = sqrt(df) tan(a), P(0 < T < t) = c * integral of cos(x)^(df - 1) from 0 to a, where
   c = Gamma((df + 1) / 2) / (Gamma(df / 2) sqrt(pi)). The integrand is smooth, so Simpson's rule on
   a thousand steps is exact to about 1e-12. Near the normal distribution it is too narrow for them,
   and Fisher's expansion about the normal quantile (Abramowitz & Stegun 26.7.5) is as exact.
3. Unseen events are judged by the rule of three, at 95 % whatever the confidence: if a share s
   of all differs, n observations miss it with probability (1 - s)^n, so s < -ln(0.05) / n (Hanley &
   Lippman-Hand 1983).
"""

import contextlib
import contextvars
import functools
import math
from statistics import NormalDist
from typing import Iterator, NamedTuple

import numpy as np

from semisync.common.errors import UsageError

CONFIDENCE = 0.9  # unless said otherwise
ALPHA = (1 - CONFIDENCE) / 2  # of the rule of three on unseen events
HITS = -math.log(ALPHA)  # 3.0: possible with none seen

# Degrees of freedom above which t is less than a thousandth above the normal's, and two terms of
# Fisher's expansion err by less than 1e-7.
_NEARLY_NORMAL = 1000
_STEPS = 1000

_LEVEL = contextvars.ContextVar("confidence", default=CONFIDENCE)


class Interval(NamedTuple):
    """The interval of a difference, at `confidence()`."""

    low: float
    high: float


def confidence() -> float:
    """The confidence of intervals, such as 0.9."""
    return _LEVEL.get()


def alpha() -> float:
    """The level of each one-sided test, such as 0.05."""
    return (1 - _LEVEL.get()) / 2


@contextlib.contextmanager
def at_confidence(level: float) -> Iterator[None]:
    """Sets the confidence of the intervals of all comparisons in the block; without it, 0.9.

    Args:
        level: from 0.5 to 0.99999.

    Yields:
        None.

    Raises:
        UsageError: the level is out of range.

    Examples:
        >>> with parity.at_confidence(0.95):
        ...     comparison = parity.compare(labels, baseline, candidate)
        >>> comparison.confidence
        0.95
    """
    if not 0.5 <= level <= 0.99999:
        raise UsageError(
            f"the confidence is {level}; that of an interval is expected, from 0.5 to 0.99999, "
            "such as 0.9"
        )
    before = _LEVEL.set(level)
    try:
        yield
    finally:
        _LEVEL.reset(before)


def normal_interval(delta: float, standard_error: float) -> Interval:
    """delta -+ 1.645 standard errors, at the usual confidence."""
    half = NormalDist().inv_cdf(1 - alpha()) * standard_error
    return Interval(delta - half, delta + half)


def student_interval(delta: float, standard_error: float, freedom: float) -> Interval:
    """delta -+ t standard errors.

    Args:
        freedom: degrees of freedom of the standard error; below 1 they count as 1.
    """
    if freedom > _NEARLY_NORMAL:
        return normal_interval(delta, standard_error)
    half = quantile(1 - alpha(), max(1.0, freedom)) * standard_error
    return Interval(delta - half, delta + half)


def unmoved_interval(delta: float, observations: float, reach: float) -> Interval:
    """The interval where every row sees the same difference, so that the standard error is 0.

    Zero is then the sample's figure, not a known value: a share `unseen` may differ from the
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


def at_least(interval: Interval, delta: float, half: float) -> Interval:
    """The interval, widened where it is narrower than delta -+ half."""
    return Interval(min(interval.low, delta - half), max(interval.high, delta + half))


def widened(interval: Interval, by: float) -> Interval:
    """The interval with `by` more on either side."""
    return Interval(interval.low - by, interval.high + by)


def half_in_errors(interval: Interval) -> float:
    """The standard error of which the interval is the normal one."""
    return (interval.high - interval.low) / 2 / NormalDist().inv_cdf(1 - alpha())


def unseen(observations: float) -> float:
    """The largest share that may differ where none of the observations does, the rule of three."""
    return min(1.0, HITS / observations)


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
    return math.floor(math.sqrt(HITS / margin)) + 1


def student_p(delta: float, standard_error: float, freedom: float) -> float:
    """The two-sided p-value of no difference; 1 without a degree of freedom."""
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
    if not reach:  # ranked alike; any delta is rounding
        return 1.0
    return min(1.0, 2 * (reach / (reach + abs(delta))) ** observations)


@functools.lru_cache(maxsize=4096)
def quantile(level: float, df: float) -> float:
    """Student's t with P(T < t) = level, for 0.5 < level < 1 and df >= 1."""
    if df > _NEARLY_NORMAL:
        z = NormalDist().inv_cdf(level)
        return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    scale, angle = _scale(df), 0.0
    for _ in range(100):  # Newton's steps from below: the probability is concave in the angle
        step = (level - 0.5 - _probability(angle, df)) / (scale * math.cos(angle) ** (df - 1))
        angle += step
        if step < 1e-15 * angle:
            break
    return math.sqrt(df) * math.tan(angle)


def two_sided(t: float, df: float) -> float:
    """P(|T| > |t|) of Student's t."""
    return max(0.0, 1 - 2 * _probability(math.atan(abs(t) / math.sqrt(df)), df))


def _probability(angle: float, df: float) -> float:
    """P(0 < T < sqrt(df) tan(angle)), `angle` below pi / 2."""
    values = np.cos(np.linspace(0, angle, _STEPS + 1)) ** (df - 1)
    simpson = values[0] + values[-1] + 4 * values[1::2].sum() + 2 * values[2:-1:2].sum()
    return float(_scale(df) * simpson * angle / _STEPS / 3)


def _scale(df: float) -> float:
    """c, as in the module's docstring."""
    return math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)
