"""Statistics over the seeds: means, spreads, and differences between modes seed by seed.

A difference is paired: the same seed gives both modes the same initial values, batches and slow
batches, so that the common effect of a seed cancels. Its 95 % interval is Student's over the seeds:
it covers the seeds and the randomness of scheduling, not the choice of the test rows.
"""

import math
import statistics
from typing import NamedTuple, Optional

from scipy.stats import t

CONFIDENCE = 0.95
MARGIN = 5e-4  # of AUC, the target
MOST = 10_000  # seeds to try for `seeds_needed`


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
    """The half-width of the interval of a mean of `seeds` values."""
    return t.ppf((1 + CONFIDENCE) / 2, seeds - 1) * sd / math.sqrt(seeds)


def paired(mode, sync):
    """The Difference of two dicts of seed -> AUC; only seeds in both count."""
    differences = [mode[seed] - sync[seed] for seed in sorted(set(mode) & set(sync))]
    seeds, mean = len(differences), statistics.mean(differences)
    if seeds < 2:
        return Difference(seeds=seeds, mean=mean, sd=None, low=None, high=None, seeds_needed=None)
    sd = statistics.stdev(differences)
    half = half_width(sd, seeds)
    needed = next((n for n in range(2, MOST) if half_width(sd, n) <= MARGIN), None)
    return Difference(
        seeds=seeds, mean=mean, sd=sd, low=mean - half, high=mean + half, seeds_needed=needed
    )
