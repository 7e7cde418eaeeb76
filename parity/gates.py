"""Requirements beyond equal AUCs: each figure, slice or day that must be equivalent as well.

AUC sees the order of the rows alone, and all rows together: a candidate of half the probability, or
one that fails in a single country, can have the baseline's AUC. A gate fails where the difference
is surely beyond its margin, and is inconclusive where its interval lies across the edge. PR-AUC and
ECE have no interval, and a point value decides nothing: their gates stay open.

One rule judges them and the AUC (parity.stats.equivalence), so a gate too asks what few rows cannot
show; the record of a verification stands for the rows that it takes to exclude rare faults.

Nor does an equal AUC say that either is any good: a gate may ask for an AUC of at least so much, of
both models, each by its own interval.
"""

import dataclasses
import math
from typing import Dict, Iterable, Mapping, NamedTuple, Optional, Sequence

from parity.result import Comparison, Gate, Side, joint
from parity.stats.calibration import MeanDifference
from parity.stats.equivalence import Interval, Verdict, decide
from parity.stats.intervals import at_confidence, student_interval, widened
from parity.stats.parts import Part
from semisync.common.errors import BadInput, UsageError

METRICS = {  # a gate's metric, and its name in words
    "logloss": "log loss",
    "ne": "NE",
    "pcoc": "PCOC",
    "ece": "ECE",
    "gauc": "GAUC",
    "pr_auc": "PR-AUC",
}


_LEAST_AUC = "auc>"  # the text before the = of auc>=VALUE


class Requirements(NamedTuple):
    """The requirements of --require."""

    margins: Dict[str, float]  # by metric
    least_auc: Optional[float]  # of either model


def parse_requirements(items: Iterable[str]) -> Requirements:
    """Reads items METRIC=MARGIN and auc>=VALUE.

    Raises:
        UsageError: another metric, a margin or AUC without meaning, and a metric that comes twice.
    """
    margins: Dict[str, float] = {}
    least = None
    for item in items:
        metric, _, text = item.partition("=")
        if metric in margins or (metric == _LEAST_AUC and least is not None):
            raise UsageError(f"--require names {metric} twice; one value each is expected")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if metric == _LEAST_AUC:
            least = _checked_least(value)
        else:
            _check_metric(metric, value)
            margins[metric] = value
    return Requirements(margins, least)


def require(
    comparison: Comparison,
    margins: Mapping[str, float],
    slices: bool = False,
    days: bool = False,
    least_auc: Optional[float] = None,
) -> Comparison:
    """The comparison with gates, which decide beside the verdict on AUC.

    Args:
        comparison: from `parity.compare`, with its slices and days if they are required.
        margins: the largest difference that does not matter, by metric; see METRICS.
        slices, days: whether each must be equivalent, and the mean of the days with them.
        least_auc: the minimum AUC of either model.

    Returns:
        The `Comparison` with `gates`.

    Raises:
        BadInput: the scores do not have the metric.
        UsageError: another metric, an AUC without meaning, or slices or days that the comparison
            does not have.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate, margin=0.02)
        >>> comparison = parity.require(comparison, {"pcoc": 0.05}, least_auc=0.7)
        >>> [(gate.name, gate.verdict.value) for gate in comparison.gates]
        [('pcoc', 'EQUIVALENT'), ('auc', 'EQUIVALENT')]
        >>> comparison.decision
        <Verdict.EQUIVALENT: 'EQUIVALENT'>
    """
    for required, parts, kind in (
        (slices, comparison.slices, "slices"),
        (days, comparison.days, "days"),
    ):
        if required and not parts:
            raise UsageError(f"{kind} are required, but this comparison has none")
    gates = [_metric_gate(comparison, metric, margin) for metric, margin in margins.items()]
    if least_auc is not None:
        gates.append(_least_gate(comparison, _checked_least(least_auc)))
    if slices:
        gates += [
            _part_gate(f"slices {name}", parts, comparison.margin)
            for name, parts in comparison.slices
        ]
    if days and comparison.days is not None:
        series = comparison.days
        gates.append(_part_gate("days", series.days, comparison.margin, series.verdict))
    return dataclasses.replace(comparison, gates=(*comparison.gates, *gates))


def _check_metric(metric: str, margin: float) -> None:
    if metric not in METRICS:
        raise UsageError(
            f"{metric!r} is not a metric that can be required; there are {', '.join(METRICS)}, the "
            "margin for AUC, and 'auc>=0.7' in quotes"
        )
    if not 0 < margin < math.inf:
        raise UsageError(f"{metric} is required without a margin above 0, such as {metric}=0.01")


def _checked_least(value: float) -> float:
    if not 0 < value < 1:
        raise UsageError(
            f"auc>={value:g} is required; an AUC between 0 and 1 is expected, such as 'auc>=0.7'"
        )
    return value


def interval_of_auc(comparison: Comparison, side: Side) -> Interval:
    """The interval of a model's AUC, at the comparison's confidence, widened for histograms."""
    with at_confidence(comparison.confidence):
        interval = student_interval(side.auc, side.standard_error, side.freedom)
    return widened(interval, comparison.bound or 0.0)


def _least_gate(comparison: Comparison, least: float) -> Gate:
    """Gates both models' AUC: an interval above it passes, one below fails."""
    failed, undecided = [], []
    for name, side in (("baseline", comparison.baseline), ("candidate", comparison.candidate)):
        interval = interval_of_auc(comparison, side)
        if interval.high < least:
            failed.append(name)
        elif interval.low < least:
            undecided.append(name)
    verdict = Verdict.INCONCLUSIVE if undecided else Verdict.EQUIVALENT
    return Gate(
        "auc",
        None,
        Verdict.NOT_EQUIVALENT if failed else verdict,
        failed=tuple(failed),
        undecided=tuple(undecided),
        least=least,
    )


def _part_gate(name: str, parts: Sequence[Part], margin: float, *also: Verdict) -> Gate:
    """Every part must be equivalent, and the verdicts `also`."""
    verdicts = [part.verdict or Verdict.INCONCLUSIVE for part in parts]
    return Gate(
        name,
        margin,
        joint([*verdicts, *also]),
        failed=tuple(part.name for part in parts if part.verdict is Verdict.NOT_EQUIVALENT),
        undecided=tuple(
            part.name for part in parts if part.verdict in (None, Verdict.INCONCLUSIVE)
        ),
    )


def _metric_gate(comparison: Comparison, metric: str, margin: float) -> Gate:
    _check_metric(metric, margin)
    old, new = (_figure(side, metric) for side in (comparison.baseline, comparison.candidate))
    if old is None or new is None:
        why = " ".join(comparison.unavailable)
        if metric == "gauc":
            why = "It needs groups (--group), one of them with rows of both classes."
        raise BadInput(f"{METRICS[metric]} is required, but there is none. {why}")
    paired = _paired_difference(comparison, metric)
    if paired is None:  # PR-AUC and ECE: a point value decides nothing
        return Gate(metric, margin, Verdict.INCONCLUSIVE, new - old)
    evidence = paired.evidence
    if comparison.verified is not None:  # which excludes rare faults, as for AUC
        evidence = evidence._replace(floor=0.0)
    with at_confidence(comparison.confidence):
        decision = decide(evidence, margin)
    return Gate(
        metric, margin, decision.verdict, paired.delta, decision.interval, reason=decision.reason
    )


def _figure(side: Side, metric: str) -> Optional[float]:
    if metric in ("gauc", "pr_auc"):
        return getattr(side, metric)
    return None if side.calibration is None else getattr(side.calibration, metric)


def _paired_difference(comparison: Comparison, metric: str) -> Optional[MeanDifference]:
    """The difference that has an interval, where the comparison has one."""
    loss, fit = comparison.logloss_difference, comparison.baseline.calibration
    if metric == "ne" and loss is not None and fit is not None:
        return loss.times(fit.ne / fit.logloss)  # NE is log loss over the entropy of the labels
    by_metric = {
        "logloss": loss,
        "pcoc": comparison.pcoc_difference,
        "gauc": comparison.gauc_difference,
    }
    return by_metric.get(metric)
