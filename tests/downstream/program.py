"""A project of somebody else's, which knows semisync by its public names alone."""

import sys

import numpy as np

import parity
import semisync
from semisync.simulate import Async, Cluster, SemiSync, Times, simulate


def pace(workers: int) -> float:
    """Semi-synchronous batches per second, over asynchronous ones."""
    cluster = Cluster(workers=workers, times=Times(demand=0.1, slow_share=0.2, slow_factor=5))
    modes = (Async(), SemiSync(workers, semisync.Threshold(4)))
    plain, ours = (simulate(cluster, mode, batches=200) for mode in modes)
    return ours.batches_per_second / plain.batches_per_second


def weights() -> "list[float]":
    """What batches of staleness 0 to 3 count."""
    policy = semisync.Polynomial(0.5)
    return [float(weight) for weight in policy(np.arange(4, dtype=np.float32))]


def same(rows: int) -> parity.Comparison:
    """Two models that differ by rounding."""
    random = np.random.default_rng(0)
    labels = random.random(rows) < 0.3
    scores = random.normal(size=rows) + labels
    return parity.compare(labels, scores, scores + 1e-9, margin=5e-3)


def main() -> int:
    """Prints what came out; returns the verdict's exit code."""
    found = same(20_000)
    low, high = found.interval
    print("pace", 0.5 < pace(8) < 1.5, "weights", weights()[0], "verdict", found.verdict.name)
    assert low <= found.delta <= high
    return 0 if found.verdict is parity.Verdict.EQUIVALENT else 1


if __name__ == "__main__":
    sys.exit(main())
