"""The rows of each numbered batch, and the time that it takes: the same in every mode.

The batches cut the log in time order and start over at its end; of a log that is longer than the
training, the latest rows are taken. This module runs under Python 3.7 and numpy 1.18.

`spec` is a mapping with `batches` (their number), `batch` (rows in each), `pause` (seconds per
batch besides computing), `slow_share` and `slow_factor`.
"""

import numpy as np


def rows(number, count, spec):
    """The slice of batch `number`, of a log of `count` rows; at least one."""
    size = min(spec["batch"], count)
    in_log = min(spec["batches"], count // size)
    start = count - (in_log - number % in_log) * size
    return slice(start, start + size)


def pauses(spec):
    """float32 [batches]: the seconds that each batch takes besides computing."""
    slow = np.random.RandomState(0).rand(spec["batches"]) < spec["slow_share"]
    return np.where(slow, spec["slow_factor"], 1).astype(np.float32) * spec["pause"]
