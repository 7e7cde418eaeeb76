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
    """Asynchronous training.

    Examples:
        >>> from semisync.simulate import Async, Cluster, simulate
        >>> round(simulate(Cluster(workers=4), Async(), batches=100).mean_staleness)
        3
    """

    def job(self, cluster, seed):
        """The `Job` of this mode.

        Args:
            cluster: a `Cluster`.
            seed: of all draws.

        Returns:
            A `Job`.
        """
        return AsyncJob(cluster, seed)


class SSP(NamedTuple):
    """Stale synchronous parallel: no worker is more than `bound` batches ahead of the slowest.

    Args:
        bound: batches, >= 0.

    Examples:
        >>> from semisync.simulate import SSP, Cluster, simulate
        >>> simulate(Cluster(workers=4), SSP(bound=2), batches=100).fates
        {'admitted': 90}
    """

    bound: int

    def job(self, cluster, seed):
        """The `Job` of this mode.

        Args:
            cluster: a `Cluster`.
            seed: of all draws.

        Returns:
            A `Job`.
        """
        whole("the bound of SSP", self.bound, 0)
        return SspJob(cluster, seed, self.bound)


class SyncReplicas(NamedTuple):
    """tf.train.SyncReplicasOptimizer; with aggregate < workers the others are backup workers.

    Args:
        aggregate: how many gradients a step takes.

    Examples:
        >>> from semisync.simulate import Cluster, SyncReplicas, simulate
        >>> simulate(Cluster(workers=4), SyncReplicas(aggregate=4), batches=100).mean_staleness
        0.0
    """

    aggregate: int

    def job(self, cluster, seed):
        """The `Job` of this mode.

        Args:
            cluster: a `Cluster`.
            seed: of all draws.

        Returns:
            A `Job`.
        """
        whole("the number of gradients that are aggregated", self.aggregate, 1)
        return SyncReplicasJob(cluster, seed, self.aggregate)


class SemiSync(NamedTuple):
    """`semisync.GlobalBatchOptimizer`, with its arguments.

    Args:
        batches_per_step, staleness, on_stale, in_flight: see `semisync.GlobalBatchOptimizer`.
        paced: True for the mode "sync".

    Examples:
        >>> from semisync.simulate import Cluster, SemiSync, simulate
        >>> mode = SemiSync(4, semisync.Threshold(4))
        >>> simulate(Cluster(workers=4), mode, batches=100).stale_share()
        0.0
    """

    batches_per_step: int
    staleness: Any = None
    on_stale: str = "keep"
    in_flight: Union[int, MeanStaleness, None] = None
    paced: bool = False

    def job(self, cluster, seed):
        """The `Job` of this mode.

        Args:
            cluster: a `Cluster`.
            seed: of all draws.

        Returns:
            A `Job`.

        Raises:
            UsageError: a setting is invalid.
        """
        whole("batches_per_step", self.batches_per_step, 1)
        if self.on_stale not in ("keep", "drop"):
            raise UsageError("on_stale is 'keep' or 'drop', not {!r}".format(self.on_stale))
        if isinstance(self.in_flight, numbers.Number):
            whole("in_flight", self.in_flight, 1)
        return SemiSyncJob(cluster, seed, *self[:2], self.on_stale == "keep", *self[3:])
