"""Random faults in a real job on many machines, and whether anything was lost, torn or stuck.

    python -m benchmarks.chaos [--faults N] [--seed N] [--python PATH]

Two parameter servers and six workers, each started by `semisync launch --zookeeper` in a network
namespace of its own, under three ZooKeeper servers. Processes and launchers are killed (kill -9)
and stopped, ZooKeeper loses its leader, links are pulled out, the disk of the checkpoints fills:
chaos_parts/faults.py. It needs root, and an interpreter that has TensorFlow, kazoo and psutil.

It ends with 1 where a wait hangs, two lead at one instant, a stale leader writes, a batch is torn,
the training stands still for more than 10 s at a worker's loss or 60 s at the chief's, or the AUC
leaves the spread that an undisturbed job has over its seeds: chaos_parts/checks.py.
"""

import contextlib
import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile

from benchmarks.chaos_parts import checks
from benchmarks.chaos_parts.cluster import Cluster
from benchmarks.chaos_parts.faults import KINDS, STEPS, Faults
from benchmarks.chaos_parts.network import are_allowed
from benchmarks.harness.options import options, refuse
from benchmarks.tables import table

UNDISTURBED = 600  # global steps, after which the regressions only fluctuate


def run(folder, python, faults, seed, steps=0, pause=0.05, said=print):
    """Injects faults into a job and checks everything.

    Args:
        folder: an empty pathlib directory.
        python: an interpreter with TensorFlow, kazoo and psutil.
        faults: their number; 0: an undisturbed job. Ctrl-C ends them early.
        steps: how many global steps it trains at least.
        said: called with a sentence for each fault.

    Returns:
        A dict of the findings.

    Raises:
        Stuck: something hung.
        AssertionError, BadInput: something was lost or torn, or there were two leaders.
    """
    with Cluster(folder, python, seed, pause) as cluster:
        cluster.launch_all()
        done = Faults(cluster, seed)
        cluster.until("the start", lambda: cluster.steps.look() > STEPS, done.tick)
        with contextlib.suppress(KeyboardInterrupt):
            for number in range(faults):
                said("{} {}".format(number + 1, done.one()))
        cluster.until("enough steps", lambda: cluster.steps.look() >= steps, done.tick)
        done.all_work()
        cluster.end()
        return {
            "seen": done.seen,
            "steps": cluster.steps.count,
            "reigns": checks.reigns(cluster),
            "generations": checks.writes(cluster),
            "fates": dict(checks.batches(cluster)),
            "auc": checks.scores(cluster),
        }


def report(undisturbed, disturbed):
    """Prints the findings as two Markdown tables; returns the exit code."""
    spread, mean = undisturbed["auc"], disturbed["auc"].mean()
    fates = ", ".join("{} {:,}".format(*fate) for fate in sorted(disturbed["fates"].items()))
    auc = "{:.5f}; {:.5f} to {:.5f}".format(mean, spread.min(), spread.max())
    rows = []
    for kind in KINDS:
        waits = [seconds for name, seconds in disturbed["seen"] if name == kind.name]
        if waits:
            took = ("{:.1f}".format(one) for one in (statistics.median(waits), max(waits)))
            rows.append([kind.name, len(waits), kind.within, *took])
    print(table("fault | times | allowed, s | median, s | most, s", rows) + "\n")
    rows = [
        ["global steps", "{:,}".format(disturbed["steps"])],
        ["reigns, no two at one instant", disturbed["reigns"]],
        ["generations, none by a stale leader", disturbed["generations"]],
        ["batches, each in every variable or in none", fates],
        ["AUC; of the undisturbed job, over its {} seeds".format(len(spread)), auc],
    ]
    print(table("what was checked | found", rows))
    within = {kind.name: kind.within for kind in KINDS}
    late = [name for name, seconds in disturbed["seen"] if seconds > within[name]]
    return int(bool(late) or not spread.min() <= mean <= spread.max())


def main():
    args = options(__doc__, faults=200, seed=int, python=sys.executable)
    seed = random.randrange(10**6) if args.seed is None else args.seed
    if not are_allowed():
        refuse("it needs root, for network namespaces and a disk of its own")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or the namespaces would stay
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, too
    print("seed {}\n".format(seed), flush=True)
    found = []
    for faults in (0, args.faults):
        with tempfile.TemporaryDirectory() as folder:
            found.append(
                run(
                    pathlib.Path(folder),
                    os.path.abspath(args.python),
                    faults,
                    seed + len(found),
                    steps=UNDISTURBED,
                    said=lambda sentence: print(sentence, file=sys.stderr, flush=True),
                )
            )
    return report(*found)


if __name__ == "__main__":
    sys.exit(main())
