"""A table of simulations: samples of each of its cases are drawn and judged."""

import math
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from benchmarks.tables import head, row
from parity.comparison import compare_rows, decision_fields, sample_of
from parity.inputs.rows import Rows
from parity.result import Comparison
from parity.stats.delong import evidence_of, spread
from parity.stats.rare_failures import rare_failures
from parity.stats.roc import rank
from parity.verified import read_record
from tests.parity.records import PASSED

RECORD = read_record(PASSED)


class Table(NamedTuple):
    """A table to show.

    Attributes:
        columns: the columns of a case, then of the findings.
        cases: names, tuples of cells, or objects with a `name`.
        found: (case, samples, seed) -> cells of the findings; a float is a share of the samples.
        most: limit to the number of samples.
    """

    columns: str
    cases: Sequence[Any]
    found: Callable[[Any, int, int], Iterable[Any]]
    most: int = 400


def show(table: Table, samples: int, seed: int) -> None:
    """Prints it in Markdown."""
    samples = min(samples, table.most)
    print("\n" + head(table.columns))
    for case in table.cases:
        found = table.found(case, samples, seed)
        cells = (share(one, samples) if isinstance(one, float) else one for one in found)
        print(row(*_named(case), *cells), flush=True)


def _named(case: Any) -> Iterable[Any]:
    if not isinstance(case, tuple) or hasattr(case, "name"):
        return [getattr(case, "name", case)]
    return [f"{one:,}" if isinstance(one, int) else str(one) for one in case]


def share(value: float, samples: int) -> str:
    """A share of the samples as text, with its Monte Carlo error."""
    return f"{value:.3f} ± {math.sqrt(value * (1 - value) / samples):.3f}"


def compared(rows: Rows, margin: float) -> Comparison:
    """The comparison, with a record that excludes rare faults."""
    return compare_rows(rows, margin, RECORD)


def judged(rows: Rows, margin: float, verified: bool = True) -> Any:
    """The part of the comparison on which its verdict rests, in a twentieth of the time."""
    old, new = (rank(scores, rows.positive, None) for scores in rows.scores)
    before = old.placements()
    moved, delta = new.placements() - before, new.area() - old.area()
    moves = spread(moved, delta, rows.positive, None, rows.clusters)
    evidence = evidence_of(rows, moved, delta, moves)
    rare = rare_failures(sample_of(rows, before, moves), margin)
    decision = decision_fields(evidence, rare, margin, RECORD if verified else None)
    return SimpleNamespace(**decision, evidence=evidence)


def true_auc(signal: float, noise: float, seeds: float = 0.0) -> float:
    """The AUC of a model whose scores have variance 1 + noise^2 in each class, `signal` apart.

    Args:
        seeds: the standard deviation of the signal between runs, of which this is the mean.
    """
    return NormalDist().cdf(signal / math.sqrt(2 * (1 + noise**2) + seeds**2))
