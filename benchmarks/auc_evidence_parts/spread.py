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


class Difference(NamedTuple):
    """Mode minus sync, a mean over pairs; the spread is None for a single seed."""

    mean: float
    sd: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None

    @property
    def interval(self):
        """As text."""
        return "" if self.sd is None else "{:+.5f} to {:+.5f}".format(self.low, self.high)


def paired(mode, sync):
    """The Difference of two dicts of seed -> AUC; only seeds in both count."""
    differences = [mode[seed] - sync[seed] for seed in sorted(set(mode) & set(sync))]
    seeds, mean = len(differences), statistics.mean(differences)
    if seeds < 2:
        return Difference(mean)
    sd = statistics.stdev(differences)
    half = t.ppf((1 + CONFIDENCE) / 2, seeds - 1) * sd / math.sqrt(seeds)
    return Difference(mean, sd, mean - half, mean + half)
