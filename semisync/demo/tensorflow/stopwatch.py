"""A worker's measurements of its own training: pace, and the staleness of its batches."""

import collections
import time
from typing import Counter, Optional, Tuple

WARM_UP = 0.1  # share of the steps that are not timed: the first runs optimise the graph


class Stopwatch:
    """Watches the global step from one worker.

    Args:
        last_step: the global step at which training ends.
        per_step: batches in a global step.
        clock: seconds, monotonic.
    """

    def __init__(self, last_step, per_step, clock=time.monotonic):
        self._last_step = last_step
        self._per_step = per_step
        self._clock = clock
        self._first: Optional[Tuple[float, int]] = None
        self._latest: Optional[Tuple[float, int]] = None
        self.staleness: Counter[int] = collections.Counter()

    def look(self, staleness, step):
        """Records one batch: how stale its gradients were, and the global step after it."""
        self.staleness[staleness] += 1
        if step >= WARM_UP * self._last_step:
            self._latest = (self._clock(), step)
            self._first = self._first or self._latest

    @property
    def share(self):
        """The finished share of the training, 0 to 1."""
        return min(1.0, self._latest[1] / self._last_step) if self._latest else 0.0

    @property
    def batches_per_second(self):
        """Batches applied per second by all workers together since the warm-up; 0 before."""
        if self._first is None or self._latest is None or self._first == self._latest:
            return 0.0
        (start, first), (now, step) = self._first, self._latest
        return (step - first) * self._per_step / (now - start)
