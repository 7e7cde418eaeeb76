"""Rows that are not what they should be: of labels that do not belong to them, and of copies.

1. Labels are shuffled, or a score stands for half of the rows: two such models agree in AUC, and
   none may be found EQUIVALENT. Beside it, how often the interval alone finds them so.
2. Rows stand two or three times: the interval holds the truth too rarely, and a margin's difference
   passes too often. A warning is to say so.
"""

from statistics import NormalDist
from typing import Tuple

import numpy as np

import parity
from benchmarks.parity_coverage_parts.shares import share
from benchmarks.tables import head, row
from parity.stats.equivalence import judge
from tests.parity.records import PASSED

ROWS = 2000
NOISE = 0.2  # standard deviation of each model's own noise
WEAKER = 0.93  # the candidate's signal over the baseline's, where copies are judged
USELESS = ("sound", "shuffled labels", "one score for half of the rows")
COPIES = ("once", "twice", "three times", "half of them twice")


def _models(random: np.random.Generator, weaker: float = 1.0) -> Tuple[np.ndarray, ...]:
    """Labels, and the scores of two models."""
    labels = random.random(ROWS) < 0.3
    shared = random.normal(size=ROWS)
    old, new = (
        strength * labels + shared + NOISE * random.normal(size=ROWS) for strength in (1, weaker)
    )
    return labels, old, new


def useless(kind: str, samples: int, seed: int) -> np.ndarray:
    """float64 (2,): shares found EQUIVALENT at a wide margin, now and by the interval alone."""
    random = np.random.default_rng([seed, len(kind)])
    passed = np.zeros(2)
    for _ in range(samples):
        labels, old, new = _models(random)
        if kind == "shuffled labels":
            labels = random.permutation(labels)
        if kind == "one score for half of the rows":
            filled = random.random(ROWS) < 0.5
            old, new = (np.where(filled, 0.0, scores) for scores in (old, new))
        found = parity.compare(labels, old, new, 0.03, verified=PASSED)
        inside = judge(found.interval, found.margin) == "EQUIVALENT"
        passed += found.verdict == "EQUIVALENT", inside
    return passed / samples


def copied(times: str, samples: int, seed: int) -> np.ndarray:
    """float64 (3,): how often the interval of models apart by the margin holds the truth, how often
    they are found EQUIVALENT, and how often a warning tells of copies."""
    random = np.random.default_rng([seed, len(times)])
    truth = _true_gap()
    found = np.zeros(3)
    rows = {
        "once": np.arange(ROWS),
        "twice": np.arange(2 * ROWS) % ROWS,
        "three times": np.arange(3 * ROWS) % ROWS,
        "half of them twice": np.arange(3 * ROWS // 2) % ROWS,
    }[times]
    for _ in range(samples):
        columns = (column[rows] for column in _models(random, WEAKER))
        one = parity.compare(*columns, margin=abs(truth), verified=PASSED)
        found += (
            one.interval.low < truth < one.interval.high,
            one.verdict == "EQUIVALENT",
            any("equal an earlier row" in warning for warning in one.warnings),
        )
    return found / samples


def _true_gap() -> float:
    deviation = (2 * (1 + NOISE**2)) ** 0.5
    return NormalDist().cdf(WEAKER / deviation) - NormalDist().cdf(1 / deviation)


def print_tables(samples: int, seed: int) -> None:
    """Both, in Markdown."""
    print("\n" + head("models | found equivalent | by the interval alone"))
    for kind in USELESS:
        cells = (share(value, samples) for value in useless(kind, samples, seed))
        print(row(kind, *cells), flush=True)
    print("\n" + head("each row stands | interval holds the truth | found equivalent | warned of"))
    for times in COPIES:
        cells = (share(value, samples) for value in copied(times, samples, seed))
        print(row(times, *cells), flush=True)
