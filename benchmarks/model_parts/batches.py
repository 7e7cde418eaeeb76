"""The batches that both sides of benchmarks/model.py score; needs NumPy alone."""

import numpy as np

STRINGS, NUMBERS = 26, 13
FIELDS, LENGTH = 39, 20


def batch_of(model, rows):
    """{input: array} of a batch, drawn from a fixed seed; texts as bytes objects."""
    random = np.random.RandomState(0)
    if model == "wide_and_deep":
        found = {}
        for k in range(STRINGS):
            ids = (random.pareto(1.1, rows) * 10).astype(np.int64) % 1000000
            found["C%02d" % k] = np.array([b"%08x" % (k * 7919 + one) for one in ids], object)
        for k in range(NUMBERS):
            found["I%02d" % k] = random.exponential(3.0, rows).astype(np.float32)
        return found
    if model == "deepfm":
        return {
            "ids": random.randint(0, 200000, (rows, FIELDS)),
            "value": random.rand(rows, FIELDS).astype(np.float32),
        }
    return {
        "history": random.randint(0, 50000, (rows, LENGTH)),
        "length": random.randint(1, LENGTH + 1, rows).astype(np.int32),
        "target": random.randint(0, 50000, rows),
    }
