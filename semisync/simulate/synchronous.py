"""tf.train.SyncReplicasOptimizer, with and without backup workers.

1. A worker's gradients go into accumulators, with its local step. Those of an earlier global step
   are dropped. An accumulator adds one gradient at a time.
2. Once `aggregate` gradients are there, the chief applies the mean of all that are there by then,
   counts the global step, and puts max(workers, aggregate) tokens, each the new global step, into a
   queue.
3. A worker takes a token after each batch: its local step from then on. Where aggregate is less
   than the number of workers, tokens of earlier steps are left in the queue, and whoever takes one
   computes a batch that is dropped.
"""

import collections
from typing import Deque

from semisync.simulate.cluster import Worker
from semisync.simulate.job import Job


class SyncReplicasJob(Job):
    """See the module; `aggregate` is replicas_to_aggregate."""

    overhead = True

    def __init__(self, cluster, seed, aggregate):
        super().__init__(cluster, seed)
        self._aggregate = aggregate
        self._tokens: Deque[int] = collections.deque()
        self._waiting: Deque[Worker] = collections.deque()
        self._here = 0
        self._applying = False
        self.push = self.machines.into_accumulators
        for worker in self.workers:
            worker.token = 0
        # replicas_to_aggregate beyond the number of workers: some need two batches of step 0.
        self._tokens.extend([0] * max(0, aggregate - cluster.workers))

    def sent(self, worker):
        if worker.token < self.version:
            self.fates["stale"] += 1
        else:
            self._here += 1
            self.hold(1)
            self._look()
        worker.begun = self.clock.now
        self._waiting.append(worker)
        self._hand_out()

    def _look(self):
        if self._here >= self._aggregate and not self._applying:
            self._applying = True
            chief = self.costs.chief_step + self.costs.chief * self._aggregate
            self.machines.on_worker(chief, self._take)

    def _take(self):
        taken, self._here = self._here, 0  # all that are there, and their mean
        seconds = self.costs.apply_step + self.costs.apply * taken
        self.machines.on_servers(seconds, self._step, taken)

    def _step(self, taken):
        self.version += 1
        for _ in range(taken):
            self.applied(0)
        self.hold(-taken)
        self._tokens.extend([self.version] * max(self.cluster.workers, self._aggregate))
        self._applying = False
        self._hand_out()
        self._look()

    def _hand_out(self):
        while self._waiting and self._tokens:
            worker = self._waiting.popleft()
            worker.token = self._tokens.popleft()
            self.waiting += self.clock.now - worker.begun
            self.begin(worker)
