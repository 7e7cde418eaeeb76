"""From the evidence on a difference to a verdict: two one-sided tests (TOST).

Two models are equivalent when both "the difference is at least the margin" and "it is at most
minus the margin" are rejected at alpha = 0.05, that is, when the 90 % interval lies inside the
margin (Schuirmann 1987). A difference that is merely "not significant" shows nothing: a small
sample never shows one.

    EQUIVALENT       -margin < low and high < margin, and nothing else can hide a difference
    NOT_EQUIVALENT   the whole interval lies above margin, or below -margin, and few rows with a
                     large part in it cannot make the difference
    INCONCLUSIVE     anything else; more rows would settle it

Uncertainty outside the interval, which leaves it INCONCLUSIVE on either side of the margin:

1. Counts in histograms that are certain to no better than a twentieth of the margin.
2. The spread of the runs of a pipeline that has a single one (parity.runs).
3. Differences hidden by too few rows for the margin (`resolution` in parity.stats.intervals).
4. Differences that few carrying rows hide: the allowance of parity.stats.rare_failures.

And what can hide a difference where it lies inside:

5. A model that does not rank: labels or scores that are not the rows' own agree as well
   (parity.doubts).
6. Faults too rare to be seen: the floor of parity.stats.rare_failures.

Each is a Reason, and a Decision names the one that decides.

`decide` is the one place that does this, for rows and for counts, for all rows and for a part, for
one run per model and for several.
"""

import enum
import math
from statistics import NormalDist
from typing import NamedTuple, Optional

from parity.stats.intervals import (
    Interval,
    at_least,
    resolution,
    student_interval,
    student_p,
    unmoved_interval,
    unmoved_p,
    widened,
)

POWER = 0.8  # with which advice on rows or runs is to settle a comparison
_ROUGH = 20  # a certified bound is to be below so small a part of the margin


class Verdict(str, enum.Enum):
    """The answer; each member equals its own name as a string.

    Attributes:
        EQUIVALENT: the interval lies within the margin, and nothing else can hide a difference.
        NOT_EQUIVALENT: the whole interval lies beyond the margin.
        INCONCLUSIVE: anything else; more rows would settle it.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate, margin=0.02)
        >>> comparison.verdict == "EQUIVALENT"
        True
    """

    EQUIVALENT = "EQUIVALENT"
    NOT_EQUIVALENT = "NOT_EQUIVALENT"
    INCONCLUSIVE = "INCONCLUSIVE"


class Reason(str, enum.Enum):
    """Why a verdict is INCONCLUSIVE; of several that hold, the first here decides."""

    COUNTS = "counts"  # in histograms, which leave the difference uncertain
    INTERVAL = "interval"  # it lies across an edge of the margin
    TIES = "ties"  # a model gives many pairs of rows one score
    CHANCE = "chance"  # a model's AUC is not significantly off 0.5
    LONE_RUN = "lone_run"  # a side has one run, which cannot show how far its runs spread
    OBSERVATIONS = "observations"  # fewer than can vouch for the margin
    CARRIERS = "carriers"  # few rows carry the standard error, and three more could turn it
    RARE_FAULTS = "rare_faults"  # that hit no row may move the AUC by the margin


class Evidence(NamedTuple):
    """The evidence on a difference; in units of AUC where nothing else is said."""

    delta: float
    standard_error: float
    freedom: float  # degrees of freedom of the standard error; 0 where it is unknown
    observations: float  # effective rows, or clusters, of the class with fewer (stats.delong)
    reach: Optional[float] = None  # of `unmoved_interval`, where all rows see one difference
    narrowest: float = 0.0  # half-width of the interval at least
    bound: float = 0.0  # certified, of delta, where scores were counted in histograms
    allowance: float = 0.0  # for few rows that carry the standard error
    floor: float = 0.0  # hidden by rare faults; 0 where other evidence excludes them
    flaw: Optional[Reason] = None  # of a model that does not rank: TIES or CHANCE
    lone: bool = False  # whether it takes the runs of a side that has one to spread as the other's


class Decision(NamedTuple):
    """The decision by the evidence."""

    interval: Interval
    p: float  # of no difference, two-sided
    verdict: Verdict
    reason: Optional[Reason]  # None unless it is INCONCLUSIVE


def decide(evidence: Evidence, margin: float) -> Decision:
    """The interval of the difference, its p-value, and the verdict."""
    delta, observations, bound = evidence.delta, evidence.observations, evidence.bound
    surely = max(0.0, abs(delta) - bound)  # what is left of it whatever the counts hide
    if evidence.reach is not None:
        interval = unmoved_interval(delta, observations, evidence.reach)
        p = unmoved_p(surely, observations, evidence.reach)
    else:
        error = evidence.standard_error
        interval = student_interval(delta, error, evidence.freedom)
        p = student_p(surely, error, evidence.freedom) if error else 1.0
    interval = at_least(widened(interval, bound), delta, evidence.narrowest)
    verdict, reason = judge(interval, margin), _withheld(evidence, interval, margin)
    if reason is not None:
        verdict = Verdict.INCONCLUSIVE
    return Decision(interval, p, verdict, reason)


def _withheld(evidence: Evidence, interval: Interval, margin: float) -> Optional[Reason]:
    """Why there is no verdict, if there is none."""
    if too_rough(evidence.bound, margin):
        return Reason.COUNTS
    verdict = judge(interval, margin)
    if verdict is Verdict.INCONCLUSIVE:
        return Reason.INTERVAL
    inside = verdict is Verdict.EQUIVALENT
    # A flaw hides a difference and makes none: it bars EQUIVALENT alone.
    if inside and evidence.flaw is not None:
        return evidence.flaw
    if evidence.lone:
        return Reason.LONE_RUN
    # An interval narrower than its rows' resolution claims more than they can show.
    vouched = at_least(interval, sum(interval) / 2, resolution(evidence.observations))
    if judge(vouched, margin) is not verdict:
        return Reason.OBSERVATIONS
    if judge(widened(vouched, evidence.allowance), margin) is not verdict:
        return Reason.CARRIERS
    return Reason.RARE_FAULTS if inside and evidence.floor >= margin else None


def judge(interval: Interval, margin: float) -> Verdict:
    """The position of the interval relative to +-margin."""
    if -margin < interval.low and interval.high < margin:
        return Verdict.EQUIVALENT
    if interval.low > margin or interval.high < -margin:
        return Verdict.NOT_EQUIVALENT
    return Verdict.INCONCLUSIVE


def too_rough(bound: float, margin: float) -> bool:
    """Whether a certified bound leaves the difference uncertain by a twentieth of the margin."""
    return bound >= margin / _ROUGH


def p_of_equivalence(delta: float, interval: Interval, margin: float, confidence: float) -> float:
    """The p-value of "the difference is the margin or more, either way".

    The larger of two one-sided tests (Schuirmann 1987), from the normal distribution of which the
    interval's half-width is the quantile: below (1 - confidence) / 2 exactly where the interval
    lies inside the margin, so that it never contradicts the verdict.
    """
    return _below((abs(delta) - margin) / _error(delta, interval, confidence))


def p_of_difference(delta: float, interval: Interval, confidence: float) -> float:
    """The two-sided p-value of "there is none", likewise from the interval."""
    return 2 * _below(-abs(delta) / _error(delta, interval, confidence))


def _error(delta: float, interval: Interval, confidence: float) -> float:
    half = max(interval.high - delta, delta - interval.low)
    return half / NormalDist().inv_cdf((1 + confidence) / 2)


def _below(z: float) -> float:
    """The normal distribution function, with the tail that 1 + erf rounds away."""
    return math.erfc(-z / math.sqrt(2)) / 2
