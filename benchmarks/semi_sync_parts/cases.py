"""The cases: a cluster, a model, and how long a batch takes besides computing.

A batch's pause is a sleep in the worker, so that a slow worker leaves the CPUs to others, as one on
another machine would. The pauses have fixed seeds: a worker's n-th batch is equally slow in every
mode and every repeat.
"""

import collections

import numpy as np

MODES = ("async", "native-sync", "semi-sync", "sync")
STALENESS_BOUND = 4  # global steps, of the mode semi-sync

# A model: `tables` embedding tables of `rows` x `dim`, each looked up for `fields` ids of each of
# `batch` rows, uniform in the table; their mean goes through dense layers of `hidden` units to one
# logit.
Model = collections.namedtuple("Model", "batch tables fields rows dim hidden")

# A case: `pause` in seconds; `slow_factor` is how many times as long a slow batch pauses;
# `slow_share` of the batches are slow, or, where `slow_worker` is a task, all of that worker's and
# no other; `seconds` is the measurement window.
Case = collections.namedtuple(
    "Case",
    "name title ps workers batches_per_step model pause slow_factor slow_share slow_worker seconds",
)

_FOUR = Case(
    name="uniform",
    title="4 uniform workers",
    ps=1,
    workers=4,
    batches_per_step=4,
    model=Model(batch=256, tables=1, fields=26, rows=100000, dim=8, hidden=(64, 32)),
    pause=0.03,
    slow_factor=5,
    slow_share=0.0,
    slow_worker=None,
    seconds=4.0,
)

_ALL = (
    _FOUR,
    _FOUR._replace(
        name="slow-batches", title="4 workers, 30 % of batches 5x slower", slow_share=0.3
    ),
    _FOUR._replace(name="slow-worker", title="4 workers, one always 5x slower", slow_worker=3),
    _FOUR._replace(
        name="sixteen-workers",
        title="16 workers, 15 % of batches 6x slower",
        ps=2,
        workers=16,
        batches_per_step=16,
        pause=0.3,
        slow_factor=6,
        slow_share=0.15,
        seconds=8.0,
    ),
    _FOUR._replace(
        name="ps-bound",
        title="PS-bound: M = 32, 1024 x 26 ids, 1M rows",
        workers=3,
        batches_per_step=32,
        model=Model(batch=1024, tables=1, fields=26, rows=1000000, dim=8, hidden=()),
        pause=0.0,
        seconds=5.0,
    ),
    _FOUR._replace(
        name="start-up-m64",
        title="start-up: M = 64, 102 variables on 2 PS",
        ps=2,
        workers=3,
        batches_per_step=64,
        model=Model(batch=256, tables=2, fields=13, rows=50000, dim=8, hidden=(16,) * 49),
        pause=0.0,
        seconds=2.0,
    ),
)

CASES = {case.name: case for case in _ALL}


def pauses(case, task):
    """Endlessly yields the seconds that each batch of worker `task` takes besides computing."""
    random = np.random.RandomState(1000 + task)
    while True:
        drawn = random.rand() < case.slow_share  # drawn always, so that all cases draw alike
        slow = drawn if case.slow_worker is None else task == case.slow_worker
        yield case.pause * (case.slow_factor if slow else 1)
