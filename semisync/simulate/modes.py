"""The modes that can be simulated, by name, and their settings."""

import numbers
from typing import Any, NamedTuple, Union

from semisync.common.errors import UsageError
from semisync.pacing import MeanStaleness
from semisync.simulate.asynchronous import AsyncJob, SspJob
from semisync.simulate.limits import whole
from semisync.simulate.semi_synchronous import SemiSyncJob
from semisync.simulate.synchronous import SyncReplicasJob


class Async(NamedTuple):
    """Asynchronous training."""

    def job(self, cluster, seed):
        """The `Job` of this mode."""
        return AsyncJob(cluster, seed)


class SSP(NamedTuple):
    """Stale synchronous parallel: no worker is more than `bound` batches ahead of the slowest."""

    bound: int

    def job(self, cluster, seed):
        """The `Job` of this mode."""
        whole("the bound of SSP", self.bound, 0)
        return SspJob(cluster, seed, self.bound)


class SyncReplicas(NamedTuple):
    """tf.train.SyncReplicasOptimizer; with aggregate < workers the others are backup workers."""

    aggregate: int

    def job(self, cluster, seed):
        """The `Job` of this mode."""
        whole("the number of gradients that are aggregated", self.aggregate, 1)
        return SyncReplicasJob(cluster, seed, self.aggregate)


class SemiSync(NamedTuple):
    """`semisync.GlobalBatchOptimizer`; its arguments, and `paced=True` for the mode "sync"."""

    batches_per_step: int
    staleness: Any = None
    on_stale: str = "keep"
    in_flight: Union[int, MeanStaleness, None] = None
    paced: bool = False

    def job(self, cluster, seed):
        """The `Job` of this mode."""
        whole("batches_per_step", self.batches_per_step, 1)
        if self.on_stale not in ("keep", "drop"):
            raise UsageError("on_stale is 'keep' or 'drop', not {!r}".format(self.on_stale))
        if isinstance(self.in_flight, numbers.Number):
            whole("in_flight", self.in_flight, 1)
        return SemiSyncJob(cluster, seed, *self[:2], self.on_stale == "keep", *self[3:])
