"""Running a simulation, and its results."""

from typing import Any, Dict, NamedTuple

import numpy as np

from semisync.common.errors import BadInput
from semisync.simulate.cluster import check_cluster
from semisync.simulate.limits import whole

_WARM = 0.1  # share of the batches before the measurement


class Result(NamedTuple):
    """The simulated figures, measured after a tenth of the batches.

    Attributes:
        batches_per_second: applied ones, whatever their weight.
        steps_per_second: updates of the variables.
        staleness: {staleness: batches}, in updates between reading and applying.
        fates: {fate: batches}: "admitted", "decayed", "stale" and, given back, "dropped".
        waiting: the share of the workers' time in which they wait for others.
        server_load: the share of the parameter servers' cores that is busy, from the beginning on.
        payload_bytes: the most that the parameter servers hold of batches in flight, all together.
        seconds: simulated, in all.
        events: how many happened.

    Examples:
        >>> from semisync.simulate import Cluster, SemiSync, simulate
        >>> result = simulate(Cluster(workers=4), SemiSync(4), batches=100)
        >>> result.fates, result.staleness_quantile(0.5)
        ({'admitted': 88}, 1)
    """

    batches_per_second: float
    steps_per_second: float
    staleness: Dict[int, int]
    fates: Dict[str, int]
    waiting: float
    server_load: float
    payload_bytes: int
    seconds: float
    events: int

    @property
    def mean_staleness(self):
        """The mean staleness of applied batches."""
        counts = self.staleness
        return sum(s * n for s, n in counts.items()) / max(1, sum(counts.values()))

    def staleness_quantile(self, share):
        """The smallest staleness that `share` of the applied batches do not exceed.

        Args:
            share: from 0 to 1.

        Returns:
            An int, in global steps.
        """
        order = sorted(self.staleness)
        counts = np.cumsum([self.staleness[one] for one in order])
        return order[int(np.searchsorted(counts, share * counts[-1]))] if order else 0

    def stale_share(self):
        """The share of the batches that counted for nothing.

        Returns:
            A number from 0 to 1.
        """
        lost = sum(self.fates.get(fate, 0) for fate in ("stale", "dropped"))
        return lost / max(1, sum(self.fates.values()))

    def to_json(self):
        """For `json.dump`.

        Returns:
            A dict for `json.dump`.
        """
        return dict(
            self._asdict(),
            staleness={str(key): self.staleness[key] for key in sorted(self.staleness)},
            mean_staleness=self.mean_staleness,
            stale_share=self.stale_share(),
        )


def simulate(cluster: Any, mode: Any, batches: int, seed: int = 0) -> Result:
    """Simulates a job until `batches` batches are applied.

    Args:
        cluster: a `Cluster`.
        mode: one of `semisync.simulate.modes`.
        batches: 10 or more.
        seed: of all draws.

    Returns:
        A `Result`.

    Raises:
        UsageError: numbers that make no cluster.
        BadInput: every worker waits, and nothing would wake them.

    Examples:
        >>> from semisync.simulate import Cluster, SemiSync, simulate
        >>> result = simulate(Cluster(workers=8), SemiSync(8, semisync.Threshold(4)), batches=400)
        >>> result.fates
        {'admitted': 360}
    """
    check_cluster(cluster)
    whole("the number of batches", batches, 10)
    whole("the seed", seed, 0, 2**32 - 1)
    job = mode.job(cluster, seed)
    job.start()
    job.clock.run(lambda: job.batches < _WARM * batches)
    before = _Snapshot(job)
    job.clock.run(lambda: job.batches < batches)
    if job.batches < batches:
        raise BadInput(
            "{}: after {} batches every worker waits, and nothing would wake them".format(
                mode, job.batches
            )
        )
    return before.result(job)


class _Snapshot:
    """The counts of a job at one time."""

    def __init__(self, job):
        self._at, self._batches, self._version = job.clock.now, job.batches, job.version
        self._staleness, self._fates = job.staleness.copy(), job.fates.copy()
        self._waiting = job.waiting

    def result(self, job):
        """The `Result` since then."""
        seconds = job.clock.now - self._at
        return Result(
            batches_per_second=(job.batches - self._batches) / seconds,
            steps_per_second=(job.version - self._version) / seconds,
            staleness=dict(job.staleness - self._staleness),
            fates=dict(job.fates - self._fates),
            waiting=(job.waiting - self._waiting) / (seconds * job.cluster.workers),
            server_load=job.machines.server_load(),
            payload_bytes=job.most_payloads * job.costs.payload,
            seconds=job.clock.now,
            events=job.clock.events,
        )
