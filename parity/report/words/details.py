"""The details beside the verdict, in words: gates, log loss, days, slices and suspects."""

from typing import List, Sequence

from parity.formatting import LONGEST_NAME, clipped, minus, percent, signed, some_of, two_digits
from parity.gates import interval_of_auc
from parity.report.words.verdict import HIDDEN, gate_name
from parity.result import CHANCE, ROWS, SETTINGS, SYMPTOM, Comparison, Gate, Suspect
from parity.stats.equivalence import Verdict
from parity.stats.parts import FALSE_DISCOVERIES, Part
from parity.stats.strata import Days
from parity.stats.trend import Change

FIRST = 3  # suspects that the terminal names
MOST = 0.99  # the most that an estimate or a pattern is said to explain: neither is a proof

_BASIS = {
    ROWS: "shown by the rows",
    SETTINGS: "known to differ",
    SYMPTOM: "a symptom",
    CHANCE: "chance",
}
_RESULT = {
    Verdict.EQUIVALENT: "met",
    Verdict.NOT_EQUIVALENT: "failed",
    Verdict.INCONCLUSIVE: "not decided on these rows",
}


def gates_in_words(comparison: Comparison) -> List[str]:
    """Each gate's requirement and outcome, as it follows "Required: "."""
    return [_gate_in_words(gate, comparison) for gate in comparison.gates]


def _gate_in_words(gate: Gate, comparison: Comparison) -> str:
    name = gate_name(gate)
    result, sure = _RESULT[gate.verdict], percent(comparison.confidence)
    if gate.margin is None:
        sides = {"baseline": comparison.baseline, "candidate": comparison.candidate}
        spans = [
            f"the {side}'s lies between {low:.4f} and {high:.4f}"
            for side, (low, high) in (
                (side, interval_of_auc(comparison, figures)) for side, figures in sides.items()
            )
        ]
        return f"{name}: {result}. With {sure} confidence {' and '.join(spans)}."
    if gate.delta is None:
        parts = [
            f"{outcome}: {some_of(names)}"
            for outcome, names in (("not equivalent", gate.failed), ("not decided", gate.undecided))
            if names
        ]
        kind = "each of the days, and their mean," if name == "days" else f"each of the {name}"
        which = f" ({'; '.join(parts)})" if parts else ""
        return f"{kind} within ±{gate.margin:g}: {result}{which}."
    basis = "a value without an interval, which decides nothing"
    if gate.interval is not None:
        low, high = (signed(value, gate.margin) for value in gate.interval)
        basis = f"with {sure} confidence between {low} and {high}"
        if gate.reason in HIDDEN:
            basis += f", but {HIDDEN[gate.reason]}"
    return (
        f"{name} within ±{gate.margin:g}: {result}. It differs by "
        f"{signed(gate.delta, gate.margin)}, {basis}."
    )


def beyond_auc(comparison: Comparison) -> List[str]:
    """Both log losses and PCOCs, or why there are none, to follow "Beyond AUC: "."""
    old, new = comparison.baseline.calibration, comparison.candidate.calibration
    loss = comparison.logloss_difference
    if old is None or new is None or loss is None:
        return list(comparison.unavailable)
    values = (*loss.interval, loss.delta)
    low, high, delta = (two_digits(value) if value else "0" for value in values)
    return [
        f"log loss {old.logloss:.5g} and {new.logloss:.5g}, a difference of {delta} "
        f"(between {low} and {high}); PCOC {old.pcoc:.4g} and {new.pcoc:.4g}."
    ]


def parts_in_words(comparison: Comparison) -> List[str]:
    """A sentence on the days and one on each set of slices."""
    lines = [] if comparison.days is None else [days_in_words(comparison.days, comparison.margin)]
    return lines + [slices_in_words(name, parts) for name, parts in comparison.slices]


def days_in_words(days: Days, margin: float) -> str:
    """The mean of the days and the drift."""
    low, high = (signed(value, margin) for value in days.interval)
    text = (
        f"Mean of {len(days.days)} daily differences "
        f"{signed(days.mean_delta, margin)}, between {low} and {high}"
    )
    if days.drift_p is not None:
        text += f"; drift {minus(f'{days.slope:+.1g}')} per day (p = {days.drift_p:.2g})"
    if days.change is not None and days.change.likely:
        return f"{text}. {change_in_words(days.change, margin)}"
    return text + "."


def change_in_words(change: Change, margin: float) -> str:
    """The days on which the daily difference is another one, by how much, and how surely."""
    when = "From {} on" if change.lasts else "On {} alone"
    return (
        f"{when.format(clipped(change.day, LONGEST_NAME))} the daily difference is another one, by "
        f"{signed(change.difference, margin)} (p = {change.p:.2g}, corrected for the "
        f"{change.places} places looked at)."
    )


def slices_in_words(name: str, parts: Sequence[Part]) -> str:
    """How many slices have which verdict, and in which the difference is not chance."""
    counts = [f"{sum(part.verdict is Verdict.EQUIVALENT for part in parts)} equivalent"]
    for verdict, outcome in (
        (Verdict.NOT_EQUIVALENT, "not equivalent"),
        (Verdict.INCONCLUSIVE, "inconclusive"),
        (None, "with too few rows of a class"),
    ):
        names = [part.name for part in parts if part.verdict is verdict]
        if names:
            counts.append(f"{len(names)} {outcome} ({some_of(names)})")
    text = f"{clipped(name, LONGEST_NAME)}: of {len(parts)} slices {', '.join(counts)}."
    differ = [part for part in parts if part.differs]
    within = [part.name for part in differ if part.verdict is Verdict.EQUIVALENT]
    beyond = [part.name for part in differ if part.verdict is not Verdict.EQUIVALENT]
    if beyond:
        text += f" A difference that is not chance (q < {FALSE_DISCOVERIES:g}): {some_of(beyond)}."
    if within:
        text += (
            f" A difference that is not chance (q < {FALSE_DISCOVERIES:g}) but within the margin: "
            f"{some_of(within)}."
        )
    return text


def suspects_in_words(suspects: Sequence[Suspect]) -> List[str]:
    """A line for each of the first suspects."""
    return [
        f"Suspect {place}: {suspect.name}, {weight_in_words(suspect)}. {suspect.evidence[0]}"
        for place, suspect in enumerate(suspects[:FIRST], 1)
    ]


def first_suspect(comparison: Comparison) -> List[str]:
    """Why the models may differ, in a line; that nothing was found, where it was looked for."""
    if comparison.diagnosis:
        (line,) = suspects_in_words(comparison.diagnosis[:1])
        return [line.partition(": ")[2]]
    return ["no suspect was found."] if comparison.diagnosed else []


def weight_in_words(suspect: Suspect) -> str:
    """The share of the difference that it explains, or could explain at most, and its source."""
    basis = _BASIS[suspect.basis]
    if suspect.basis == ROWS:
        return f"{suspect.score:.0%} of the difference ({basis})"
    if suspect.basis == CHANCE:
        return f"possible ({basis})"
    return f"could explain up to {min(suspect.score, MOST):.0%} of the difference ({basis})"
