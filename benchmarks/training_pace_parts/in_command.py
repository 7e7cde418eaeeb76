"""`semisync train` on a model of benchmarks.training_pace: in_command MODEL PREFIX THREADS.

Runs the command in this process, on Parquet that it writes, as often as it is asked to: reports are
as many seconds apart as it is told. Answers with rows per second, the median of what it reports but
for the first time, and the milliseconds of its training thread a step, by part, from the first
report to the last step: `rows` is the time in which the thread waits for a batch, `other` what is
in no part. The checkpoint that ends a training is left out, since a long one has it once.
"""

import collections
import contextlib
import functools
import io
import pathlib
import re
import shutil
import statistics
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks.harness import side
from benchmarks.training_pace_parts.job import batch
from migrate.training import trainer
from migrate.training.metrics import Metrics
from migrate.training.reading import ColumnData
from semisync import cli

OPTIONS = {"mmoe": ["--output", "click_logits"]}  # of the command
ROWS = {"wide": 25_000, "deepfm": 40_000, "din": 12_000, "mmoe": 40_000}  # about those of a second
REPORTS = 4
PARTS = "forward", "backward", "optimizer", "metrics", "rows", "reports"


class Clock:
    """Adds up the seconds of the parts, from the step `ignored` on."""

    def __init__(self):
        self.ignored = 0
        self._parts = collections.Counter()
        self._steps, self._began = 0, 0.0
        self.milliseconds = []  # of a step of the last training, by part

    def timed(self, part, call):
        """`call`, wrapped so that its time counts for a part."""

        @functools.wraps(call)
        def inner(*args, **more):
            began = time.perf_counter()
            try:
                return call(*args, **more)
            finally:
                self._parts[part] += time.perf_counter() - began

        return inner

    def batches(self, data):
        """The batches of the data; a step ends where the next one is asked for."""
        found, self._steps = iter(data), 0
        take = self.timed("rows", lambda: next(found, None))
        for given in iter(take, None):
            yield given
            self._steps += 1
            if self._steps == self.ignored:
                self._parts.clear()
                self._began = time.perf_counter()
        steps, whole = self._steps - self.ignored, time.perf_counter() - self._began
        found = [self._parts[part] / steps * 1e3 for part in PARTS]
        self.milliseconds = [*found, whole / steps * 1e3 - sum(found)]


def watch(clock):
    """Has the clock measure all trainings of this process."""
    given = ColumnData.__iter__
    ColumnData.__iter__ = lambda data: clock.batches(given(data))
    trainer.loss_and_scores = clock.timed("forward", trainer.loss_and_scores)
    torch.Tensor.backward = clock.timed("backward", torch.Tensor.backward)
    Metrics.add = clock.timed("metrics", Metrics.add)
    run = trainer._Run
    run._report, run._save = clock.timed("reports", run._report), clock.timed("reports", run._save)
    begin = run.begin

    def begun(self, resume):
        begin(self, resume)
        for optimizer in self._optimizers:
            optimizer.step = clock.timed("optimizer", optimizer.step)
            optimizer.zero_grad = clock.timed("optimizer", optimizer.zero_grad)

    run.begin = begun


def train(clock, model, prefix, threads, rows, seconds):
    """Runs the command once; returns the pace that it reported, and the parts of a step."""
    data, out = f"{prefix}.{rows}.parquet", prefix + ".trained"
    clock.ignored = max(1, int(seconds * ROWS[model] / rows))
    if not pathlib.Path(data).exists():
        columns = batch(model, clock.ignored * REPORTS * rows, 0)
        pq.write_table(pa.table({name: column(one) for name, one in columns.items()}), data)
    shutil.rmtree(out, ignore_errors=True)
    words = [prefix, "--data", data, "--label", "click", "--out", out, "--threads", threads]
    words += ["--batch-size", str(rows), "--report-every", str(clock.ignored)]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        status = cli.main(["train", *words, *OPTIONS.get(model, [])])
    assert status == 0, words
    speeds = re.findall(r"([\d,]+) rows/s", shown.getvalue())[1:]
    pace = statistics.median(int(one.replace(",", "")) for one in speeds)
    return [pace, *clock.milliseconds]


def column(array):
    """An Arrow array."""
    if array.ndim == 1:
        return pa.array(array, pa.string() if array.dtype == object else None)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(array)), array.shape[1])


def main():
    clock = Clock()
    watch(clock)
    side.answer("ready", functools.partial(train, clock, *sys.argv[1:4]))


main()
