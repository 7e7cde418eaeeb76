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

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.tables import head, row, spread
from benchmarks.training_pace_parts import job

PARTS = pathlib.Path(__file__).parent / "training_pace_parts"
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


class Side:
    """A process that trains: `pace` asks it for rows per second."""

    def __init__(self, python, script, *arguments, **environment):
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(PARTS / script), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        )
        assert self._process.stdout.readline() == "ready\n", (script, *arguments)

    def pace(self, rows, seconds):
        """Rows per second of wall time, and of processor time; of the command, and the parts."""
        self._process.stdin.write(f"{rows} {seconds}\n")
        self._process.stdin.flush()
        return [float(word) for word in self._process.stdout.readline().split()]

    def end(self):
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def busy(wanted):
    """A busy process beside, or none."""
    process = subprocess.Popen(BUSY) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tf-python", required=True)
    parser.add_argument("--models", nargs="+", default=list(job.MODELS), choices=job.MODELS)
    parser.add_argument("--optimizers", nargs="+", default=["Adagrad"])
    parser.add_argument("--rows", type=int, nargs="+", default=[128, 1024, 8192])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--floor", action="store_true")
    args = parser.parse_args()
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
    theirs = Side(args.tf_python, "in_tensorflow.py", model, kind, prefix, threads, how)
    ours = in_torch("in_command.py" if args.files else "in_torch.py", model, prefix, threads)
    for rows in args.rows:
        turns = [
            (theirs.pace(rows, args.seconds), ours.pace(rows, args.seconds))
            for _ in range(args.repeats)
        ]
        walls, cpus = (spread(own[k] / other[k] for other, own in turns) for k in (0, 1))
        speed = f"{statistics.median(other[0] for other, _ in turns):,.0f}"
        said = "" if args.files else cpus
        print(row(model, kind, threads, f"{rows:,}", speed, walls, said), flush=True)
    theirs.end()
    ours.end()


def show_parts(prefix, model, kind, threads, args):
    """Measures and prints one model's rows of the table of the parts of a step."""
    Side(args.tf_python, "in_tensorflow.py", model, kind, prefix, threads, "fed").end()
    command = in_torch("in_command.py", model, prefix, threads)
    for rows in args.rows:
        turns = [command.pace(rows, args.seconds)[1:] for _ in range(args.repeats)]
        found = list(map(statistics.median, zip(*turns)))
        shown = [f"{milliseconds:.2f}" for milliseconds in found]
        print(row(model, kind, f"{rows:,}", f"{sum(found):.2f}", *shown), flush=True)
    command.end()


def show_floor(args):
    """Measures and prints what the DeepFM's step cannot go below in torch."""
    print(head(OF_FLOOR), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "model.ckpt")
        theirs = Side(args.tf_python, "in_tensorflow.py", "deepfm", "Adagrad", saved, 1, "fed")
        floor = in_torch("in_floor.py", 1)
        for rows in args.rows:
            turns = [
                [rows / side.pace(rows, args.seconds)[0] * 1e3 for side in (theirs, floor)]
                for _ in range(args.repeats)
            ]
            whole, alone = (f"{statistics.median(one):.2f}" for one in zip(*turns))
            shares = spread(own / other for other, own in turns)
            print(row(f"{rows:,}", whole, alone, shares), flush=True)
        theirs.end()
        floor.end()


def in_torch(script, *arguments):
    """A side in this interpreter, whose threads wait as those of `semisync train` do."""
    waiting = {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE")}
    return Side(sys.executable, script, *arguments, **waiting)


if __name__ == "__main__":
    main()
