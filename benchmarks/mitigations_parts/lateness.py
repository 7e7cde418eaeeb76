"""How late the gradients are: traces of the simulated cluster of `benchmarks.auc_evidence`.

8 workers and the parameter servers share two processors; a batch pauses for 10 ms, a fifth of the
batches five times as long, and one worker twice as long as the others. The chief's own ledger
decides. `DEMAND` and `COSTS` are chosen such that mean staleness and pace at M = 8 are about those
that were measured on the real cluster: 1.69; asynchronous 117 batches/s, semi-sync 113, sync 67.
"""

import functools
from typing import List, NamedTuple, Optional

import numpy as np

from benchmarks.auc_evidence_parts import plan
from semisync.pacing import MeanStaleness
from semisync.simulate import Cluster, Costs, Times
from semisync.simulate.asynchronous import AsyncJob
from semisync.simulate.semi_synchronous import SemiSyncJob

WORKERS = 8
DEMAND = 0.013  # seconds of a worker's processor time per batch
COSTS = Costs(latency=0.005, chief_step=0.015)
_PAUSES = 4000  # that a worker repeats


class Trace(NamedTuple):
    """How late batches are.

    Attributes:
        staleness: list of int [M], one per global step; or int [batches] for asynchronous training.
        batches_per_second: the pace.
    """

    staleness: List[np.ndarray]
    batches_per_second: float

    @property
    def mean(self):
        """The mean staleness, in updates."""
        return float(np.mean(np.concatenate([np.atleast_1d(one) for one in self.staleness])))


def _cluster(seed):
    pauses = []
    for worker in range(WORKERS):
        slow = np.random.RandomState([seed, worker]).rand(_PAUSES) < plan.CHOSEN.slow_share
        own = np.where(slow, plan.CHOSEN.slow_factor, 1.0) * plan.CHOSEN.pause
        own *= plan.CHOSEN.slow_worker if worker == WORKERS - 1 else 1.0
        pauses.append((own, np.full(_PAUSES, DEMAND)))
    return Cluster(WORKERS, 2, Times(traces=pauses), COSTS, shared_cores=2)


class _TracedSemiSync(SemiSyncJob):
    def start(self):
        self.trace = []
        super().start()

    def _step(self, weighed):
        self.trace.append(np.array([entry.staleness for entry in weighed]))
        super()._step(weighed)


class _TracedAsync(AsyncJob):
    def start(self):
        self.trace = []
        super().start()

    def applied(self, staleness, fate="admitted"):
        self.trace.append(staleness)
        super().applied(staleness, fate)


@functools.lru_cache(maxsize=None)
def semi_synchronous(steps, batches_per_step, seed, wanted: Optional[float] = None):
    """The `Trace` of `steps` global steps with a mean staleness of `wanted` at most, 0 for sync."""
    bound = MeanStaleness(wanted) if wanted else None
    paced = wanted == 0
    job = _TracedSemiSync(_cluster(seed), seed, batches_per_step, None, True, bound, paced)
    return _run(job, steps * batches_per_step)


@functools.lru_cache(maxsize=None)
def asynchronous(batches, seed):
    """The `Trace` of so many batches, in updates by others."""
    return _run(_TracedAsync(_cluster(seed), seed), batches)


def _run(job, batches):
    job.start()
    job.clock.run(lambda: job.batches < batches)
    return Trace(job.trace, job.batches / job.clock.now)
