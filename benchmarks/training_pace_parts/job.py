"""What both sides of benchmarks.training_pace train on, and how they answer."""

import sys
import time

import numpy as np

FIELDS, NUMBERS, TABLE_ROWS, BATCHES = 26, 13, 10_000, 8


def batches(rows):
    """{feature: array}, several."""
    state = np.random.RandomState(0)
    found = []
    for _ in range(BATCHES):
        batch = {"c%d" % k: state.randint(0, TABLE_ROWS, rows) for k in range(FIELDS)}
        batch["numbers"] = state.randn(rows, NUMBERS).astype(np.float32)
        batch["click"] = state.randint(0, 2, rows).astype(np.float32)
        found.append(batch)
    return found


def answer(made, take):
    """Measures steps as often as it is asked to, until the input ends.

    Args:
        made: what a step takes, of a batch of `batches`.
        take: a step.
    """
    print("ready", flush=True)
    for line in sys.stdin:
        rows, seconds = int(line.split()[0]), float(line.split()[1])
        ready = [made(batch) for batch in batches(rows)]
        for batch in ready[:3]:
            take(batch)
        steps, wall, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < seconds:
            take(ready[steps % BATCHES])
            steps += 1
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(steps * rows / wall, steps * rows / cpu, flush=True)
