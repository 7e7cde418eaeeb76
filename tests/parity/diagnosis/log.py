"""A click log whose clicks follow users, items, tags (bags of one to four ids) and numbers.

The numbers lie on other scales than 0 and 1, so that BatchNorm has something to do.
"""

from typing import NamedTuple

import numpy as np

USERS, ITEMS, TAGS, NUMBERS = 3000, 400, 60, 3
TRAIN, TEST = 30000, 20000


class Log(NamedTuple):
    """Rows of a log, aligned."""

    user: np.ndarray
    item: np.ndarray
    tags: np.ndarray  # int64, all rows' bags one after the other
    lengths: np.ndarray  # int64, of the bags
    numbers: np.ndarray  # float32 (rows, NUMBERS)
    label: np.ndarray  # bool

    def batch(self, first, last):
        """Rows first..last, alone."""
        begin = self.lengths[:first].sum()
        tags = self.tags[begin : begin + self.lengths[first:last].sum()]
        columns = (column[first:last] for column in (self.lengths, self.numbers, self.label))
        return Log(self.user[first:last], self.item[first:last], tags, *columns)


def write_log(rows, seed):
    """A log of the one population: its effects do not depend on the seed."""
    world = np.random.RandomState(0)
    effects = [world.normal(size=count) for count in (USERS, ITEMS, TAGS)]
    random = np.random.RandomState(seed)
    user = np.minimum(random.zipf(1.3, rows) - 1, USERS - 1)
    item = np.minimum(random.zipf(1.4, rows) - 1, ITEMS - 1)
    lengths = random.randint(1, 5, rows)
    tags = random.randint(0, TAGS, lengths.sum())
    numbers = random.normal(size=(rows, NUMBERS)) * [1, 4, 0.2] + [3, -5, 1]
    liked = np.bincount(np.repeat(np.arange(rows), lengths), effects[2][tags]) / lengths
    logit = effects[0][user] + 0.6 * effects[1][item] + liked + numbers[:, 0] - 4.2
    logit += 0.1 * (numbers[:, 1] + 5)
    label = random.random_sample(rows) < 1 / (1 + np.exp(-logit))
    return Log(user, item, tags, lengths, numbers.astype(np.float32), label)
