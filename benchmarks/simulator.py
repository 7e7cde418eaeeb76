"""The simulator against the measured cluster, and its own speed.

    python -m benchmarks.simulator MEASURED.json [--workers N]

MEASURED.json is what `python -m benchmarks.semi_sync --json` wrote. A case's workers, pauses and
processors are those of the benchmark; the processor time of a batch is what was measured: of the
workers, of the chief beside its own batches, and of the parameter servers. The pace is predicted
from these. Then 10,000 workers (--workers) train 1,000 global steps, on one core.
"""

import itertools
import json
import os
import statistics

import numpy as np

from benchmarks.harness.options import options
from benchmarks.semi_sync_parts.cases import CASES, STALENESS_BOUND, pauses
from benchmarks.semi_sync_parts.table import values
from benchmarks.tables import head, row, timed
from semisync.simulate import (
    Async,
    Cluster,
    Costs,
    SemiSync,
    SyncReplicas,
    Times,
    simulate,
)
from semisync.staleness import Threshold

# What is not measured, the same in all cases.
LATENCY = 0.0003  # seconds of a message on one machine
PULL = 0.3  # of the parameter servers' time of an asynchronous batch
APPLY = {"async": 0.0, "native-sync": 0.1, "semi-sync": 0.6, "sync": 0.6}  # of the rest
BACKGROUND = 0.1  # of every demand
BATCHES = 5000  # pauses that a worker repeats
SPREAD = 0.3  # of the logarithm of a demand
SECONDS = 60.0  # simulated, about, per case and mode


def main():
    args = options(__doc__, "measured", workers=10000)
    with open(args.measured) as file:
        measured = json.load(file)
    compare(measured)
    speed(args.workers)


def compare(measured):
    """Prints measured and simulated batches/s and mean staleness."""
    print(head("case | mode | batches/s | simulated | ratio | mean staleness | simulated"))
    for case in measured["cases"]:
        modes = {mode: _medians(case, mode) for mode in sorted(case["repeats"][0])}
        for mode, figures in modes.items():
            result = of_case(case, modes, mode, len(os.sched_getaffinity(0)))
            pace, simulated = figures["batches_per_second"], result.batches_per_second
            cells = [case["name"], mode, f"{pace:.1f}", f"{simulated:.1f}"]
            ages = figures["staleness_mean"], result.mean_staleness
            print(row(*cells, f"{simulated / pace:.2f}", *map("{:.2f}".format, ages)))


def _medians(case, mode):
    """The median of each figure that all repeats have."""
    names = case["repeats"][0][mode]
    found = {name: values(case, mode, name) for name in names}
    return {name: statistics.median(one) for name, one in found.items() if one}


def of_case(case, measured, mode, cores):
    """The `Result` of a case of benchmarks/semi_sync.py in one mode, on so many cores."""
    cluster, of_mode = case["cluster"], measured[mode]
    size, workers = cluster["batches_per_step"], cluster["workers"]
    ps, others, chief = (
        of_mode[part + "_cpu_per_batch"] / 1000 for part in ("ps", "workers", "chief")
    )
    demand = others * workers / (workers - 1)
    chief = max(0.0, chief - demand / workers)
    pull = PULL * measured["async"]["ps_cpu_per_batch"] / 1000
    apply = APPLY[mode] * (ps - pull)
    costs = Costs(
        pull=pull,
        push=ps - pull - apply,
        apply=apply,
        apply_step=0.0,
        chief=chief,
        chief_step=0.0,
        worker=0.0,
        background=BACKGROUND,
        latency=LATENCY,
    )
    simulated = Cluster(
        workers,
        cluster["ps"],
        Times(traces=[_trace(case["name"], task, demand) for task in range(workers)]),
        costs,
        shared_cores=cores,
    )
    batches = int(SECONDS * of_mode["batches_per_second"])
    return simulate(simulated, modes(size)[mode], max(batches, 20 * size))


def _trace(name, task, demand):
    """A worker's batches: the benchmark's own pauses, and demands of the measured mean."""
    drawn = np.fromiter(itertools.islice(pauses(CASES[name], task), BATCHES), float)
    random = np.random.RandomState(task)
    return drawn, demand * random.lognormal(-(SPREAD**2) / 2, SPREAD, BATCHES)


def speed(workers):
    """Prints the seconds that so many workers and 1,000 global steps take."""
    times = Times(spread=0.4, slow_share=0.05, slow_factor=5)
    cluster, size = Cluster(workers, max(1, workers // 50), times), max(1, workers // 10)
    for name, mode in modes(size).items():
        _, seconds, result = timed(simulate, cluster, mode, 1000 * size)
        said = "{:,} workers, M = {:,}, {}: {:.1f} s, {:,} events"
        print(said.format(workers, size, name, seconds, result.events))


def modes(size):
    """The modes of benchmarks/semi_sync.py, as the simulator has them."""
    return {
        "async": Async(),
        "native-sync": SyncReplicas(size),
        "semi-sync": SemiSync(size, Threshold(STALENESS_BOUND)),
        "sync": SemiSync(size, paced=True),
    }


if __name__ == "__main__":
    main()
