"""Do the intervals of `semisync parity` hold what they promise? Simulations whose truth is known.

1. Coverage: how often the 90 % interval holds the true difference, and how often models a margin
   apart are found EQUIVALENT (one in twenty at most is promised), over rows, prevalence, ties and
   users. Beside it the interval of before: normal, and clustered with G / (G - 1) of all clusters.
2. Rare faults: how often a fault that moves the AUC by the margin passes, over the number of
   positives and how far it takes a row.

    python -m benchmarks.parity_coverage [--samples 4000] [--seed 0]

Every sample goes through parity's own ranking, variance, interval and verdict. Scores are normal
within a class, so that the true AUCs follow from the normal distribution, of rounded scores level
by level. Samples that have no standard error (fewer than two rows, or users, of a class) are drawn
again. A share from N samples stands with its Monte Carlo standard error, sqrt(s (1 - s) / N).
"""

import argparse
import itertools
import math
import platform
import sys
from statistics import NormalDist
from typing import Dict, Iterator, List, NamedTuple, Optional

import numpy as np

from parity.comparison import sample_of
from parity.inputs.rows import Rows
from parity.stats.delong import holding, pulls, spread
from parity.stats.equivalence import judge, normal_interval
from parity.stats.ranking import rank
from parity.stats.rare_failures import rare_failures, settle
from parity.stats.sampling import sampled
from parity.verified import Verified

RECORD = Verified("checkpoint", "converted", 1, 1, 1)  # stands for any complete one
SIGNAL = 1.0  # distance of the classes' means
NOISE = 0.5  # standard deviation of what is each model's own
WEAKER = 0.85  # the candidate's signal over the baseline's, where the models differ
ROUNDED = 0.5  # ties: scores are multiples of it
ROWS_A_USER = 10
LEVELS = np.arange(-40, 41) * ROUNDED


class Design(NamedTuple):
    """One kind of sample."""

    rows: int
    prevalence: float
    kind: str  # "rows", "ties" or "users"


class Found(NamedTuple):
    """What one sample shows of a true difference."""

    held: bool  # by the interval
    held_before: bool
    passed: bool  # EQUIVALENT at a margin of the true difference, with a record
    passed_before: bool


def designs() -> Iterator[Design]:
    """All of them."""
    for found in itertools.product((500, 2000), (0.5, 0.05, 0.01), ("rows", "ties", "users")):
        yield Design(*found)


def true_auc(signal: float, kind: str) -> float:
    """Of a model whose scores have the variance 1 + NOISE^2 in either class."""
    deviation = math.sqrt(1 + NOISE**2)
    if kind != "ties":
        return NormalDist().cdf(signal / (deviation * math.sqrt(2)))
    edges = np.append(LEVELS - ROUNDED / 2, LEVELS[-1] + ROUNDED / 2)
    of_classes = [
        np.diff([NormalDist(mean, deviation).cdf(edge) for edge in edges]) for mean in (0.0, signal)
    ]
    below = np.cumsum(of_classes[0]) - of_classes[0] / 2
    return float(of_classes[1] @ below)


def draw(design: Design, weaker: float, random: np.random.Generator) -> Rows:
    """Rows with two or more of each class, and in two or more users of each."""
    while True:
        users = np.arange(design.rows) // ROWS_A_USER
        rate: "float | np.ndarray" = design.prevalence
        own = NOISE * random.normal(size=(2, design.rows))
        if design.kind == "users":  # they differ in how often they click and in what models err by
            apart = max(2.0, 1 / rate - 2)  # at prevalence p, rates vary by p or less
            rate = random.beta(apart * rate, apart * (1 - rate), users[-1] + 1)[users]
            own = NOISE * random.normal(size=(2, users[-1] + 1))[:, users]
        positive = random.random(design.rows) < rate
        shared = random.normal(size=design.rows)
        scores = [SIGNAL * s * positive + shared + noise for s, noise in zip((1, weaker), own)]
        if design.kind == "ties":
            scores = [np.round(values / ROUNDED) * ROUNDED for values in scores]
        rows = Rows(positive, *scores, users if design.kind == "users" else None)
        held = [np.bincount(users[of_class]) for of_class in (positive, ~positive)]
        if rows.rarer > 1 and (rows.clusters is None or holding(*held).fewer > 1):
            return rows


def look(rows: Rows, truth: float) -> Found:
    """One sample against the true difference, which is not 0 where a margin is asked for."""
    old, new = (rank(scores, rows.positive, None) for scores in (rows.baseline, rows.candidate))
    before = old.placements()
    moved, delta = new.placements() - before, new.area() - old.area()
    found = spread(moved, delta, rows.positive, None, rows.clusters)
    interval = sampled(rows, moved, delta, found).interval
    normal = normal_interval(delta, _error_before(rows, moved, delta, found.independent))
    margin = abs(truth) or 1e-3
    rare = rare_failures(sample_of(rows, before, found), margin)
    return Found(
        interval.low < truth < interval.high,
        normal.low < truth < normal.high,
        settle(interval, margin, rare, RECORD) == "EQUIVALENT",
        judge(normal, margin) == "EQUIVALENT",
    )


def _error_before(rows: Rows, moved: np.ndarray, delta: float, independent: float) -> float:
    """The standard error that counted every cluster in its correction."""
    if rows.clusters is None:
        return independent
    sums = np.bincount(rows.clusters, pulls(moved, delta, rows.positive, None))
    return math.sqrt(float(sums @ sums) * len(sums) / (len(sums) - 1))


def coverage(design: Design, samples: int, seed: int) -> Dict[str, float]:
    """Shares of the samples, of equal models and of models a margin apart."""
    random = np.random.default_rng([seed, *map(hash_of, design)])
    gap = true_auc(WEAKER * SIGNAL, design.kind) - true_auc(SIGNAL, design.kind)
    equal = [look(draw(design, 1.0, random), 0.0) for _ in range(samples)]
    apart = [look(draw(design, WEAKER, random), gap) for _ in range(samples)]
    return {
        "equal models": float(np.mean([one.held for one in equal])),
        "before": float(np.mean([one.held_before for one in equal])),
        "a margin apart": float(np.mean([one.held for one in apart])),
        "found equivalent": float(np.mean([one.passed for one in apart])),
        "found equivalent before": float(np.mean([one.passed_before for one in apart])),
    }


def rare(
    positives: int, reach: float, samples: int, seed: int, margin: float = 5e-4
) -> List[float]:
    """How often a fault that moves the AUC by the margin passes: now, and by the interval alone.

    As many negatives; the baseline ranks right throughout, and a hit loses `reach` of its rows.
    """
    random = np.random.default_rng([seed, positives, int(1000 * reach)])
    positive = np.arange(2 * positives) % 2 == 0
    baseline = positive + random.random(2 * positives) / 2
    ordered = np.sort(baseline[~positive])
    lost = ordered[int((1 - reach) * (positives - 1))] if reach < 1 else -1.0
    where = np.flatnonzero(positive)
    passed = np.zeros(2)
    for _ in range(samples):
        candidate = baseline.copy()
        candidate[where[random.random(positives) < margin / reach]] = lost
        rows = Rows(positive, baseline, candidate)
        old, new = (rank(scores, positive, None) for scores in (baseline, candidate))
        placements = old.placements()
        moved, delta = new.placements() - placements, new.area() - old.area()
        found = spread(moved, delta, positive)
        interval = sampled(rows, moved, delta, found).interval
        failures = rare_failures(sample_of(rows, placements, found), margin)
        passed += (
            settle(interval, margin, failures, None) == "EQUIVALENT",
            judge(interval, margin) == "EQUIVALENT",
        )
    return (passed / samples).tolist()


def hash_of(value: object) -> int:
    """A number that is the same in every run."""
    return int.from_bytes(str(value).encode()[:8], "little")


def share(value: float, samples: int) -> str:
    """With its Monte Carlo error."""
    return f"{value:.3f} ± {math.sqrt(value * (1 - value) / samples):.3f}"


def main(arguments: Optional[List[str]] = None) -> int:
    """Prints both tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=4000, help="of each row (default 4000)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    print(f"Python {platform.python_version()}, numpy {np.__version__}\n")
    head = list(coverage(Design(500, 0.5, "rows"), 1, 0))
    print(f"| rows | prevalence | | {' | '.join(head)} |\n|---|---|---|{'---|' * len(head)}")
    for design in designs():
        found = coverage(design, args.samples, args.seed)
        told = " | ".join(share(value, args.samples) for value in found.values())
        print(f"| {design.rows:,} | {design.prevalence:g} | {design.kind} | {told} |", flush=True)
    print("\n| positives | a hit moves its row by | passes | by the interval alone |")
    print("|---|---|---|---|")
    for positives, reach in itertools.product((400, 2000, 6200, 12_000, 40_000), (0.5, 1.0)):
        samples = min(args.samples, 1000)
        now, before = rare(positives, reach, samples, args.seed)
        print(
            f"| {positives:,} | {reach:g} | {share(now, samples)} | {share(before, samples)} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
