"""Requirements beyond AUC: each figure, slice or day that must be equivalent as well.

AUC sees the order of the rows alone, and all rows together: a candidate of half the probability, or
one that fails in a single country, can have the baseline's AUC. A gate fails where the difference
is surely beyond its margin, and cannot be decided where its interval lies across the edge. PR-AUC
and ECE have no interval here: their point values are compared, and the gate says so.
"""

import dataclasses
import math
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from parity.stats.calibration import MeanDifference
from parity.stats.equivalence import Interval, Verdict, judge
from parity.stats.parts import Part
from semisync.common.errors import BadInput, UsageError

if TYPE_CHECKING:
    from parity.result import Comparison

METRICS = {  # what a gate may be on, and its name in words
    "logloss": "log loss",
    "ne": "NE",
    "pcoc": "PCOC",
    "ece": "ECE",
    "gauc": "GAUC",
    "pr_auc": "PR-AUC",
}


class Gate(NamedTuple):
    """One requirement and what became of it."""

    name: str  # a key of METRICS, "days", or "slices " and the column
    margin: float
    verdict: Verdict
    delta: Optional[float] = None  # of a metric, candidate - baseline
    interval: Optional[Interval] = None  # None where point values are compared
    failed: Tuple[str, ...] = ()  # the slices or days that are not equivalent
    undecided: Tuple[str, ...] = ()  # those that are inconclusive, or have too few rows


def parse_requirements(items: Iterable[str]) -> Dict[str, float]:
    """From METRIC=MARGIN to margins by metric.

    Raises: UsageError for another metric, a margin without meaning, and a metric that comes twice.
    """
    margins: Dict[str, float] = {}
    for item in items:
        metric, _, text = item.partition("=")
        if metric in margins:
            raise UsageError(f"--require names {metric} twice; one margin each is expected")
        try:
            margins[metric] = float(text)
        except ValueError:
            margins[metric] = math.nan
        _check_metric(metric, margins[metric])
    return margins


def _check_metric(metric: str, margin: float) -> None:
    if metric not in METRICS:
        raise UsageError(
            f"{metric!r} is no metric that can be required; there are {', '.join(METRICS)}, and "
            "the margin for AUC"
        )
    if not 0 < margin < math.inf:
        raise UsageError(f"{metric} is required without a margin above 0, such as {metric}=0.01")


def require(
    found: "Comparison", margins: Mapping[str, float], slices: bool = False, days: bool = False
) -> "Comparison":
    """The comparison with gates, which decide beside the verdict on AUC.

    Args:
        found: from `parity.compare`, with its slices and days if they are required.
        margins: the largest difference that does not matter, by metric; see METRICS.
        slices, days: whether each must be equivalent, and the mean of the days with them.

    Raises: BadInput where the scores do not have the metric; UsageError for another metric, and
        for slices or days that there are none of.
    """
    gates = [_metric_gate(found, metric, margin) for metric, margin in margins.items()]
    if slices:
        gates += [_part_gate(f"slices {name}", parts, found) for name, parts in found.slices]
    if days and found.days is not None:
        gates.append(_part_gate("days", found.days.days, found, found.days.verdict))
    for asked, there, what in ((slices, found.slices, "slices"), (days, found.days, "days")):
        if asked and not there:
            raise UsageError(f"{what} are required, but this comparison has none")
    return dataclasses.replace(found, gates=(*found.gates, *gates))


def _part_gate(name: str, parts: Sequence[Part], found: "Comparison", *also: Verdict) -> Gate:
    """Every part must be equivalent, and the verdicts `also`."""
    failed = tuple(part.name for part in parts if part.verdict is Verdict.NOT_EQUIVALENT)
    undecided = tuple(part.name for part in parts if part.verdict in (None, Verdict.INCONCLUSIVE))
    verdicts = [part.verdict or Verdict.INCONCLUSIVE for part in parts]
    decision = decided([*verdicts, *also])
    return Gate(name, found.margin, decision, failed=failed, undecided=undecided)


def decided(verdicts: Iterable[Verdict]) -> Verdict:
    """All of them at once: one that fails decides, then one that is open."""
    given = set(verdicts)
    for verdict in (Verdict.NOT_EQUIVALENT, Verdict.INCONCLUSIVE):
        if verdict in given:
            return verdict
    return Verdict.EQUIVALENT


def _metric_gate(found: "Comparison", metric: str, margin: float) -> Gate:
    _check_metric(metric, margin)
    values = [_value(side, metric) for side in (found.baseline, found.candidate)]
    if None in values:
        why = " ".join(found.unavailable)
        if metric == "gauc":
            why = "It needs groups (--group), one of them with rows of both classes."
        raise BadInput(f"{METRICS[metric]} is required, but there is none. {why}")
    paired = _paired(found, metric)
    if paired is not None:
        verdict = judge(paired.interval, margin)
        return Gate(metric, margin, verdict, paired.delta, paired.interval)
    delta = values[1] - values[0]
    near = abs(delta) < margin
    return Gate(metric, margin, Verdict.EQUIVALENT if near else Verdict.NOT_EQUIVALENT, delta)


def _value(side: Any, metric: str) -> Any:
    """A figure of one `parity.result.Side`."""
    if metric in ("gauc", "pr_auc"):
        return getattr(side, metric)
    return None if side.calibration is None else getattr(side.calibration, metric)


def _paired(found: "Comparison", metric: str) -> Optional[MeanDifference]:
    """The paired difference, where the comparison has one with an interval."""
    loss, fit = found.logloss_difference, found.baseline.calibration
    if metric == "ne" and loss is not None and fit is not None:
        scale = fit.ne / fit.logloss  # NE is log loss over the entropy of the labels
        low, high = loss.interval
        return MeanDifference(
            loss.delta * scale, loss.standard_error * scale, Interval(low * scale, high * scale)
        )
    by_metric = {
        "logloss": loss,
        "pcoc": found.pcoc_difference,
        "gauc": found.gauc_difference,
    }
    return by_metric.get(metric)
