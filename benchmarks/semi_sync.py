"""The four ways to train, side by side: pace, processor time, memory, start-up and staleness.

    python -m benchmarks.semi_sync [--cases NAME ...] [--modes MODE ...] [--repeats N] [--seconds S]
        [--python PYTHON] [--json FILE] [--plot FILE.svg]

The modes: `async`, the plain optimizer; `native-sync`, tf.train.SyncReplicasOptimizer; `semi-sync`,
semisync.GlobalBatchOptimizer with Threshold(4); `sync`, the same with paced=True. --seconds is the
length of each window, instead of the case's.

Each repeat of a case is a cluster of separate processes on this machine. In it the modes run one
after another, the same workers with the same pauses, each mode with fresh parameter servers of its
own; the next repeat has them in the opposite order. A mode is measured once all workers are warm,
while all of them train. Ratios are taken within a repeat.

Prints Markdown tables: median [smallest, largest] over the repeats. semi_sync_parts/measures.py
describes the figures, semi_sync_parts/cases.py the cases. Keep the machine idle meanwhile: the last
line says how busy other processes kept it.
"""

import os
import shutil
import sys
import tempfile

from benchmarks.harness.options import AnyOf, options
from benchmarks.semi_sync_parts import plot, table
from benchmarks.semi_sync_parts.cases import CASES, MODES
from benchmarks.semi_sync_parts.conductor import run_repeat
from benchmarks.semi_sync_parts.measures import figures
from benchmarks.tables import head
from semisync.common.files import check_writable, write_json


def measure(case, args, folder):
    """All repeats of a case, as `table` and --json have them."""
    repeats = []
    for number in range(1, args.repeats + 1):
        below = os.path.join(folder, f"{case.name}-{number}")
        os.makedirs(below)

        def say(text, at=f"{case.name}, repeat {number} of {args.repeats}"):
            print(f"{at}: {text}", file=sys.stderr, flush=True)

        order, seconds = args.modes[:: (-1) ** (number - 1)], args.seconds or case.seconds
        records = run_repeat(args.python, case, order, seconds, below, say)
        repeats.append({record.mode: figures(record, case) for record in records})
    cluster = dict(case._asdict(), model=case.model._asdict())
    return {"name": case.name, "title": case.title, "cluster": cluster, "repeats": repeats}


def main():
    """The command line."""
    args = options(
        __doc__,
        cases=AnyOf(CASES),
        modes=AnyOf(MODES),
        repeats=3,
        seconds=float,
        python=sys.executable,
        json=str,
        plot=str,
    )
    for path in filter(None, (args.json, args.plot)):
        check_writable(path)  # rather before minutes of measuring than after them
    folder = tempfile.mkdtemp(prefix="semi_sync.")  # a run that fails leaves its logs
    cases = []
    print(head(table.HEAD), flush=True)
    for name in args.cases:
        cases.append(measure(CASES[name], args, folder))
        print(*table.rows(cases[-1]), sep="\n", flush=True)
    shutil.rmtree(folder)
    print("\n" + head(table.RATIO_HEAD), *map(table.ratio_row, cases), sep="\n")
    print("\n" + head(table.SHORT_HEAD), *map(table.short_row, cases), sep="\n")
    print("\n" + table.others(cases))
    if args.json:
        write_json(args.json, {"cases": cases})
    if args.plot:
        plot.draw(cases, "async" if "async" in args.modes else sorted(args.modes)[0], args.plot)


if __name__ == "__main__":
    main()
