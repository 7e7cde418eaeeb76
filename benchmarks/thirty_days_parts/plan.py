"""The job's fixed choices.

A day's rows are shuffled by the seed and cut into local batches, of which every 4 are a global
batch; what fills no whole global batch is left out on both sides. A seed also determines the
initial values.
"""

from typing import NamedTuple


class Plan(NamedTuple):
    """rate, accumulator: Adagrad's. bound: of the staleness, in global steps. switch: the first day
    of which TorchRec trains, too. most: global batches per day, if fewer than the day has."""

    rate: float = 0.05
    accumulator: float = 1e-6
    local_batch: int = 256
    batches_per_step: int = 4
    workers: int = 4
    ps: int = 2
    bound: int = 4
    switch: int = 15
    days: int = 30
    most: int = 1000

    @property
    def global_batch(self):
        """Its rows."""
        return self.local_batch * self.batches_per_step


QUICK = Plan(local_batch=64, batches_per_step=2, workers=2, ps=1, switch=2, days=4, most=4)
