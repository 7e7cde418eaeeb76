"""The comparison within parts of the rows: slices such as a country, or days.

Each part is compared on its own, with its own interval. Read them in one of two ways, chosen
beforehand:

    all must pass   every slice EQUIVALENT; needs no correction, each part needs rows enough
    hunting         which slices differ at all? Their p-values (of no difference) are turned into
                    q-values (Benjamini & Hochberg 1995): of the slices with q < 0.1, one in ten is
                    expected to be a false alarm

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

from parity.inputs.checks import Column, check_margin, distinct
from parity.inputs.rows import Rows, checked_rows
from parity.stats.delong import (
    ClusterSums,
    Spread,
    check_holding,
    class_observations,
    holding,
    pulls,
    spread,
)
from parity.stats.equivalence import (
    Interval,
    Verdict,
    at_least,
    judge,
    resolution,
    student_interval,
)
from parity.stats.parts import Part
from parity.stats.ranking import rank
from parity.stats.rare_failures import HITS, settle_seen
from parity.stats.sampling import sampled
from parity.stats.trend import Change, change_of, series_of, slope_of
from semisync.common.errors import BadInput


class Days(NamedTuple):
    """The series, its mean, and whether it drifts."""

    days: Tuple[Part, ...]  # in their order
    mean_delta: float
    standard_error: float
    interval: Interval  # 90 %, of the mean
    verdict: Verdict  # of the mean
    slope: Optional[float]  # AUC a day; None with fewer than three days
    slope_error: Optional[float]
    drift_p: Optional[float]  # of no slope, Student's t
    change: Optional[Change] = None  # the surest one; None with fewer than three days


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

    Returns: a Part for each slice, by name.

    Raises: BadInput and UsageError as `parity.compare`.
    """
    check_margin(margin)
    rows = checked_rows(labels, baseline, candidate, clusters, weights)
    parts = [part for part, _ in _parts(rows, slices, "slices", margin)]
    return with_q(parts)


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
        days: (n,) each row's day; they sort by value, so write dates as 2024-01-31.
        labels, baseline, candidate, margin, clusters, weights: as for `parity.compare`.

    Raises: BadInput and UsageError as `parity.compare`; BadInput where no day has two rows of each
        class.
    """
    check_margin(margin)
    rows = checked_rows(labels, baseline, candidate, clusters, weights)
    found = _parts(rows, days, "days", margin)
    usable = [(part, pulls) for part, pulls in found if pulls is not None]
    if not usable:
        raise BadInput("no day has two rows of each class, which a standard error needs")
    mean = float(np.mean([part.delta for part, _ in usable]))
    error, observations = _error_of_mean(usable, rows)
    interval = student_interval(mean, error, observations - 1)
    interval = at_least(interval, mean, resolution(observations))
    return days_of_parts(
        [part for part, _ in found], mean, error, interval, judge(interval, margin)
    )


def days_of_parts(
    days: Sequence[Part], mean: float, error: float, interval: Interval, verdict: Verdict
) -> Days:
    """The days in their order with the figures of their mean, and what they show of a trend."""
    change = change_of(series_of(days))
    return Days(tuple(days), mean, error, interval, verdict, *drift(days), change)


def drift(days: Sequence[Part]) -> Tuple[Optional[float], Optional[float], Optional[float]]:
    """Slope a day, its standard error, and the p-value of no slope; None for under three days."""
    return slope_of(series_of(days)) or (None, None, None)


def with_q(parts: Sequence[Part]) -> Tuple[Part, ...]:
    """The parts with Benjamini-Hochberg q-values over those that have a p-value."""
    tested = [i for i, part in enumerate(parts) if part.p is not None]
    p = np.array([parts[i].p for i in tested], float)
    order = np.argsort(p)
    q = np.empty(len(p))
    ratios = p[order] * len(p) / np.arange(1, len(p) + 1)
    q[order] = np.minimum.accumulate(ratios[::-1])[::-1]
    corrected = list(parts)
    for i, value in zip(tested, q):
        corrected[i] = parts[i]._replace(q=min(1.0, float(value)))
    return tuple(corrected)


class _Pulls(NamedTuple):
    """Of a part with a difference: its rows' numbers and psi (stats.delong), and its spread."""

    chosen: np.ndarray  # int (n,)
    psi: np.ndarray  # float64 (n,)
    spread: Spread


def _parts(
    rows: Rows, names: Any, argument: str, margin: float
) -> List[Tuple[Part, Optional[_Pulls]]]:
    """Each part with its rows' pulls on its delta; None where it has no delta."""
    column = Column(argument)
    values, code = distinct(rows.aligned(np.asarray(names), column), column)
    order = np.argsort(code, kind="stable")
    edges = np.searchsorted(code[order], np.arange(len(values) + 1))
    found = []
    for i, name in enumerate(values.tolist()):
        chosen = order[edges[i] : edges[i + 1]]
        found.append(_part(str(name), chosen, rows.take(chosen), margin))
    return found


def _part(
    name: str, chosen: np.ndarray, rows: Rows, margin: float
) -> Tuple[Part, Optional[_Pulls]]:
    count, positives = len(chosen), rows.positives
    if rows.rarer < 2:
        return Part(name, count, positives), None
    old, new = (rank(s, rows.positive, rows.weights) for s in (rows.baseline, rows.candidate))
    aucs = old.area(), new.area()
    delta = aucs[1] - aucs[0]
    moved = new.placements() - old.placements()
    found = _spread(moved, delta, rows)
    interval, p, still = sampled(rows, moved, delta, found)
    error = found.standard_error if still is None else 0.0
    verdict = settle_seen(interval, margin, found.observations, HITS * found.step)
    part = Part(name, count, positives, *aucs, delta, error, interval, verdict, p)
    psi = pulls(moved, delta, rows.positive, rows.weights)
    return part, _Pulls(chosen, psi, found)


def _spread(moved: np.ndarray, delta: float, rows: Rows) -> Spread:
    """By clusters, where two or more hold each class; else as of a single observation."""
    columns = (moved, delta, rows.positive, rows.weights)
    if rows.clusters is None:
        return spread(*columns)
    codes = np.unique(rows.clusters, return_inverse=True)[1]
    if holding(*(np.bincount(codes[c]) for c in (rows.positive, ~rows.positive))).fewer < 2:
        return spread(*columns)._replace(observations=1.0, freedom=0.0)
    return spread(*columns, codes)


def _error_of_mean(usable: Sequence[Tuple[Part, _Pulls]], rows: Rows) -> Tuple[float, float]:
    """Of the mean over days, and its observations; clusters that come on several days are summed
    over them."""
    if rows.clusters is None:
        errors = np.array([part.standard_error for part, _ in usable], float)
        fewest = min(one.spread.observations for _, one in usable) * len(usable)
        return math.sqrt(float(errors @ errors)) / len(usable), fewest
    chosen = np.concatenate([one.chosen for _, one in usable])
    psi = np.concatenate([one.psi for _, one in usable])
    taken = rows.take(chosen)
    assert taken.clusters is not None  # as `rows` has them
    codes = np.unique(taken.clusters, return_inverse=True)[1]
    sums = ClusterSums.of(psi, taken.positive, codes)
    check_holding(sums.held)
    observations = min(class_observations(taken.positive, taken.weights, codes))
    return math.sqrt(sums.variance()) / len(usable), observations
