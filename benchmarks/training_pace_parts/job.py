"""The models and rows that both sides of benchmarks.training_pace train on, and their answers.

wide        canned Wide & Deep (DNNLinearCombined) over 26 columns of text
deepfm      26 ids, each with a table of 16 and one of 1, 13 numbers, layers of 128 and 64
din         attention of a target item over 50 items of history, layers of 80 and 40
mmoe        26 ids, four experts with BatchNorm, two tasks
"""

import time

import numpy as np

from benchmarks.harness import side

FIELDS, NUMBERS, TABLE_ROWS, ITEMS, HISTORY, BATCHES = 26, 13, 10_000, 100_000, 50, 8
COLUMNS = ["c%d" % k for k in range(FIELDS)]
MODELS = {  # {feature: (dtype, shape of a row)}
    "wide": dict.fromkeys(COLUMNS, ("string", ())),
    "deepfm": {**dict.fromkeys(COLUMNS, ("int64", ())), "numbers": ("float32", (NUMBERS,))},
    "din": {"item": ("int64", ()), "history": ("int64", (HISTORY,))},
    "mmoe": dict.fromkeys(COLUMNS, ("int64", ())),
}
for features in MODELS.values():
    features["click"] = ("float32", ())
MODELS["mmoe"]["buy"] = ("float32", ())


def batch(model, rows, seed):
    """{feature: array} of random rows."""
    state = np.random.RandomState(seed)
    found = {}
    for name, (dtype, shape) in MODELS[model].items():
        size, most = (rows, *shape), ITEMS if model == "din" else TABLE_ROWS
        if name in ("click", "buy"):
            found[name] = state.randint(0, 2, size).astype(np.float32)
        elif dtype == "float32":
            found[name] = state.randn(*size).astype(np.float32)
        else:
            found[name] = state.randint(0, most, size)
        if dtype == "string":
            found[name] = np.array([b"v%d" % one for one in found[name]], object)
    return found


def answer(model, ready):
    """Answers with rows per second of wall time and of processor time, for so many rows a step.

    Args:
        ready: the function that takes a step, of a list of batches; it is called with a number.
    """
    made = {}  # by the number of rows

    def paces(rows, seconds):
        if rows not in made:
            made[rows] = ready([batch(model, rows, seed) for seed in range(BATCHES)])
        take = made[rows]
        for number in range(3):
            take(number)
        steps, wall, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < seconds:
            take(steps % BATCHES)
            steps += 1
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return steps * rows / wall, steps * rows / cpu

    side.answer("ready", paces)
