"""What the seeds say: means, spreads, and differences between modes seed by seed.

A difference is paired: the same seed gives both modes the same initial values, batches and slow
batches, so that what a seed does to both cancels. Its 95 % interval is Student's, over the seeds;
it covers the seeds and the chance of scheduling, not the choice of the test rows.
"""

import math
import statistics
from typing import NamedTuple, Optional

from scipy.stats import t

CONFIDENCE = 0.95
MARGIN = 5e-4  # of AUC, the target
MOST = 10_000  # seeds to look for


class Difference(NamedTuple):
    """Mode minus sync, over `seeds` pairs; the spread is None for a single seed."""

    seeds: int
    mean: float
    sd: Optional[float]
    low: Optional[float]
    high: Optional[float]
    seeds_needed: Optional[int]  # for an interval of -+MARGIN around the mean

    @property
    def verdict(self):
        if self.low is None or self.high is None:
            return "one seed: no spread"
        if self.low > -MARGIN and self.high < MARGIN:
            return "within {}".format(MARGIN)
        if self.low > MARGIN or self.high < -MARGIN:
            return "further than {}".format(MARGIN)
        return "not settled by {} seeds".format(self.seeds)


def half_width(sd, seeds):
    """Of the interval of a mean of `seeds` values."""
    return t.ppf((1 + CONFIDENCE) / 2, seeds - 1) * sd / math.sqrt(seeds)


def paired(mode, sync):
    """The Difference of two dicts of seed -> AUC; only seeds in both count."""
    found = [mode[seed] - sync[seed] for seed in sorted(set(mode) & set(sync))]
    mean = statistics.mean(found)
    if len(found) < 2:
        return Difference(len(found), mean, None, None, None, None)
    sd = statistics.stdev(found)
    half = half_width(sd, len(found))
    needed = next((n for n in range(2, MOST) if half_width(sd, n) <= MARGIN), None)
    return Difference(len(found), mean, sd, mean - half, mean + half, needed)
