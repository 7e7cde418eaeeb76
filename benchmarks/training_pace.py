"""Rows per second of training on in torch, against TensorFlow 1.15 on the same job.

    python -m benchmarks.training_pace --tf-python PYTHON [--rows N ...] [--repeats N] [--seconds S]

1. A DeepFM: 26 id tables of 10,000 x 16 and 26 of 10,000 x 1, 13 numbers, layers of 128 and 64
   under Adagrad. TensorFlow trains it by session.run, with batches that are fed from memory.
2. The loop is a plain one over `build_training` of its checkpoint, over the same batches; its
   threads sleep while they wait for each other, as those of `semisync train` do, or spin, as
   OpenMP's do by default.
3. All are processes that wait while another one is measured. They take turns; each figure is the
   median of the turns, and a ratio is one within a turn. A busy process is a Python loop beside.
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

PARTS = pathlib.Path(__file__).parent / "training_pace_parts"
BUSY = [sys.executable, "-c", "while True: pass"]


class Side:
    """A process that trains: `pace` asks it for rows per second."""

    def __init__(self, python, script, prefix, threads, **environment):
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(PARTS / script), prefix, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        )
        assert self._process.stdout.readline() == "ready\n", script

    def pace(self, rows, seconds):
        """Rows per second of wall time, and of processor time."""
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
    parser.add_argument("--rows", type=int, nargs="+", default=[128, 1024, 8192])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "model.ckpt")
        print(
            head(
                "beside | threads | rows | TensorFlow, rows/s | torch / TensorFlow | "
                "of processor time | threads that spin / TensorFlow"
            )
        )
        for threads in (1, 2):
            sides = {"tensorflow": Side(args.tf_python, "in_tensorflow.py", prefix, threads)}
            loop = sys.executable, "in_torch.py", prefix, threads
            sides["sleeping"] = Side(*loop, OMP_WAIT_POLICY="PASSIVE")
            sides["spinning"] = Side(*loop)
            for beside in (False, True):
                for rows in args.rows:
                    show(sides, beside, threads, rows, args)
            for side in sides.values():
                side.end()


def show(sides, beside, threads, rows, args):
    """Measures one cell, and prints it."""
    found = {name: [] for name in sides}
    with busy(beside):
        for _ in range(args.repeats):
            for name, side in sides.items():
                found[name].append(side.pace(rows, args.seconds))
    theirs = found["tensorflow"]
    walls, cpus, spinning = (
        spread(one[which] / other[which] for one, other in zip(found[name], theirs))
        for name, which in (("sleeping", 0), ("sleeping", 1), ("spinning", 0))
    )
    speed = f"{statistics.median(wall for wall, _ in theirs):,.0f}"
    where = "a busy process" if beside else "nothing"
    print(row(where, threads, f"{rows:,}", speed, walls, cpus, spinning), flush=True)


if __name__ == "__main__":
    main()
