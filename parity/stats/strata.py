"""The comparison within parts of the rows: slices such as a country, or days.

Each part is compared on its own, with its own interval. Read them in one of two ways, chosen
beforehand:

    all must pass   every slice EQUIVALENT; needs no correction, each part needs rows enough
    hunting         which slices differ at all? (parity.stats.parts)

Days are scored before they are trained on (progressive validation). Beside the pooled AUC, in which
rows of different days are compared too, stand the mean of the daily differences, each day alike,
and tests for drift and for a break (parity.stats.trend).

The verdict of a part is that of its interval, with the allowance for the few rows that may carry
it. That rare faults may hide (the floor of parity.stats.rare_failures) is asked of all rows
together, not of each part: a part would need as many rows as the whole.
"""

import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.inputs.checks import Column, check_margin, check_names, check_same_order, distinct
from parity.inputs.days import to_days
from parity.inputs.rows import Rows, checked_rows
from parity.stats.clusters import ClusterSums, check_holding, holding
from parity.stats.delong import Spread, class_observations, evidence_of, pulls, spread
from parity.stats.equivalence import Evidence, Verdict, decide
from parity.stats.intervals import Interval, resolution
from parity.stats.parts import Part, with_q
from parity.stats.roc import rank
from parity.stats.trend import Change, change_of, in_order, series_of, slope_of
from semisync.common.errors import BadInput


class Days(NamedTuple):
    """The daily differences, their mean, and whether they drift.

    Attributes:
        days: a `Part` per day, in their order.
        mean_delta: of the daily differences, each day alike.
        standard_error: of `mean_delta`.
        interval: of `mean_delta`, 90 %.
        verdict: on `mean_delta`.
        slope: AUC per day; None with fewer than three days.
        slope_error: standard error of `slope`.
        drift_p: p-value of no slope, Student's t.
        change: the surest break; None with fewer than three days.

    Examples:
        >>> found = parity.compare_days(labels, baseline, candidate, days, margin=0.02)
        >>> [day.name for day in found.days]
        ['2024-01-01', '2024-01-02', '2024-01-03', '2024-01-04']
        >>> found.verdict
        <Verdict.EQUIVALENT: 'EQUIVALENT'>
    """

    days: Tuple[Part, ...]
    mean_delta: float
    standard_error: float
    interval: Interval
    verdict: Verdict
    slope: Optional[float]
    slope_error: Optional[float]
    drift_p: Optional[float]
    change: Optional[Change] = None


def compare_slices(
    labels: Any,
    baseline: Any,
    candidate: Any,
    slices: Any,
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
) -> Tuple[Part, ...]:
    """Compares the models within each slice.

    Args:
        slices: (n,) the name of each row's slice, numbers or strings.
        labels, baseline, candidate, margin, clusters, weights: as for `parity.compare`.

    Returns:
        A Part for each slice, by name.

    Raises:
        BadInput, UsageError: as `parity.compare`.

    Examples:
        >>> parts = parity.compare_slices(labels, baseline, candidate, countries, margin=0.05)
        >>> [part.verdict.value for part in parts]
        ['EQUIVALENT', 'EQUIVALENT']
    """
    check_margin(margin)
    check_same_order(labels, {"slices": slices})
    rows = checked_rows(labels, baseline, candidate, clusters, weights)
    column = Column("slices")
    return with_q([part for part, _ in _parts(rows, check_names(slices, column), column, margin)])


def compare_days(
    labels: Any,
    baseline: Any,
    candidate: Any,
    days: Any,
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
) -> Days:
    """Compares the models day by day.

    Args:
        days: (n,) each row's day, or a moment of it; they sort by value, 9 before 10 in text too,
            so write dates as 2024-01-31.
        labels, baseline, candidate, margin, clusters, weights: as for `parity.compare`.

    Returns:
        A `Days`.

    Raises:
        BadInput, UsageError: as `parity.compare`.
        BadInput: no day has two rows of each class, or a date has its year last.

    Examples:
        >>> found = parity.compare_days(labels, baseline, candidate, days)
        >>> len(found.days), abs(found.mean_delta) < 0.01
        (4, True)
    """
    check_margin(margin)
    check_same_order(labels, {"days": days})
    rows = checked_rows(labels, baseline, candidate, clusters, weights)
    column = Column("days")
    parts = _parts(rows, to_days(check_names(days, column)), column, margin)
    usable = [(part, pulled) for part, pulled in parts if pulled is not None]
    error, observations = _error_of_mean(usable, rows) if usable else (0.0, 0.0)
    return days_of([part for part, _ in parts], error, observations, margin)


def days_of(
    days: Sequence[Part], error: float, observations: float, margin: float, bound: float = 0.0
) -> Days:
    """The days in their order, the mean of their differences, and their trend.

    Args:
        days: in any order.
        error, observations: of the mean.
        bound: certified, of the mean, where scores were counted in histograms.

    Raises:
        BadInput: no day has a difference, or a date has its year last.
    """
    days = in_order(days)
    deltas = [day.delta for day in days if day.delta is not None]
    if not deltas:
        raise BadInput("no day has two rows of each class, which a standard error needs")
    mean = Evidence(
        delta=float(np.mean(deltas)),
        standard_error=error,
        freedom=observations - 1,
        observations=observations,
        narrowest=resolution(observations),
        bound=bound,
    )
    decision = decide(mean, margin)
    slope, slope_error, drift_p = drift(days)
    return Days(
        days=tuple(days),
        mean_delta=mean.delta,
        standard_error=error,
        interval=decision.interval,
        verdict=decision.verdict,
        slope=slope,
        slope_error=slope_error,
        drift_p=drift_p,
        change=change_of(series_of(days)),
    )


def drift(days: Sequence[Part]) -> Tuple[Optional[float], Optional[float], Optional[float]]:
    """Slope per day, its standard error, and the p-value of no slope; None below three days."""
    return slope_of(series_of(days)) or (None, None, None)


def error_of_alike(errors: Sequence[float], fewest: float) -> Tuple[float, float]:
    """Error and observations of the mean over parts that share no row.

    Args:
        errors: standard errors of the parts.
        fewest: the least observations of one of them.
    """
    return math.sqrt(sum(error * error for error in errors)) / len(errors), fewest * len(errors)


class _Pulled(NamedTuple):
    """A part that has a difference: its rows' numbers and psi (stats.delong), and its spread."""

    chosen: np.ndarray  # int (n,)
    psi: np.ndarray  # float64 (n,)
    spread: Spread


def _parts(
    rows: Rows, names: np.ndarray, column: Column, margin: float
) -> List[Tuple[Part, Optional[_Pulled]]]:
    """Each part with its rows' pulls on its delta; None where it has no delta."""
    values, code = distinct(rows.aligned(names, column), column)
    order = np.argsort(code, kind="stable")
    edges = np.searchsorted(code[order], np.arange(len(values) + 1))
    parts = []
    for i, name in enumerate(values.tolist()):
        chosen = order[edges[i] : edges[i + 1]]
        parts.append(_part(str(name), chosen, rows.take(chosen), margin))
    return parts


def _part(
    name: str, chosen: np.ndarray, rows: Rows, margin: float
) -> Tuple[Part, Optional[_Pulled]]:
    part = Part(name, len(chosen), rows.positives)
    if rows.rarer < 2:
        return part, None
    old, new = (rank(s, rows.positive, rows.weights) for s in (rows.baseline, rows.candidate))
    aucs = old.area(), new.area()
    delta = aucs[1] - aucs[0]
    moved = new.placements() - old.placements()
    moves = _spread(moved, delta, rows)
    psi = pulls(moved, delta, rows.positive, rows.weights)
    evidence = evidence_of(rows, moved, delta, moves)
    return part.compared(aucs, evidence, margin), _Pulled(chosen, psi, moves)


def _spread(moved: np.ndarray, delta: float, rows: Rows) -> Spread:
    """The spread by clusters, if two or more hold each class; else as of a single observation."""
    columns = (moved, delta, rows.positive, rows.weights)
    if rows.clusters is None:
        return spread(*columns)
    codes = np.unique(rows.clusters, return_inverse=True)[1]  # sums are as long as the last code
    if holding(rows.positive, codes).fewer < 2:
        return spread(*columns).lone()
    return spread(*columns, codes)


def _error_of_mean(usable: Sequence[Tuple[Part, _Pulled]], rows: Rows) -> Tuple[float, float]:
    """Error and observations of the mean over days; clusters are summed over their days."""
    if rows.clusters is None:  # days share no row, so their errors are independent
        fewest = min(pulled.spread.observations for _, pulled in usable)
        return error_of_alike([part.standard_error or 0.0 for part, _ in usable], fewest)
    chosen = np.concatenate([pulled.chosen for _, pulled in usable])
    psi = np.concatenate([pulled.psi for _, pulled in usable])
    taken = rows.take(chosen)
    assert taken.clusters is not None  # as `rows` has them
    codes = np.unique(taken.clusters, return_inverse=True)[1]
    sums = ClusterSums.of(psi, taken.positive, codes)
    check_holding(sums.held)
    observations = min(class_observations(taken.positive, taken.weights, codes))
    return sums.standard_error() / len(usable), observations
