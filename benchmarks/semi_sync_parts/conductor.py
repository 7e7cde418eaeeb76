"""Runs one repeat of a case: a cluster that trains the modes one after another.

For each mode:
1. When every worker is ready, `begin`. The start-up is timed from here.
2. When every worker is warm, a measurement window, through which all of them train.
3. When every worker has written its result, the next mode.

Meanwhile the processor time of the processes is sampled, about ten times a second.
"""

import collections
import functools
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
    records = []
    with cluster_of(MODULE, python, case.ps * len(modes), case.workers, folder) as cluster:
        cluster.start_all(case=case.name, modes=list(modes), out=folder)
        course = _conduct(cluster.processes, case, modes, seconds, folder, say, records)
        timeout = PATIENCE + len(modes) * (3 * PATIENCE + seconds)
        cluster.wait(timeout, tick=lambda: next(course, None))
        for _ in course:  # collects the results of the last workers
            pass
    return records


def _conduct(processes, case, modes, seconds, folder, say, records):
    """A generator that does the next steps, and yields while there is nothing to do."""
    say("starting")
    yield from _all_of(folder, [f"up-{job}-{task}" for job, task in processes])
    for number, mode in enumerate(modes):
        say(mode)
        ps = [processes["ps", number * case.ps + task].pid for task in range(case.ps)]
        workers = [processes["worker", task].pid for task in range(case.workers)]
        cluster = [process.pid for process in processes.values()]
        sample = functools.partial(usage.sample, ps, workers, cluster)
        yield from _train(os.path.join(folder, mode), mode, case.workers, seconds, sample, records)


def _train(folder, mode, workers, seconds, sample, records):
    """Has the workers train a mode."""

    def of_workers(name):
        return _all_of(folder, [name.format(task) for task in range(workers)])

    yield from of_workers("ready-{}")
    samples, begin = [sample()], time.time()
    signals.give(folder, "begin")
    for _ in of_workers("warm-{}"):
        samples.append(sample())
        yield
    start = time.time() + LEAD
    stop = start + seconds
    signals.give(folder, "window.json", {"stop": stop})
    while samples[-1].time < stop:
        samples.append(sample())
        yield
    yield from of_workers("result-{}.json")
    results = [signals.read(folder, f"result-{task}.json") for task in range(workers)]
    records.append(Record(mode, begin, start, stop, samples, results))


def _all_of(folder, names):
    """Yields until every one of the names has been given."""
    deadline = time.monotonic() + PATIENCE
    while True:
        missing = [name for name in names if not signals.given(folder, name)]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise SemisyncError(
                f"{', '.join(missing)} did not come in {PATIENCE:.0f} s; the processes say why in "
                f"*.log of {folder} or above"
            )
        yield
