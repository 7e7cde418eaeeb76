"""Where a step of `semisync train` spends its time: python command_parts.py STEPS WORD...

Runs `semisync train WORD...` in this process, and prints the milliseconds of its training thread a
step, by part, in JSON, from its first report (after STEPS steps) on. `rows` is the time in which
the thread waits for a batch, `other` what is in no part.
"""

import collections
import functools
import json
import pathlib
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2]))

import torch

from migrate.training import trainer
from migrate.training.metrics import Metrics
from migrate.training.reading import ColumnData
from semisync import cli

PARTS = "forward", "backward", "optimizer", "metrics", "rows", "reports"


class Clock:
    """Adds up the seconds of the parts."""

    def __init__(self, ignored):
        self._ignored, self.steps, self.began = ignored, 0, 0.0
        self.seconds = collections.Counter()

    def timed(self, part, call):
        """The function, whose time counts for a part."""

        @functools.wraps(call)
        def inner(*args, **more):
            began = time.perf_counter()
            try:
                return call(*args, **more)
            finally:
                self.seconds[part] += time.perf_counter() - began

        return inner

    def batches(self, data):
        """The batches of the data; a step ends where the next one is asked for."""
        found = iter(data)
        take = self.timed("rows", lambda: next(found, None))
        while True:
            batch = take()
            if batch is None:
                return
            yield batch
            self.steps += 1
            if self.steps == self._ignored:
                self.seconds.clear()
                self.began = time.perf_counter()


def main():
    clock = Clock(int(sys.argv[1]))
    given = ColumnData.__iter__
    ColumnData.__iter__ = lambda data: clock.batches(given(data))
    trainer.loss_and_scores = clock.timed("forward", trainer.loss_and_scores)
    torch.Tensor.backward = clock.timed("backward", torch.Tensor.backward)
    Metrics.add = clock.timed("metrics", Metrics.add)
    run = trainer._Run
    run._report, run._save = clock.timed("reports", run._report), clock.timed("reports", run._save)
    begin, end = run.begin, run.to_the_end
    shown = {}

    def begun(self, resume):
        begin(self, resume)
        for optimizer in self._optimizers:
            optimizer.step = clock.timed("optimizer", optimizer.step)
            optimizer.zero_grad = clock.timed("optimizer", optimizer.zero_grad)

    def ended(self):
        end(self)
        whole, steps = time.perf_counter() - clock.began, clock.steps - clock._ignored
        shown.update((part, clock.seconds[part] / steps * 1e3) for part in PARTS)
        shown["other"] = whole / steps * 1e3 - sum(shown.values())

    run.begin, run.to_the_end = begun, ended
    if cli.main(["train", *sys.argv[2:]]) == 0:
        print(json.dumps(shown))


main()
