"""Rows per second of training on in torch, against TensorFlow on the same job.

    python -m benchmarks.training_pace --tf-python PYTHON [--models NAME ...]
        [--optimizers NAME ...] [--rows N ...] [--threads N ...] [--repeats N] [--seconds S]
        [--files] [--busy] [--parts] [--floor]

1. Four models, training_pace_parts/job.py. TensorFlow trains them by session.run, with batches that
   are fed from memory; the loop is a plain one over `build_training` of its checkpoint, over the
   same batches. Canned Wide & Deep has its linear part under FTRL, whatever the optimizer.
2. --files: TensorFlow reads a TFRecord file by tf.data, and `semisync train` reads Parquet; of the
   command it is the pace that it reports, but for its first steps.
3. --parts: of the command it is measured what its training thread spends a step on.
4. --floor: the look-ups of the DeepFM alone, forward and backward in plain torch, against all of
   TensorFlow's step.
5. Both sides are processes that wait while the other one is measured. They take turns; each figure
   is the median of the turns, and a ratio is one within a turn. --busy: a Python loop runs beside
   them.
6. Threads of the loop sleep while they wait for each other, as those of `semisync train` do;
   OMP_WAIT_POLICY=ACTIVE in the environment has them spin.
"""

import contextlib
import functools
import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.commands import TF1
from benchmarks.harness.options import AnyOf, options
from benchmarks.harness.side import Side
from benchmarks.harness.turns import turns
from benchmarks.tables import head, row, spread
from benchmarks.training_pace_parts import job

PARTS = "benchmarks.training_pace_parts."
BUSY = [sys.executable, "-c", "while True: pass"]
COLUMNS = (
    "model | optimizer | threads | rows | TensorFlow, rows/s | torch / TensorFlow | "
    "of processor time"
)
OF_PARTS = (
    "model | optimizer | rows | ms a step | forward | backward | optimizer | metrics | "
    "waiting for rows | reports | other"
)
OF_FLOOR = (
    "rows | TensorFlow, ms a step | torch's look-ups alone, ms a step | look-ups / TensorFlow"
)


@contextlib.contextmanager
def busy(wanted):
    """Keeps a busy process beside the block, if wanted."""
    process = subprocess.Popen(BUSY) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def main():
    args = options(
        __doc__,
        tf_python=TF1,
        models=AnyOf(job.MODELS),
        optimizers=["Adagrad"],
        rows=[128, 1024, 8192],
        threads=[1],
        repeats=5,
        seconds=3.0,
        files=False,
        busy=False,
        parts=False,
        floor=False,
    )
    if args.floor:
        show_floor(args)
        return
    print(head(OF_PARTS if args.parts else COLUMNS), flush=True)
    for model in args.models:
        for kind in args.optimizers:
            for threads in args.threads:
                with tempfile.TemporaryDirectory() as folder, busy(args.busy):
                    measure = show_parts if args.parts else show
                    measure(os.path.join(folder, "model.ckpt"), model, kind, threads, args)


def show(prefix, model, kind, threads, args):
    """Measures and prints one model's rows of the table."""
    how = "file" if args.files else "fed"
    theirs = in_tensorflow(args, model, kind, prefix, threads, how)
    ours = in_torch("in_command" if args.files else "in_torch", model, prefix, threads)
    for rows in args.rows:
        paces = both(theirs, ours, rows, args)
        walls, cpus = (spread(own[k] / other[k] for other, own in paces) for k in (0, 1))
        speed = f"{statistics.median(other[0] for other, _ in paces):,.0f}"
        said = "" if args.files else cpus
        print(row(model, kind, threads, f"{rows:,}", speed, walls, said), flush=True)
    theirs.end()
    ours.end()


def show_parts(prefix, model, kind, threads, args):
    """Measures and prints one model's rows of the table of the parts of a step."""
    in_tensorflow(args, model, kind, prefix, threads, "fed").end()
    command = in_torch("in_command", model, prefix, threads)
    for rows in args.rows:
        several = [command.ask(rows, args.seconds)[1:] for _ in range(args.repeats)]
        found = list(map(statistics.median, zip(*several)))
        shown = [f"{milliseconds:.2f}" for milliseconds in found]
        print(row(model, kind, f"{rows:,}", f"{sum(found):.2f}", *shown), flush=True)
    command.end()


def show_floor(args):
    """Measures and prints the least time that the DeepFM's step can take in torch."""
    print(head(OF_FLOOR), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "model.ckpt")
        theirs = in_tensorflow(args, "deepfm", "Adagrad", saved, 1, "fed")
        floor = in_torch("in_floor", 1)
        for rows in args.rows:
            paces = both(theirs, floor, rows, args)
            taken = [[rows / pace[0] * 1e3 for pace in one] for one in paces]
            whole, alone = (f"{statistics.median(one):.2f}" for one in zip(*taken))
            shares = spread(own / other for other, own in taken)
            print(row(f"{rows:,}", whole, alone, shares), flush=True)
        theirs.end()
        floor.end()


def both(theirs, ours, rows, args):
    """(TensorFlow's, torch's) of each turn: rows per second of wall time, and of processor time."""
    sides = [functools.partial(side.ask, rows, args.seconds) for side in (theirs, ours)]
    return list(zip(*turns(dict(enumerate(sides)), args.repeats).values()))


def in_tensorflow(args, *words):
    """A side under the other Python."""
    return Side(PARTS + "in_tensorflow", *words, python=args.tf_python)


def in_torch(module, *words):
    """A side in this interpreter, whose threads wait as those of `semisync train` do."""
    waiting = {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE")}
    return Side(PARTS + module, *words, **waiting)


if __name__ == "__main__":
    main()
