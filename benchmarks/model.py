"""Rows per second of a converted model against TensorFlow 1.15's own session, from the raw rows.

    python -m benchmarks.model --tf-python .venv-tf1/bin/python [--rows N ...] [--repeats R]

Three models, SavedModels of random values: the canned Wide & Deep with 26 columns of text, DeepFM
with 39 fields, a GRU with attention. Both sides score one batch again and again, with two threads
each, in turns; TensorFlow is fed NumPy arrays (bytes objects for text), torch tensors and Arrow
arrays. torch keeps the memory that it frees, as in `semisync score`. The logits are compared.
Medians of the repeats, with the least and the most; CPU time is that of all threads. The last table
is how long converting takes: reading, writing the source, building the module.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow
import torch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks import tables
from benchmarks.model_parts.batches import batch_of
from migrate.graph.metagraph import read_graph
from migrate.model.load import load_model
from migrate.runtime.serving.memory import keep_freed_memory

SIDE = os.path.join(os.path.dirname(__file__), "model_parts", "tensorflow_side.py")
MODELS = ("wide_and_deep", "deepfm", "sequence")
PACKAGES = ("torch", "torchrec", "numpy", "pyarrow", "numba")
THREADS = 2
SECONDS = 2.0  # of one repeat of one side
TOLERANCE = 2e-5


def as_inputs(batch):
    """A batch of NumPy arrays as torch and Arrow have it."""
    return {
        name: pyarrow.array(value, pyarrow.large_binary())
        if value.dtype == object
        else torch.from_numpy(value)
        for name, value in batch.items()
    }


class Session:
    """TensorFlow's side, in a process of its own."""

    def __init__(self, python, folder, model, rows):
        command = [python, "-W", "ignore", SIDE, "score", folder, model, str(rows)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.said = self._process.stdout.readline().strip()

    def run(self, times):
        """(wall, CPU) seconds of so many batches."""
        self._process.stdin.write(f"{times}\n")
        self._process.stdin.flush()
        return tuple(map(float, self._process.stdout.readline().split()))

    def close(self):
        self._process.stdin.close()
        self._process.wait()


class Module:
    """torch's side."""

    def __init__(self, folder, model, rows):
        started = time.process_time()
        path = os.path.join(folder, model)
        self._module = load_model(path, output="logits")
        self.converted = time.process_time() - started
        self.nodes = len(read_graph(os.path.join(path, "saved_model.pb")).nodes)
        self._batch = as_inputs(batch_of(model, rows))
        with torch.inference_mode():
            self.logits = self._module(self._batch).numpy()

    def run(self, times):
        """As `Session.run`."""
        wall, cpu = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            for _ in range(times):
                self._module(self._batch)
        return time.perf_counter() - wall, time.process_time() - cpu


def compared(python, folder, model, rows, repeats):
    """{side: [(wall, CPU) seconds a batch]}, and torch's side."""
    ours, theirs = Module(folder, model, rows), Session(python, folder, model, rows)
    expected = np.load(os.path.join(folder, model + ".npy"))
    difference = np.abs(ours.logits.reshape(-1) - expected.reshape(-1)).max()
    assert difference <= TOLERANCE, (model, difference)
    sides = {"torch": ours, "tensorflow": theirs}
    times = {name: max(1, int(SECONDS / (side.run(2)[0] / 2))) for name, side in sides.items()}
    found = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            found[name].append(tuple(one / times[name] for one in side.run(times[name])))
    theirs.close()
    return found, ours, theirs.said


def row(model, rows, found):
    """A row of the table."""
    walls = {name: [wall for wall, _ in times] for name, times in found.items()}
    cpus = {name: statistics.median(cpu for _, cpu in times) for name, times in found.items()}
    speeds = {
        name: "{:,.0f} ({:,.0f} to {:,.0f})".format(
            *(rows / one for one in (statistics.median(wall), max(wall), min(wall)))
        )
        for name, wall in walls.items()
    }
    ratios = [one / other for one, other in zip(walls["tensorflow"], walls["torch"])]
    middle = statistics.median(ratios)
    return (
        f"| {model} | {rows:,} | {speeds['torch']} | {speeds['tensorflow']} "
        f"| {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
        f"| {cpus['tensorflow'] / cpus['torch']:.2f} |"
    )


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tf-python", default=".venv-tf1/bin/python")
    parser.add_argument("--rows", type=int, nargs="*", default=[1024, 8192])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    converted = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.tf_python, "-W", "ignore", SIDE, "write", folder], check=True)
        print(tables.versions(PACKAGES) + "\n")
        print(
            tables.head(
                "model | rows a batch | torch, rows/s | TensorFlow, rows/s | torch / TensorFlow "
                "| TensorFlow's CPU time / torch's"
            )
        )
        for model in args.models:
            for rows in args.rows:
                found, ours, said = compared(args.tf_python, folder, model, rows, args.repeats)
                print(row(model, rows, found), flush=True)
            converted.append([model, f"{ours.nodes:,}", f"{ours.converted:.1f}"])
    print(f"\n{said}\n\n" + tables.table("model | nodes | conversion, CPU s", converted))


if __name__ == "__main__":
    sys.exit(main())
