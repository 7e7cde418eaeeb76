"""The seeds' effect on a difference of AUCs: its variance, its power, its control.

A variance is a sum of parts, each (variance, degrees of freedom): those between the runs of either
side over their number, and that of the choice of rows, which comes last.
"""

import itertools
import math
from typing import NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.stats.equivalence import POWER
from parity.stats.intervals import alpha, quantile

MOST_RUNS = 1000  # beyond which asking for more runs is not advice


class Control(NamedTuple):
    """The baseline's runs against one another."""

    pairs: int
    mean: float  # of |difference in AUC|
    largest: float
    beyond_margin: int  # pairs that differ by more than the margin


def control_of(aucs: Sequence[float], margin: float) -> Optional[Control]:
    """The spread of the runs' AUCs; None for a single run."""
    gaps = [abs(first - second) for first, second in itertools.combinations(aucs, 2)]
    if not gaps:
        return None
    beyond = sum(gap > margin for gap in gaps)
    return Control(len(gaps), float(np.mean(gaps)), max(gaps), beyond)


def satterthwaite(parts: Sequence[Tuple[float, float]]) -> Tuple[float, float]:
    """Standard error and degrees of freedom of a sum of (variance, its degrees of freedom)."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return 0.0, float(min(df for _, df in parts))
    freedom = total**2 / sum(variance**2 / df for variance, df in parts)
    return math.sqrt(total), freedom


def freedom_of_lone(parts: Sequence[Tuple[float, float]]) -> float:
    """Degrees of freedom where a part is of few runs of one side, such as two against one.

    Beside a part that is known well Satterthwaite's interval is too narrow then: with two runs it
    holds the truth in .83 of cases instead of .90. It is as wide here as the root of the sum of
    each part's own, squared, which holds .90 or more whatever the parts are.
    """
    error, most = satterthwaite(parts)
    least = min(df for _, df in parts)
    if not error:
        return least
    tail = 1 - alpha()
    wanted = math.sqrt(sum(quantile(tail, df) ** 2 * variance for variance, df in parts)) / error
    for _ in range(60):  # the quantile falls with the degrees of freedom
        middle = (least + most) / 2
        least, most = (middle, most) if quantile(tail, middle) > wanted else (least, middle)
    return least


def power(parts: Sequence[Tuple[float, float]], margin: float) -> float:
    """Chance that two equal pipelines are found EQUIVALENT with these variances.

    The estimated error varies about the true one as the root of a chi-square over its degrees of
    freedom; the chance is the mean over that.
    """
    error, freedom = satterthwaite(parts)
    if not error:
        return 1.0
    tail = quantile(1 - alpha(), freedom)
    spread_out = 6 * math.sqrt(2 / freedom)
    # Ratios of the estimated variance to the true one, six of their standard deviations either way.
    ratios = np.linspace(max(1e-4, 1 - spread_out), 1 + spread_out, 801)
    density = (freedom / 2 - 1) * np.log(ratios) - freedom * ratios / 2
    density = np.exp(density - density.max())  # up to a factor, which the mean divides out
    room = (margin - tail * error * np.sqrt(ratios)) / error
    passes = np.array([max(0.0, math.erf(value / math.sqrt(2))) for value in room])
    return float((density * passes).sum() / density.sum())


def runs_to_settle(
    variances: Sequence[float], by_rows: Tuple[float, float], margin: float
) -> Optional[int]:
    """Runs per side that give equal pipelines `POWER`; None where only more rows could."""

    def enough(runs: int) -> bool:
        parts = [(value / runs, runs - 1) for value in variances]
        return power([*parts, by_rows], margin) >= POWER

    if power([by_rows], margin) < POWER or not enough(MOST_RUNS):
        return None
    low, high = 1, MOST_RUNS  # low does not suffice: a single run shows no variance
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
