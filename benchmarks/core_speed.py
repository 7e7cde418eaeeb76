"""How fast one core of this machine is, so that figures of two machines can be compared.

    python -m benchmarks.core_speed

Argsorts four million float64 of a fixed seed by merging, which is neither vectorised nor threaded
whatever the BLAS; milliseconds, the fastest of five.
"""

import time

import numpy as np

ROWS = 4_000_000
REPEATS = 5


def core_milliseconds():
    """Milliseconds of the fixed workload."""
    rows = np.random.RandomState(0).rand(ROWS)
    return min(_once(rows) for _ in range(REPEATS))


def _once(rows):
    began = time.perf_counter()
    np.argsort(rows, kind="stable")
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    print(f"one core sorts {ROWS:,} float64 in {core_milliseconds():.0f} ms")
