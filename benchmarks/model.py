"""Rows per second of a converted model against TensorFlow 1.15's own session, from the raw rows.

    python -m benchmarks.model --tf-python .venv-tf1/bin/python [--rows N ...] [--repeats R]

Three models, SavedModels of random values: the canned Wide & Deep with 26 columns of text, DeepFM
with 39 fields, a GRU with attention. Both sides score one batch again and again, with two threads
each, in turns; TensorFlow is fed NumPy arrays (bytes objects for text), torch tensors and Arrow
arrays. torch keeps the memory that it frees, as in `semisync score`. The logits are compared.
Medians of the repeats, with the least and the most; CPU time is that of all threads. The last table
is how long converting takes: reading, writing the source, building the module.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow
import torch

from benchmarks.commands import TF1
from benchmarks.harness.options import AnyOf, options
from benchmarks.harness.side import Side
from benchmarks.harness.turns import ratios, turns
from benchmarks.model_parts.batches import batch_of
from benchmarks.tables import head, row, spread, table, timed
from migrate.graph.metagraph import read_graph
from migrate.model.load import load_model
from migrate.runtime.serving.memory import keep_freed_memory

SIDE = "benchmarks.model_parts.tensorflow_side"
MODELS = ("wide_and_deep", "deepfm", "sequence")
THREADS = 2
SECONDS = 2.0  # of one repeat of one side
TOLERANCE = 2e-5
COLUMNS = (
    "model | rows a batch | torch, rows/s | TensorFlow, rows/s | torch / TensorFlow "
    "| TensorFlow's CPU time / torch's"
)


def as_inputs(batch):
    """A batch of NumPy arrays as tensors, and as Arrow arrays where they are text."""
    return {
        name: pyarrow.array(value, pyarrow.large_binary())
        if value.dtype == object
        else torch.from_numpy(value)
        for name, value in batch.items()
    }


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

    def ask(self, times):
        """(wall, CPU) seconds of so many batches."""
        with torch.inference_mode():
            return timed(lambda: [self._module(self._batch) for _ in range(times)])[:2]


def compared(python, folder, model, rows, repeats):
    """{side: [(wall, CPU) seconds a batch]}, torch's side, and the first line of TensorFlow's."""
    ours, theirs = (
        Module(folder, model, rows),
        Side(SIDE, "score", folder, model, rows, python=python),
    )
    expected = np.load(os.path.join(folder, model + ".npy"))
    difference = np.abs(ours.logits.reshape(-1) - expected.reshape(-1)).max()
    assert difference <= TOLERANCE, (model, difference)

    def measured(side, times):
        return lambda: tuple(one / times for one in side.ask(times))

    sides = {"torch": ours, "tensorflow": theirs}
    times = {name: max(1, int(SECONDS / (side.ask(2)[0] / 2))) for name, side in sides.items()}
    found = turns({name: measured(side, times[name]) for name, side in sides.items()}, repeats)
    theirs.end()
    return found, ours, theirs.said


def cells(model, rows, found):
    """The cells of a row of the table."""
    walls = {name: [wall for wall, _ in times] for name, times in found.items()}
    cpus = {name: statistics.median(cpu for _, cpu in times) for name, times in found.items()}
    speeds = (spread((rows / one for one in wall), "{:,.0f}") for wall in walls.values())
    ratio = spread(ratios(walls["tensorflow"], walls["torch"]))
    return [model, f"{rows:,}", *speeds, ratio, f"{cpus['tensorflow'] / cpus['torch']:.2f}"]


def main():
    """The command line."""
    args = options(__doc__, tf_python=TF1, rows=[1024, 8192], repeats=5, models=AnyOf(MODELS))
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    converted = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.tf_python, "-W", "ignore", "-m", SIDE, "write", folder], check=True)
        print(head(COLUMNS))
        for model in args.models:
            for rows in args.rows:
                found, ours, said = compared(args.tf_python, folder, model, rows, args.repeats)
                print(row(*cells(model, rows, found)), flush=True)
            converted.append([model, f"{ours.nodes:,}", f"{ours.converted:.1f}"])
    print(f"\n{said}\n\n" + table("model | nodes | conversion, CPU s", converted))


if __name__ == "__main__":
    sys.exit(main())
