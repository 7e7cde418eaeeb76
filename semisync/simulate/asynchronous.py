"""Asynchronous training, and SSP, which is asynchronous training with a bound between workers."""

import collections

from semisync.simulate.job import Job


class AsyncJob(Job):
    """Every batch is applied when it comes; no worker waits."""

    def sent(self, worker):
        self.version += 1
        self.applied(self.version - 1 - worker.version)
        self.begin(worker)


class SspJob(Job):
    """Stale synchronous parallel (Ho et al. 2013, as in XDL).

    A worker that is `bound` batches ahead of the slowest waits until that one has caught up.
    """

    def __init__(self, cluster, seed, bound):
        super().__init__(cluster, seed)
        self._bound = bound
        self._done = collections.Counter({0: cluster.workers})  # workers by batches done
        self._slowest = 0
        self._waiting = []

    def sent(self, worker):
        self.version += 1
        self.applied(self.version - 1 - worker.version)
        self._done[worker.batches - 1] -= 1
        self._done[worker.batches] += 1
        worker.begun = self.clock.now  # from when on it waits
        self._waiting.append(worker)
        if not self._done[self._slowest]:
            del self._done[self._slowest]
            self._slowest += 1  # where this worker is now, the last to leave that number
        elif worker.batches - self._slowest > self._bound:
            return
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if one.batches - self._slowest > self._bound:
                self._waiting.append(one)
            else:
                self.waiting += self.clock.now - one.begun
                self.begin(one)
