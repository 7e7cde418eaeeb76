"""Do the intervals of `semisync parity` keep their promise? Simulations whose truth is known.

1. Coverage: how often the 90 % interval contains the true difference, and how often models a margin
   apart are found EQUIVALENT (at most one in twenty is promised), by rows, prevalence, ties and
   users. Beside it, the earlier interval: normal, and clustered with G / (G - 1) of all clusters.
2. Rare faults: how often a fault that moves the AUC by the margin passes, by the number of
   positives and by how far it moves a row.

3. With --verdicts, in their place: requirements beside AUC, groups with heavy tails, the rows that
   are advised, useless models, copies of rows, several runs, users of very unequal size
   (benchmarks/parity_coverage_parts).

    python -m benchmarks.parity_coverage [--samples 4000] [--seed 0] [--verdicts]

Every sample goes through parity's own ranking, variance, interval and verdict. Scores are normal
within a class, so that the true AUCs follow from the normal distribution, for rounded scores level
by level. Samples without a standard error (fewer than two rows, or users, of a class) are redrawn.
A share s from N samples is given with its Monte Carlo standard error, sqrt(s (1 - s) / N).
"""

import argparse
import itertools
import math
import platform
import sys
from statistics import NormalDist
from typing import Dict, Iterator, List, NamedTuple, Optional

import numpy as np

from benchmarks.parity_coverage_parts import advice, heavy, mistakes, requirements, runs
from benchmarks.parity_coverage_parts.shares import share
from benchmarks.tables import head
from parity.comparison import sample_of
from parity.inputs.rows import Rows
from parity.stats.clusters import holding
from parity.stats.delong import evidence_of, pulls, spread
from parity.stats.equivalence import decide, judge
from parity.stats.intervals import normal_interval
from parity.stats.rare_failures import rare_failures
from parity.stats.roc import rank

SIGNAL = 1.0  # distance of the classes' means
NOISE = 0.5  # standard deviation of each model's own noise
WEAKER = 0.85  # the candidate's signal over the baseline's, where the models differ
ROUNDED = 0.5  # ties: scores are multiples of it
ROWS_A_USER = 10
LEVELS = np.arange(-40, 41) * ROUNDED


class Design(NamedTuple):
    """One kind of sample."""

    rows: int
    prevalence: float
    kind: str  # "rows", "ties" or "users"


class Outcome(NamedTuple):
    """How one sample judges a true difference."""

    held: bool  # by the interval
    held_before: bool
    passed: bool  # EQUIVALENT at a margin of the true difference, with a record
    passed_before: bool


def designs() -> Iterator[Design]:
    """All of them."""
    for design in itertools.product((500, 2000), (0.5, 0.05, 0.01), ("rows", "ties", "users")):
        yield Design(*design)


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
        if rows.rarer > 1 and (rows.clusters is None or holding(positive, users).fewer > 1):
            return rows


def judged(rows: Rows, truth: float) -> Outcome:
    """Judges one sample by the true difference, which is also the margin unless it is 0."""
    old, new = (rank(scores, rows.positive, None) for scores in (rows.baseline, rows.candidate))
    before = old.placements()
    moved, delta = new.placements() - before, new.area() - old.area()
    moves = spread(moved, delta, rows.positive, None, rows.clusters)
    margin = abs(truth) or 1e-3
    decision = decide(evidence_of(rows, moved, delta, moves), margin)
    interval = decision.interval
    normal = normal_interval(delta, _error_before(rows, moved, delta, moves.independent))
    return Outcome(
        interval.low < truth < interval.high,
        normal.low < truth < normal.high,
        decision.verdict == "EQUIVALENT",
        judge(normal, margin) == "EQUIVALENT",
    )


def _error_before(rows: Rows, moved: np.ndarray, delta: float, independent: float) -> float:
    """The earlier standard error, which counted every cluster in its correction."""
    if rows.clusters is None:
        return independent
    sums = np.bincount(rows.clusters, pulls(moved, delta, rows.positive, None))
    return math.sqrt(float(sums @ sums) * len(sums) / (len(sums) - 1))


def coverage(design: Design, samples: int, seed: int) -> Dict[str, float]:
    """Shares of the samples, of equal models and of models a margin apart."""
    random = np.random.default_rng([seed, *map(hash_of, design)])
    gap = true_auc(WEAKER * SIGNAL, design.kind) - true_auc(SIGNAL, design.kind)
    equal = [judged(draw(design, 1.0, random), 0.0) for _ in range(samples)]
    apart = [judged(draw(design, WEAKER, random), gap) for _ in range(samples)]
    return {
        "equal models": float(np.mean([outcome.held for outcome in equal])),
        "before": float(np.mean([outcome.held_before for outcome in equal])),
        "a margin apart": float(np.mean([outcome.held for outcome in apart])),
        "found equivalent": float(np.mean([outcome.passed for outcome in apart])),
        "found equivalent before": float(np.mean([outcome.passed_before for outcome in apart])),
    }


def rare(
    positives: int, reach: float, samples: int, seed: int, margin: float = 5e-4
) -> List[float]:
    """How often a fault that moves the AUC by the margin passes: now, and by the interval alone.

    There are as many negatives; the baseline ranks all rows correctly, and a hit moves a positive
    below a share `reach` of the negatives.
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
        moves = spread(moved, delta, positive)
        floor = rare_failures(sample_of(rows, placements, moves), margin).floor
        evidence = evidence_of(rows, moved, delta, moves)._replace(floor=floor)
        decision = decide(evidence, margin)
        passed += (
            decision.verdict == "EQUIVALENT",
            judge(decision.interval, margin) == "EQUIVALENT",
        )
    return (passed / samples).tolist()


def hash_of(value: object) -> int:
    """A number that is the same in every run."""
    return int.from_bytes(str(value).encode()[:8], "little")


def main(arguments: Optional[List[str]] = None) -> int:
    """Prints the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=4000, help="of each row (default 4000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verdicts", action="store_true", help="what else a verdict promises")
    args = parser.parse_args(arguments)
    print(f"Python {platform.python_version()}, numpy {np.__version__}\n")
    if args.verdicts:
        requirements.print_tables(args.samples, args.seed)
        for part in (advice, mistakes, runs, heavy):
            part.print_tables(min(args.samples, 400), args.seed)
        return 0
    print(head(["rows", "prevalence", "", *coverage(Design(500, 0.5, "rows"), 1, 0)]))
    for design in designs():
        shares = coverage(design, args.samples, args.seed)
        cells = " | ".join(share(value, args.samples) for value in shares.values())
        print(f"| {design.rows:,} | {design.prevalence:g} | {design.kind} | {cells} |", flush=True)
    print("\n" + head("positives | a hit moves its row by | passes | by the interval alone"))
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
