"""Days and slices from counts, as parity.stats.strata finds them from rows."""

import math
from typing import Dict, List, Optional, Tuple

import numpy as np

from parity.histogram.compare import settled
from parity.histogram.counts import Counts, Value
from parity.histogram.estimate import Estimate
from parity.histogram.second_look import Looks, Within
from parity.stats.equivalence import Interval, Verdict, at_least, resolution, student_interval
from parity.stats.parts import Part
from parity.stats.rare_failures import HITS, settle_seen
from parity.stats.strata import Days, days_of_parts, with_q
from semisync.common.errors import BadInput


def estimates_within(counts: Counts) -> Within:
    """An estimate for each value of each dividing column, in the order in which codes count them;
    None for fewer than two rows of a class."""
    return {
        name: {
            value: Estimate(summary) if summary.rarer >= 2 else None
            for value, summary in of_values.items()
        }
        for name, of_values in counts.within.items()
    }


def slices_of(
    counts: Counts, within: Within, margin: float, looks: Optional[Looks] = None
) -> Tuple[Tuple[str, Tuple[Part, ...]], ...]:
    """Compares the models within each slice.

    Args:
        within: `estimates_within(counts)`.
        looks: what a second look at the rows found by group, or None for rows that stand alone.

    Returns: for each column the name and a Part for each value, sorted.
    """
    return tuple(
        (name, with_q(_parts(counts, name, within[name], margin, looks)))
        for name in counts.kind.slices
    )


def days_of(
    counts: Counts, within: Within, margin: float, looks: Optional[Looks] = None
) -> Optional[Days]:
    """Compares the models day by day; None where no column of days was counted.

    The error of the mean is an upper value, and its interval holds the mean of the days' bounds.
    """
    day = counts.kind.day
    if day is None:
        return None
    series = _parts(counts, day, within[day], margin, looks)
    usable = [estimate for estimate in within[day].values() if estimate is not None]
    if not usable:
        raise BadInput("no day has two rows of each class, which a standard error needs")
    mean, bound = (
        float(np.mean(values)) for values in ([e.delta for e in usable], [e.bound for e in usable])
    )
    if looks is None:
        errors = [part.standard_error for part in series if part.standard_error is not None]
        error = math.sqrt(sum(e * e for e in errors)) / len(usable)
        observations = min(min(estimate.observations) for estimate in usable) * len(usable)
    else:
        error, observations = looks.mean_day()
    low, high = student_interval(mean, error, observations - 1)
    interval = at_least(Interval(low - bound, high + bound), mean, resolution(observations))
    return days_of_parts(series, mean, error, interval, settled(interval, bound, margin))


def _parts(
    counts: Counts,
    name: str,
    estimates: Dict[Value, Optional[Estimate]],
    margin: float,
    looks: Optional[Looks],
) -> List[Part]:
    of_values = counts.within[name]
    texts = any(isinstance(value, str) for value in of_values)
    found = []
    for value in sorted(of_values, key=str if texts else None):
        summary, estimate = of_values[value], estimates[value]
        part = Part(str(value), summary.rows, summary.positives)
        by_group = None if looks is None else looks.part(name, value)
        found.append(part if estimate is None else _compared(part, estimate, margin, by_group))
    return found


def _compared(
    part: Part,
    estimate: Estimate,
    margin: float,
    by_group: Optional[Tuple[Optional[float], float, float]],
) -> Part:
    """The part with its figures."""
    error, observations = estimate.errors()[0], min(estimate.observations)
    step = estimate.carried()[1]
    if by_group is not None:
        error = error if by_group[0] is None else by_group[0]
        observations, step = by_group[1:]
    interval = estimate.interval(error, observations)
    verdict = settled(interval, estimate.bound, margin)
    if verdict is Verdict.EQUIVALENT:
        verdict = settle_seen(interval, margin, observations, HITS * step)
    return part._replace(
        baseline_auc=estimate.aucs[0],
        candidate_auc=estimate.aucs[1],
        delta=estimate.delta,
        standard_error=error,
        interval=interval,
        verdict=verdict,
        p=estimate.p(error, observations),
    )
