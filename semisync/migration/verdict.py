"""From the parts' results to the verdict."""

import enum
from typing import Any, Dict, NamedTuple, Sequence

from semisync.common import exit_codes


class State(enum.Enum):
    """The outcome of a part."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "undecided"
    NOT_RUN = "not run"
    LEFT_OUT = "left out"


class Verdict(enum.Enum):
    """The outcome of the migration; `exit_code` is for programs."""

    MIGRATED = "MIGRATED"
    NOT_MIGRATED = "NOT_MIGRATED"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def exit_code(self) -> int:
        return _EXIT[self]


_EXIT = {
    Verdict.MIGRATED: exit_codes.DONE,
    Verdict.NOT_MIGRATED: exit_codes.NOT_EQUIVALENT,
    Verdict.INCONCLUSIVE: exit_codes.INCONCLUSIVE,
}


class Part(NamedTuple):
    """One part.

    Attributes:
        name: as the package has it.
        compared: the two things compared, or the part's product.
        state: its outcome.
        finding: in words, one or several lines.
        found: its result; {} where it did not run.
    """

    name: str
    compared: str
    state: State
    finding: str
    found: Dict[str, Any]


def verdict_of(parts: Sequence[Part]) -> Verdict:
    """MIGRATED where every requested part passed."""
    states = {part.state for part in parts}
    if State.FAILED in states:
        return Verdict.NOT_MIGRATED
    if states & {State.OPEN, State.NOT_RUN}:
        return Verdict.INCONCLUSIVE
    return Verdict.MIGRATED


def in_words(verdict: Verdict, parts: Sequence[Part]) -> str:
    """The verdict as a sentence or two."""
    more = _unchecked(parts)
    if verdict is Verdict.NOT_MIGRATED:
        differs = "What differs: {}{}.".format(_in(parts, State.FAILED), more)
        return differs + _look_first(parts) + _rows(parts)
    if verdict is Verdict.INCONCLUSIVE:
        unanswered = _in(parts, State.OPEN, State.NOT_RUN)
        return "No part failed. Not settled: {}{}.".format(unanswered, more)
    left_out = _in(parts, State.LEFT_OUT)
    sentence = "The model in torch has TensorFlow's values, outputs and AUC"
    if left_out:
        return "{}. Left out: {}{}.{}".format(sentence, left_out, more, _rows(parts))
    return "{}, and takes its training steps{}.{}".format(sentence, more, _rows(parts))


def _unchecked(parts: Sequence[Part]) -> str:
    """The checks that the passed parts left out, as the end of a sentence."""
    reports = [p.found.get("report", p.found) for p in parts if p.state is State.PASSED]
    found = [one for report in reports for one in report.get("unchecked", [])]
    return "; not checked: {}".format("; ".join(found)) if found else ""


def _rows(parts: Sequence[Part]) -> str:
    """The remarks on rows, as further sentences."""
    forward = next((part.found for part in parts if part.name == "forward" and part.found), {})
    fixed = forward.get("report", {}).get("fixed")
    at_a_time = " It takes {} rows at a time, and no other number.".format(fixed) if fixed else ""
    return _every_row(parts) + at_a_time


def _every_row(parts: Sequence[Part]) -> str:
    """How far the scores of all rows are apart, as a further sentence."""
    found = next((part.found for part in parts if part.name == "rows" and part.found), None)
    if found is None:
        return ""
    report = found["report"]
    if report["beyond"]:
        rows = "{:,} of {:,} rows".format(report["beyond"], report["rows"])
    else:
        rows = "all {:,} rows".format(report["rows"])
    sentence = " The scores of {} are {}".format(rows, found["apart"])
    if report["judged"] < report["suspects"]:
        sentence += (
            "; of the {suspects:,} further apart than the tolerance the {judged:,} furthest were "
            "measured against TensorFlow's own rounding"
        ).format(**report)
    return sentence + "."


def _look_first(parts: Sequence[Part]) -> str:
    """The first place to look, in a sentence: where the first part that failed begins to differ."""
    failed = next(part for part in parts if part.state is State.FAILED)
    report = failed.found.get("report", {})
    node, step = report.get("first"), report.get("exceeded")
    if failed.name == "values":
        where = failed.finding.splitlines()[0]
    elif node is not None:
        reads = "".join(", which reads {}".format(name) for name in node["variables"][:1])
        where = "{} ({}){}".format(node["node"], node["op"], reads)
    elif step is not None:
        where = "the {} {} in step {} of training".format(step["kind"], step["name"], step["step"])
    elif report.get("lost"):
        where = report["lost"]
    else:
        return ""
    return " Look first at: {}.".format(where)


def _in(parts: Sequence[Part], *states: State) -> str:
    return "; ".join(part.compared for part in parts if part.state in states)
