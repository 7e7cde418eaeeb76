"""The comparison within parts of the rows: slices such as a country, or days.

Each part is compared on its own, with its own interval. Read them in one of two ways, chosen
beforehand:

    all must pass   every slice EQUIVALENT; needs no correction, each part needs rows enough
    hunting         which slices differ at all? Their p-values (of no difference) are turned into
                    q-values (Benjamini & Hochberg 1995): of the slices with q < 0.1, one in ten is
                    expected to be a false alarm

Days are scored before they are trained on (progressive validation). Beside the pooled AUC, in which
rows of different days are compared too, stand the mean of the daily differences, each day alike,
and a test for drift: the slope of the daily differences, weighted by 1 / SE^2, its error widened
where the days scatter more than their errors say.
"""

import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.checks import Column, check_margin, distinct
from parity.equivalence import (
    Interval,
    Verdict,
    at_least,
    judge,
    normal_interval,
    normal_p,
    resolution,
    unmoved_interval,
    unmoved_p,
)
from parity.ranking import rank
from parity.rows import Rows, checked_rows
from parity.student import two_sided
from parity.unmoved import unmoved
from parity.variance import spread
from semisync.errors import BadInput

FALSE_DISCOVERIES = 0.1  # share expected among the slices that a hunt points out


class Part(NamedTuple):
    """One slice or day; the figures are None where it has fewer than two rows of a class."""

    name: str
    rows: int
    positives: int
    baseline_auc: Optional[float] = None
    candidate_auc: Optional[float] = None
    delta: Optional[float] = None
    standard_error: Optional[float] = None
    interval: Optional[Interval] = None
    verdict: Optional[Verdict] = None
    p: Optional[float] = None  # of no difference
    q: Optional[float] = None  # p, corrected for the number of parts

    @property
    def rarer(self) -> int:
        """Rows of the rarer class."""
        return min(self.positives, self.rows - self.positives)

    @property
    def differs(self) -> bool:
        """Whether a hunt points it out."""
        return self.q is not None and self.q < FALSE_DISCOVERIES


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
    error = _error_of_mean(usable, rows.clusters)
    fewest = min(part.rarer for part, _ in usable) * len(usable)
    interval = at_least(normal_interval(mean, error), mean, resolution(fewest))
    series = tuple(part for part, _ in found)
    return Days(series, mean, error, interval, judge(interval, margin), *drift(series))


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


def drift(series: Sequence[Part]) -> Tuple[Optional[float], Optional[float], Optional[float]]:
    """Slope a day, its standard error, and the p-value of no slope; None for under three days."""
    usable = [i for i, part in enumerate(series) if part.standard_error]
    if len(usable) < 3:
        return None, None, None
    day = np.array(usable, float)
    delta = np.array([series[i].delta for i in usable], float)
    weight = np.array([series[i].standard_error for i in usable], float) ** -2
    day -= np.average(day, weights=weight)
    mean = np.average(delta, weights=weight)
    leverage = float((weight * day * day).sum())
    slope = float((weight * day * delta).sum()) / leverage
    freedom = len(usable) - 2
    scatter = float((weight * (delta - mean - slope * day) ** 2).sum()) / freedom
    error = math.sqrt(max(1.0, scatter) / leverage)
    return slope, error, two_sided(slope / error, freedom)


def _parts(
    rows: Rows, names: Any, argument: str, margin: float
) -> List[Tuple[Part, Optional[Tuple[np.ndarray, np.ndarray]]]]:
    """Each part with its row numbers and their pulls on its delta; None where it has no delta."""
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
) -> Tuple[Part, Optional[Tuple[np.ndarray, np.ndarray]]]:
    count, positives = len(chosen), rows.positives
    if rows.rarer < 2:
        return Part(name, count, positives), None
    old, new = (rank(s, rows.positive, rows.weights) for s in (rows.baseline, rows.candidate))
    aucs = old.area(), new.area()
    delta = aucs[1] - aucs[0]
    moved = new.placements() - old.placements()
    clusters = rows.clusters
    observations = rows.rarer
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
        observations = min(observations, int(clusters.max()) + 1)
        clusters = clusters if observations > 1 else None
    found = spread(moved, delta, rows.positive, rows.weights, clusters)
    still = unmoved(rows, moved, found)
    if still is None:
        error = found.standard_error
        interval = normal_interval(delta, error)
        p = normal_p(delta, error, observations)
    else:
        error = 0.0
        interval = unmoved_interval(delta, observations, still.reach)
        p = unmoved_p(delta, observations, still.reach)
    interval = at_least(interval, delta, resolution(observations))
    part = Part(name, count, positives, *aucs, delta, error, interval, judge(interval, margin), p)

    weight = np.ones(count) if rows.weights is None else rows.weights
    of_positives = float(weight[rows.positive].sum())
    heavy = np.where(rows.positive, of_positives, float(weight.sum()) - of_positives)
    return part, (chosen, weight * (moved - delta) / heavy)


def _error_of_mean(usable: Sequence[Tuple[Part, Any]], clusters: Optional[np.ndarray]) -> float:
    """Of the mean over days; clusters that come on several days are summed over them."""
    if clusters is None:
        errors = np.array([part.standard_error for part, _ in usable], float)
        return math.sqrt(float(errors @ errors)) / len(usable)
    sums = np.zeros(int(clusters.max()) + 1)
    seen = np.zeros(len(sums), bool)
    for _, (chosen, pulls) in usable:
        sums += np.bincount(clusters[chosen], pulls, len(sums))
        seen[clusters[chosen]] = True
    units = int(seen.sum())
    if units < 2:
        raise BadInput("all rows are in one cluster; a standard error needs two clusters or more")
    return math.sqrt(float(sums @ sums) * units / (units - 1)) / len(usable)
