"""The job's fixed choices.

A day's rows are shuffled by the seed and cut into local batches, of which every 4 are a global
batch; what fills no whole global batch is left out on both sides. A seed also determines the
initial values.

The tables that the rows lie in:

    declared   tables of a declared size, over ids that are counted from 0: `answers`, `model`
    hash       TFRA's hash tables, over raw ids that come and go: `clicks`, `hash_model`
"""

import importlib
from typing import NamedTuple

_PARTS = {"declared": ("answers", "model"), "hash": ("clicks", "hash_model")}


class Plan(NamedTuple):
    """How the thirty days are trained.

    Attributes:
        rate, accumulator: Adagrad's.
        deviation: of the vectors of new ids, in hash tables.
        bound: of the staleness, in global steps.
        switch: the first day that TorchRec trains, too.
        most: global batches per day, if fewer than the day has.
        whole: TensorFlow also trains all days synchronously, without a switch.
        start: how many synchronous global steps the semi-synchronous job starts with.
    """

    tables: str = "declared"
    rate: float = 0.05
    accumulator: float = 1e-6
    deviation: float = 0.01
    local_batch: int = 256
    batches_per_step: int = 4
    workers: int = 4
    ps: int = 2
    bound: int = 4
    switch: int = 15
    days: int = 30
    most: int = 1000
    whole: bool = False
    start: int = 0

    @property
    def global_batch(self):
        """The rows of a global batch."""
        return self.local_batch * self.batches_per_step

    @property
    def log(self):
        """The module of the log."""
        return _module(_PARTS[self.tables][0])

    @property
    def model(self):
        """The module of the model, which needs TensorFlow."""
        return _module(_PARTS[self.tables][1])


def _module(name):
    return importlib.import_module("benchmarks.thirty_days_parts." + name)


# With an accumulator of 1e-6 Adagrad's steps are as large for a small gradient as for any: where a
# rounding flips a ReLU, in one of a hundred short runs, scores differ by up to .2.
_SHORT = {
    "accumulator": 0.01,
    "local_batch": 64,
    "batches_per_step": 2,
    "workers": 2,
    "ps": 1,
    "switch": 2,
    "days": 4,
}
QUICK = {
    "declared": Plan(most=4, **_SHORT),
    "hash": Plan(tables="hash", most=4, deviation=0.0, whole=True, **_SHORT),
}
FULL = {
    "declared": Plan(),
    "hash": Plan(tables="hash", rate=0.1, local_batch=1024, most=10, whole=True, start=30),
}
