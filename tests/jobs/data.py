"""A click log for the jobs: label, two numbers and three ids, made from a seed.

Each worker reads a file of its own, in order and once (or again from its start).
"""

import random

HEADER = "label,price,hour,user,item,category"
USERS, ITEMS, CATEGORIES = 40, 25, 7
BATCH, BATCHES = 16, 12  # rows in a local batch, local batches in a worker's file


def rows(worker):
    """The rows of a worker's file, a list of BATCH * BATCHES strings."""
    chance = random.Random("worker {}".format(worker))
    return [_row(chance) for _ in range(BATCH * BATCHES)]


def _row(chance):
    user, item, category = (chance.randrange(n) for n in (USERS, ITEMS, CATEGORIES))
    price, hour = chance.random(), chance.random()
    likes = 0.2 + 0.3 * (user % 2) + 0.3 * (item % 3 == 0) + 0.1 * price
    label = int(chance.random() < likes)
    return "{},{:.4f},{:.4f},{},{},{}".format(label, price, hour, user, item, category)


def batch(worker, number):
    """The rows of a worker's `number`-th local batch, counted from 0; after the last, the first."""
    start = BATCH * (number % BATCHES)
    return rows(worker)[start : start + BATCH]


def write(path, lines):
    """Writes a file that a job can read."""
    path.write_text("\n".join([HEADER] + lines) + "\n")
