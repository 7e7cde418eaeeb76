"""A job in simulated time: the part common to all modes, and the part that a mode adds."""

import collections
from typing import Counter

from semisync.simulate.cluster import Machines, make_workers
from semisync.simulate.events import Clock


class Job:
    """A running job; a mode is a subclass.

    A mode calls `begin(worker)` when a worker may begin a batch, and defines

        start()                 the events at time 0
        ready(worker, demand)   its pause is over; by default it reads the parameters
        sent(worker)            its gradients are at the parameter servers

    and counts with `applied`.

    Attributes:
        clock: the `Clock`.
        version: global steps, or, in asynchronous training, batches applied.
        staleness: Counter of applied batches by their staleness, in versions.
        fates: Counter of batches by fate.
        waiting: seconds that workers waited for others, in total.
        steps: when each version's update was done, beginning with the first.
    """

    overhead = False  # True where the mode's costs for aggregating are the workers', too

    def __init__(self, cluster, seed):
        self.cluster, self.costs = cluster, cluster.costs
        self.clock = Clock()
        self.machines = Machines(cluster, self.clock)
        self.push = self.machines.on_servers
        self.workers = make_workers(cluster, seed)
        self.version = 0
        self.staleness: Counter[int] = collections.Counter()
        self.fates: Counter[str] = collections.Counter()
        self.waiting = 0.0
        self.batches = 0
        self.payloads = self.most_payloads = 0

    def begin(self, worker):
        """The worker begins its next batch."""
        pause, demand = worker.times.next(self.clock.now)
        if self.overhead:
            demand += self.costs.worker
        self.clock.after(pause, self.ready, worker, demand)

    def ready(self, worker, demand):
        """The worker's pause is over."""
        self.read(worker, demand)

    def read(self, worker, demand):
        """The worker asks for the parameters."""
        worker.version = self.version
        self.machines.on_servers(self.costs.pull, self._compute, worker, demand)

    def _compute(self, worker, demand):
        self.machines.on_worker(demand, self.computed, worker)

    def computed(self, worker):
        """The worker has its gradients."""
        self.push(self.costs.push, self._sent, worker)

    def _sent(self, worker):
        worker.batches += 1
        self.sent(worker)

    def start(self):
        """Lets every worker begin."""
        for worker in self.workers:
            self.clock.after(self.first(worker), self.begin, worker)

    def first(self, worker):
        """The time at which a worker begins: within a batch, since no cluster starts in step."""
        return worker.times.phase * sum(worker.times.next(0.0))

    def sent(self, worker):
        """The mode's handling of the batch."""
        raise NotImplementedError

    def applied(self, staleness, fate="admitted"):
        """Counts a batch of an applied update, by its fate."""
        self.batches += 1
        self.staleness[staleness] += 1
        self.fates[fate] += 1

    def hold(self, change):
        """Counts payloads that the parameter servers hold."""
        self.payloads += change
        self.most_payloads = max(self.most_payloads, self.payloads)
