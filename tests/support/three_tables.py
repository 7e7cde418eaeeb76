"""The checkpoints adagrad_ref, adam_ref and sgd of tests/migrate/write_checkpoints.py."""

import numpy as np

import migrate
from tests.support.conversions import make_plan

TABLES = {"user": "user", "item": "item", "plain_city": "plain/city"}
ROWS = {"user": 31, "item": 20, "plain_city": 10}


def convert(prefix, out, **options):
    """Converts; returns the directory, a string."""
    migrate.convert(make_plan(prefix), out, **options)
    return str(out)


def batches():
    """The ids with which TensorFlow trained on after saving: see write_checkpoints.batches."""
    random = np.random.RandomState(2)
    return {table: random.randint(0, rows, (3, 8, 3)) for table, rows in ROWS.items()}
