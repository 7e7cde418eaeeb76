"""Reports as text."""

from __future__ import annotations

import os
from typing import Any, List

from migrate.behaviour.difference import ABSOLUTE, RELATIVE
from migrate.behaviour.report import (
    ForwardReport,
    NodeDifference,
    OutputDifference,
    Place,
    ScorePlace,
    ScoresReport,
    StepDifference,
    TrainingReport,
)
from migrate.model.training.begun import begun_text
from migrate.model.training.recipe import left_out_text
from semisync.common.sentences import some_of

_TOLERANCE = f"values may be {ABSOLUTE:g} + {RELATIVE:g} of TensorFlow's apart"


def forward_lines(report: ForwardReport) -> List[str]:
    """Each output's largest difference, and the verdict."""
    lines = [line for one in report.outputs for line in _output(one, report.rows)]
    if report.first is not None:
        lines += _first(report.first)
    elif not report.equal:
        lines.append("no node on the way to it differs by itself: what rounds differently adds up")
    if report.equal and any(one.beyond for one in report.outputs):
        lines.append("torch gives TensorFlow's values, so that the export alone is at fault")
    lines += [f"not compared: {leg}: {why}" for leg, why in report.skipped.items()]
    lines += [f"note: {note}" for note in report.notes]
    verdict = "equal" if report.equal else "different"
    of_all = f" of {report.total:,}" if report.rows < report.total else ""
    lines.append(f"{verdict}: {report.rows:,}{of_all} rows; {_TOLERANCE}")
    return lines


def scores_lines(report: ScoresReport) -> List[str]:
    """The largest difference, and the verdict."""
    lines = []
    if report.suspects:
        lines.append(
            f"{report.suspects:,} rows are further apart; of {report.judged:,} of these, the "
            "furthest apart, TensorFlow was asked what it differs from itself by"
        )
    if report.first is not None:
        lines += _first(report.first)
    elif not report.equal:
        lines.append("no node differs by itself when these rows are computed again")
    if report.equal:
        lines.append(f"equal: {report.rows:,} rows, {apart_text(report)}; {_TOLERANCE}")
    else:
        lines.append(f"different: {report.beyond:,} of {report.rows:,} rows, {apart_text(report)}")
    return lines


def apart_text(report: ScoresReport) -> str:
    """The largest difference and its row, to follow "the scores are"."""
    if report.at is None:
        return "the same in every row"
    return (
        f"{report.largest:.3g} apart at most, in {row_text(report.at)}: "
        f"{_value(report.at.tensorflow)} in TensorFlow, {_value(report.at.torch)} in torch"
    )


def row_text(place: ScorePlace) -> str:
    """A row by its number, and by its key if that is not its number."""
    return f"row {place.row:,}" + ("" if place.key is None else f" (key {place.key!r})")


def training_lines(report: TrainingReport) -> List[str]:
    """The largest difference of each kind, and the verdict."""
    if report.lost is not None:
        return [f"different: {report.lost}; no step was taken"]
    lines = [
        f"{one.kind}: {one.relative:.2g} at most, {_when(one)}"
        if one.relative
        else f"{one.kind}: no difference"
        for one in report.largest
    ]
    if report.neutral:
        worst = max(report.neutral.values())
        lines.append(
            f"the loss does not depend on {some_of(report.neutral)}: their gradients are "
            f"rounding errors, and differ (by {worst:.2g}) without being wrong"
        )
    if report.left_out:
        lines.append(left_out_text(report.left_out))
    if report.begun:
        lines.append(f"{begun_text(report.begun)}, on both sides")
    lines += [f"note: {note}" for note in report.notes]
    steps = f"{report.steps} {'step' if report.steps == 1 else 'steps'}"
    if report.exceeded is None:
        line = f"equal: {steps}; no relative difference is beyond {report.tolerance:g}"
        if report.unchecked:
            line += f"; not checked: {'; '.join(report.unchecked)}"
        lines.append(line)
    else:
        one = report.exceeded
        lines.append(
            f"different: {steps}; the first relative difference beyond {report.tolerance:g} is "
            f"{one.relative:.2g}, of the {one.kind}, {_when(one)}"
        )
    return lines


def _when(one: StepDifference) -> str:
    return f"step {one.step}" if one.kind == "loss" else f"{one.name} after step {one.step}"


def _output(one: OutputDifference, rows: int) -> List[str]:
    what = f"{one.output}, {one.leg}: "
    lines = [what + (f"{one.beyond:,} of {rows:,} rows differ" if one.beyond else "equal")]
    if one.absolute_at is not None:
        lines.append(f"  largest difference {one.absolute:.3g}, {_at(one.absolute_at, one.leg)}")
    if one.relative_at is not None:
        lines.append(f"  largest relative {one.relative:.3g}, {_at(one.relative_at, one.leg)}")
    return lines


def _first(one: NodeDifference) -> List[str]:
    lines = ["the first node that differs:", f"  {one.node} ({one.op}), {_at(one.at, 'torch')}"]
    if one.changed:
        lines.append(
            f"  the conversion has other values than the checkpoint: {some_of(one.changed)}"
        )
    elif one.line is not None:
        lines.append(
            "  line {} of model.py, which is not what the conversion writes:".format(one.line[0])
        )
        lines.append("    " + one.line[1])
    elif one.variables:
        lines.append(f"  it reads {some_of(one.variables)}, with the checkpoint's values")
    return lines


def _at(place: Place, leg: str) -> str:
    where = os.path.basename(place.file)
    if place.row is not None:
        where = f"row {place.row} of {where}"
    if len(place.position) > 1:
        where += f" at {list(place.position[1:])}"
    return f"{where}: {_value(place.tensorflow)} in TensorFlow, {_value(place.other)} in {leg}"


def _value(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
