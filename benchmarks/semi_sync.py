"""The four ways to train, side by side: pace, processor time, memory, start-up and staleness.

    python benchmarks/semi_sync.py [--cases NAME ...] [--repeats N] [--cores LIST]
                                   [--json FILE] [--plot FILE.svg]

The modes: `async`, the plain optimizer; `native-sync`, tf.train.SyncReplicasOptimizer; `semi-sync`,
semisync.GlobalBatchOptimizer with Threshold(4); `sync`, the same with paced=True.

Each repeat of a case is a cluster of separate processes on this machine. In it the modes run one
after another, the same workers with the same pauses, each mode with fresh parameter servers of its
own; the next repeat has them in the opposite order. A mode is measured once all workers are warm,
while all of them train. Ratios are taken within a repeat.

Prints Markdown tables: median [smallest, largest] over the repeats. semi_sync_parts/measures.py
describes the figures, semi_sync_parts/cases.py the cases. Keep the machine idle meanwhile: the last
line says how busy other processes kept it.
"""

import argparse
import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.core_speed import core_milliseconds
from benchmarks.results import processor
from benchmarks.semi_sync_parts import plot, summary, table
from benchmarks.semi_sync_parts.cases import CASES, MODES, STALENESS_BOUND
from benchmarks.semi_sync_parts.conductor import run_repeat
from benchmarks.semi_sync_parts.measures import figures
from semisync.common.errors import SemisyncError, UsageError
from semisync.common.files import write_json


def parse(arguments):
    """The options."""
    listed = "\n".join(
        f"  {case.name:<16} {case.title}; window {case.seconds:g} s" for case in CASES.values()
    )
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="cases:\n" + listed,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, default=list(CASES), metavar="NAME", help="see below"
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), metavar="MODE")
    parser.add_argument("--repeats", type=_count, default=3, metavar="N", help="default: 3")
    parser.add_argument(
        "--seconds", type=_seconds, metavar="S", help="length of each window, instead of the case's"
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="interpreter of the cluster, e.g. .venv-tf1/bin/python; default: this one",
    )
    parser.add_argument(
        "--cores",
        type=_cores,
        metavar="LIST",
        help="CPUs for all processes, in taskset's notation: 0 or 0,2 or 0-3; default: all",
    )
    parser.add_argument("--json", metavar="FILE", help="where to write all figures")
    parser.add_argument("--plot", metavar="FILE.svg", help="where to draw the pace, x asynchronous")
    parser.add_argument(
        "--logs", metavar="DIR", help="a new folder for the logs and measurements of the processes"
    )
    return parser.parse_args(arguments)


def _count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more, not {text!r}")
    return int(text)


def _cores(text):
    cores = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise argparse.ArgumentTypeError(
                f"numbers of processors such as 0,2 or 0-3, not {text!r}"
            )
        cores.update(range(int(first), int(last or first) + 1))
    missing = sorted(cores - os.sched_getaffinity(0))
    if missing:
        raise argparse.ArgumentTypeError(f"processor {missing[0]} is not there")
    return sorted(cores)


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 3600:
        raise argparse.ArgumentTypeError(f"seconds, more than 0, not {text!r}")
    return seconds


def machine(python):
    """The machine and the versions behind the figures."""
    ask = "import platform, tensorflow as tf; print(platform.python_version(), tf.__version__)"
    environment = {key: value for key, value in os.environ.items() if key != "TF2_BEHAVIOR"}
    try:
        asked = subprocess.run(
            [python, "-W", "ignore", "-c", ask], capture_output=True, text=True, env=environment
        )
    except OSError as error:
        raise UsageError(f"{python} cannot be run: {error.strerror}") from error
    if asked.returncode:
        why = "".join(": " + line for line in asked.stderr.splitlines()[-1:])
        raise UsageError(f"{python} cannot import TensorFlow{why}")
    version, tensorflow = asked.stdout.split()[-2:]
    return {
        "cpu": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "core_milliseconds": core_milliseconds(),
        "platform": platform.platform(),
        "python": version,
        "tensorflow": tensorflow,
    }


def measure(case, args, folder):
    """All repeats of a case; returns its `summary.of_case`."""
    repeats = []
    for number in range(args.repeats):
        order = args.modes if number % 2 == 0 else args.modes[::-1]
        below = os.path.join(folder, f"{case.name}-{number + 1}")
        os.makedirs(below)
        at = f"{case.name}, repeat {number + 1} of {args.repeats}"

        def say(text, at=at):
            print(f"{at}: {text}", file=sys.stderr, flush=True)

        try:
            records = run_repeat(args.python, case, order, args.seconds or case.seconds, below, say)
        except SemisyncError as error:
            raise SemisyncError(f"{at}: {error}") from error
        repeats.append({record.mode: figures(record, case) for record in records})
    return summary.of_case(case, repeats)


def report(cases, args, host):
    """Writes and prints the figures."""
    if args.json:
        options = {
            name: value for name, value in vars(args).items() if name not in ("json", "plot")
        }
        options["staleness_bound"] = STALENESS_BOUND
        write_json(args.json, {"machine": host, "options": options, "cases": cases})
    if args.plot:
        plot.draw(cases, "async" if "async" in args.modes else sorted(args.modes)[0], args.plot)
    print("\n" + table.RATIO_HEAD)
    for case in cases:
        print(table.ratio_row(case))
    print("\n" + table.SHORT_HEAD)
    for case in cases:
        print(table.short_row(case))
    print("\n" + table.others(cases))


def run(args):
    _check_writable(args)
    if args.cores:
        os.sched_setaffinity(0, args.cores)  # which the processes of the cluster inherit
    host = machine(args.python)
    print("{cpu}, {processors} processors, {platform};".format(**host), end=" ")
    print("one core sorts 4 million float64 in {core_milliseconds:.0f} ms".format(**host))
    print("Python {python}, TensorFlow {tensorflow}".format(**host), end="; ")
    print(f"repeats: {args.repeats}\n\n{table.HEAD}", flush=True)
    cases = []
    with _folder(args.logs) as folder:
        for name in args.cases:
            cases.append(measure(CASES[name], args, folder))
            print(*table.rows(cases[-1]), sep="\n", flush=True)
    report(cases, args, host)


@contextlib.contextmanager
def _folder(logs):
    """`logs`, or a temporary folder, which is kept if a process failed, for its log."""
    folder, keep = logs or tempfile.mkdtemp(prefix="semi_sync."), bool(logs)
    try:
        yield folder
    except SemisyncError:
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(folder)


def _check_writable(args):
    """Raises before minutes of measuring rather than after them."""
    for path in filter(None, (args.json, args.plot)):
        folder = os.path.dirname(os.path.abspath(path))
        if not os.access(folder, os.W_OK):
            raise UsageError(f"{path} cannot be written: {folder} is no folder to write in")
    if args.logs and os.path.exists(args.logs):
        raise UsageError(f"{args.logs} exists already: --logs takes the name of a new folder")


def main():
    args = parse(sys.argv[1:])
    try:
        run(args)
    except SemisyncError as error:
        print(f"semi_sync.py: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
