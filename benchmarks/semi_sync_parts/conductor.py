"""Runs one repeat of a case: a cluster that trains the modes one after another.

For each mode:
1. When every worker is ready, `begin`. The start-up is timed from here.
2. When every worker is warm, a measurement window, through which all of them train.
3. When every worker has written its result, the next mode.

Meanwhile the processor time of the processes is sampled, about ten times a second.
"""

import collections
import os
import time

from benchmarks.harness.cluster import cluster_of
from semisync.common.errors import SemisyncError

from . import signals, usage

MODULE = "benchmarks.semi_sync_parts.process"
PATIENCE = 600.0  # seconds per step, besides the window
LEAD = 0.3  # seconds from announcing the window to its start

# The record of one mode: `begin`, `start` and `stop` in seconds since the epoch, `samples` of the
# processes' usage, and the `results` of the workers.
Record = collections.namedtuple("Record", "mode begin start stop samples results")


def run_repeat(python, case, modes, seconds, folder, say=lambda text: None):
    """Trains the modes in this order; returns a list of `Record`.

    Args:
        python: the interpreter of the cluster's processes.
        seconds: of each measurement window.
        folder: an empty one, for signals and logs.
        say: called with progress messages.

    Raises:
        SemisyncError: a process failed, or was not ready in time.
    """
    for mode in modes:
        os.mkdir(os.path.join(folder, mode))
    ps = case.ps * len(modes)
    with cluster_of(MODULE, python, ps, case.workers, folder) as cluster:
        cluster.start_all(case=case.name, modes=list(modes), out=folder)
        conductor = Conductor(cluster, case, seconds, folder, say)
        course = conductor.conduct(modes)
        timeout = PATIENCE + len(modes) * (3 * PATIENCE + seconds)
        cluster.wait(timeout, tick=lambda: next(course, None))
        for _ in course:  # collects the results of the last workers
            pass
    return conductor.records


class Conductor:
    """Leads the workers through the modes; see `run_repeat` for the arguments.

    Attributes:
        records: a list of `Record`, one per finished mode.
    """

    def __init__(self, cluster, case, seconds, folder, say):
        self._cluster, self._case, self._seconds = cluster, case, seconds
        self._folder, self._say = folder, say
        self.records = []

    def conduct(self, modes):
        """A generator that does the next steps, and yields while there is nothing to do."""
        self._say("starting")
        up = [f"up-{job}-{task}" for job, task in self._cluster.processes]
        yield from self._all_of(self._folder, up)
        for number, mode in enumerate(modes):
            self._say(mode)
            first = number * self._case.ps
            tasks = range(first, first + self._case.ps)
            pids = [self._cluster.processes["ps", task].pid for task in tasks]
            yield from self._mode(mode, pids)

    def _mode(self, mode, ps):
        folder, samples = os.path.join(self._folder, mode), []
        processes = self._cluster.processes
        workers = [processes["worker", task].pid for task in range(self._case.workers)]
        cluster = [process.pid for process in processes.values()]
        yield from self._workers(folder, "ready-{}")
        samples.append(usage.sample(ps, workers, cluster))
        begin = time.time()
        signals.give(folder, "begin")
        for _ in self._workers(folder, "warm-{}"):
            samples.append(usage.sample(ps, workers, cluster))
            yield
        start = time.time() + LEAD
        stop = start + self._seconds
        signals.give(folder, "window.json", {"stop": stop})
        while not samples or samples[-1].time < stop:
            samples.append(usage.sample(ps, workers, cluster))
            yield
        yield from self._workers(folder, "result-{}.json")
        names = [f"result-{task}.json" for task in range(self._case.workers)]
        results = [signals.read(folder, name) for name in names]
        self.records.append(Record(mode, begin, start, stop, samples, results))

    def _workers(self, folder, name):
        return self._all_of(folder, [name.format(task) for task in range(self._case.workers)])

    def _all_of(self, folder, names):
        """Yields until every one of the names has been given."""
        deadline = time.monotonic() + PATIENCE
        while True:
            missing = [name for name in names if not signals.given(folder, name)]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise SemisyncError(
                    f"{', '.join(missing)} did not come in {PATIENCE:.0f} s; the processes say "
                    f"why in {self._folder}/*.log"
                )
            yield
