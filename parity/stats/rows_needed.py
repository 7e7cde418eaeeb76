"""How many rows of the same kind it takes until a comparison is decided, four times out of five.

The promise is on rows that are drawn again, so all that the sample leaves uncertain counts. Let K
rows or clusters carry the standard error SE (parity.stats.delong), each pulling by SE / sqrt(K),
and N be t times as many rows as there are:

1. N rows hold Poisson(t g) carriers, where g is Gamma(K + 1/2), the posterior by Jeffreys' prior:
   a few do not know their own rate. Each pulls by 1 / t of its present pull.
2. They pull up at the rate that the sample shows, Beta(u + 1/2, K - u + 1/2) of u up. Where many
   carry the error, and the interval lies across an edge of the margin, the models are taken to be
   equal instead, as many up as down: what is near the margin in truth takes any number of rows.
3. N rows hold Poisson(t h) observations of the class with fewer, where h is Gamma(n + 1/2). On them
   rest the floor of rare faults and the degrees of freedom of Student's t, which grow with t.
4. N is the least that is decided in POWER of such draws, by parity.stats.equivalence.

A row pulls from one end of the ranks to the other at most, but a cluster or a weighted row may be
of any size, and the next one larger than all before. So counts of them are taken to vary by UNEQUAL
times as much, and where they are few, nothing is taken to grow or to fall with the rows.
"""

import math
from statistics import NormalDist
from typing import NamedTuple, Optional, Union

import numpy as np

from parity.stats.equivalence import POWER, Evidence, Reason
from parity.stats.intervals import HITS, alpha, quantile

FEW_CARRIERS = 15  # the standard error then errs by 1 / (2 sqrt(15)), an eighth, and more
FEW_CLUSTERS = 30  # the largest of which may count for more than all the others
MOST = 10_000  # times the rows, beyond which no number is named
SURER = 0.85  # in place of POWER where the rows show at which rate models differ
UNEQUAL = 8.0

_DRAWS = 10_000
_COUNTED = 0.9  # how surely `rows_to_count` gives as many observations


class Basis(NamedTuple):
    """The inputs of the advice beside the evidence."""

    rows: int
    carriers: float
    reach: float  # of rare faults (parity.stats.rare_failures); 0 where a record excludes them
    alike: bool  # whether no row outweighs the others by far, as clusters and weighted rows do


def rows_to_settle(
    basis: Basis, evidence: Evidence, reason: Reason, margin: float
) -> Optional[int]:
    """How many rows decide the comparison; None where no honest number can be named."""
    equal = taken_to_be_equal(basis.carriers, reason)
    # `low` is the log of times the rows: equal models may need a thousandth of what there is.
    wanted, low = (POWER, -7.0) if equal else (SURER, 0.0)
    if _chance(MOST, basis, evidence, reason, margin) < wanted:
        return None
    high = math.log(MOST)
    # `_chance` draws the same numbers for any `times`, so that bisection meets no noise.
    while high - low > 1e-3:
        middle = (low + high) / 2
        enough = _chance(math.exp(middle), basis, evidence, reason, margin) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return math.ceil(basis.rows * math.exp(high))


def rows_to_count(rows: int, observations: float, needed: int, alike: bool) -> Optional[int]:
    """Rows that hold so many observations, nine times out of ten; None as `rows_to_settle`."""
    if _too_few(observations, alike):
        return None
    # needed = mean - z sd, where the variance is mean + mean^2 / observations.
    z = NormalDist().inv_cdf(_COUNTED) * (1.0 if alike else math.sqrt(UNEQUAL))
    spare = 1 - z**2 / observations
    if spare <= 0:
        return None
    middle = needed + z**2 / 2
    mean = (middle + math.sqrt(middle**2 - spare * needed**2)) / spare
    return math.ceil(rows * mean / observations)


def taken_to_be_equal(carriers: float, reason: Optional[Reason]) -> bool:
    """Whether the advice is on models that do not differ."""
    return reason is Reason.INTERVAL and not 0 < carriers < FEW_CARRIERS


def _too_few(count: float, alike: bool) -> bool:
    return not alike and count < FEW_CLUSTERS


def _chance(times: float, basis: Basis, evidence: Evidence, reason: Reason, margin: float) -> float:
    """The chance that so many times the rows decide the comparison."""
    random = np.random.default_rng(0)  # the same draws for any `times`
    carriers, error, fewer = basis.carriers, evidence.standard_error, evidence.observations
    equal = taken_to_be_equal(carriers, reason)
    # A few unequal clusters tell nothing of how many a larger sample would hold.
    growth = 1.0 if _too_few(fewer, basis.alike) else times
    unequal = 1.0 if basis.alike else UNEQUAL
    truly = random.gamma(fewer / unequal + 0.5, size=_DRAWS) * growth
    unseen = np.minimum(1.0, HITS / np.maximum(unequal * random.poisson(truly), 1.0))
    half = unseen * (0.0 if evidence.reach is None else evidence.reach + abs(evidence.delta))
    moved = allowance = np.zeros(_DRAWS)
    if error and carriers:
        growth = 1.0 if _too_few(carriers, basis.alike) else times
        pull = error / math.sqrt(carriers) / growth
        share: Union[float, np.ndarray] = 0.5
        common = 0.0  # common to all rows
        if not equal:
            # The carriers' largest difference, all up or all down; any more is common to all rows.
            most = error * math.sqrt(carriers)
            up = carriers * (1 + max(-1.0, min(1.0, evidence.delta / most))) / 2
            share = random.beta(up + 0.5, carriers - up + 0.5, size=_DRAWS)
            common = math.copysign(max(0.0, abs(evidence.delta) - most), evidence.delta)
        carried = random.poisson(random.gamma(carriers + 0.5, size=_DRAWS) * growth)
        moved = np.abs((2.0 * random.binomial(carried, share) - carried) * pull + common)
        freedom = max(1.0, evidence.freedom * growth)
        half = quantile(1 - alpha(), freedom) * np.sqrt(carried) * pull
        allowance = np.where(carried > 0, evidence.allowance / growth, 0.0)
    half = half + evidence.bound
    # unseen^2 / HITS is the `resolution` of the observations drawn.
    passes = moved + np.maximum(half, unseen**2 / HITS) + allowance < margin
    passes &= unseen * basis.reach < margin
    if not equal:
        passes |= moved - half - allowance > margin
    return float(np.mean(passes))
