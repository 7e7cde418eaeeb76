"""A comparison in plain sentences, the same on the terminal and in the report.

Numbers carry two digits more than the margin has, and a real minus sign.
"""

import math
from typing import List, Sequence

from parity.gates import METRICS, Gate
from parity.result import Comparison
from parity.stats.equivalence import Verdict, judge
from parity.stats.parts import FALSE_DISCOVERIES, Part
from parity.stats.strata import Days
from parity.stats.trend import Change

LONGEST_NAME = 60  # letters of a name in a sentence

MARK = {Verdict.EQUIVALENT: "✓", Verdict.NOT_EQUIVALENT: "✗", Verdict.INCONCLUSIVE: "?"}
NAME = {
    Verdict.EQUIVALENT: "EQUIVALENT",
    Verdict.NOT_EQUIVALENT: "NOT EQUIVALENT",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}


_OF_GATES = {
    Verdict.NOT_EQUIVALENT: "Required as well, and failed",
    Verdict.INCONCLUSIVE: "Required as well, and not decided",
    Verdict.EQUIVALENT: "Required as well, and met",
}


def explanation(found: Comparison) -> str:
    """What AUC, margin and interval are, for a reader who knows no statistics."""
    return (
        "AUC is the chance that a model scores a random positive row above a random negative one: "
        "0.5 is guessing, 1 is perfect. The margin is the largest difference that does not matter, "
        "stated before the comparison. The bar is where the true difference lies with "
        f"{percent(found.confidence)} confidence: inside the band the models are equivalent, "
        "outside they are not, and across its edge the data cannot say."
    )


def headline(found: Comparison) -> str:
    """The verdict as one sentence, and what became of the gates."""
    sentences = [_headline_on_auc(found)]
    for verdict, told in _OF_GATES.items():
        names = [gate_name(gate) for gate in found.gates if gate.verdict is verdict]
        if names:
            sentences.append(f"{told}: {', '.join(names)}.")
    return " ".join(sentences)


def _headline_on_auc(found: Comparison) -> str:
    if found.verdict is Verdict.EQUIVALENT:
        if needs_record(found):
            return (
                "The candidate's AUC is the baseline's, to within the margin, by these rows and "
                "the verification of its values together."
            )
        return "The candidate's AUC is the baseline's, to within the margin."
    if found.verdict is Verdict.NOT_EQUIVALENT:
        way = "higher" if found.delta > 0 else "lower"
        return f"The candidate's AUC is {way} than the baseline's by more than the margin."
    if lacks_record(found):
        return (
            "On these rows the AUCs agree to within the margin, but so few cannot exclude rare "
            "faults that matter."
        )
    return "These rows cannot tell whether the AUCs differ by more than the margin."


def finding(found: Comparison) -> str:
    """What was measured, and how surely."""
    low, high = (signed(value, found.margin) for value in found.interval)
    return (
        f"Baseline AUC {plain(found.baseline.auc, found.margin)}, "
        f"candidate AUC {plain(found.candidate.auc, found.margin)}: "
        f"a difference of {signed(found.delta, found.margin)}, "
        f"with {percent(found.confidence)} confidence between {low} and {high}; "
        f"the margin is ±{found.margin:g}."
    )


def rare_failures_in_words(found: Comparison) -> List[str]:
    """What the rows cannot exclude, and the record that does, if one was given."""
    rare = found.rare_failures
    if rare is None:
        return []
    of_what = "rows of the rarer class"
    if found.clusters is not None:
        of_what = "clusters that hold the rarer class"
    beyond = rare.floor >= found.margin
    sentences = [
        f"Rare faults: one that hits fewer than {rare.share:.2g} of the {of_what} may have hit "
        f"none of {rare.observations:,.0f}, and could move the AUC by up to {rare.floor:.2g}, "
        f"{'which is not inside' if beyond else 'inside'} the margin"
        + (
            f"; about {rounded(rare.rows_to_exclude)} rows like these would exclude it."
            if beyond
            else "."
        )
    ]
    if found.verified is not None:
        record = found.verified
        sentences.append(
            f"Verified: {record.directory} holds every value of {record.source} "
            f"({record.rows:,} rows of {record.tensors:,} tensors compared, none differs), which "
            "excludes rare faults of the conversion"
            + (", and the verdict rests on both." if needs_record(found) else ".")
        )
    return sentences


def needs_record(found: Comparison) -> bool:
    """Whether it is EQUIVALENT by the record of a verification and the rows, not by these alone."""
    rare = found.rare_failures
    return found.verdict is Verdict.EQUIVALENT and rare is not None and rare.floor >= found.margin


def lacks_record(found: Comparison) -> bool:
    """Whether it is INCONCLUSIVE although the interval lies inside the margin: for rare faults."""
    rare = found.rare_failures
    return (
        found.verdict is Verdict.INCONCLUSIVE
        and found.verified is None
        and found.rows_to_settle is not None
        and rare is not None
        and rare.floor >= found.margin
        and judge(found.interval, found.margin) is Verdict.EQUIVALENT
    )


def compared(found: Comparison) -> str:
    """What was compared with what."""
    if found.training is None:
        return f"The scores of two models on the same rows: {sample(found)}."
    runs = len(found.training.baseline_aucs), len(found.training.candidate_aucs)
    return (
        f"Training runs of two models, {runs[0]} of the baseline and {runs[1]} of the candidate, "
        f"scored on the same rows: {sample(found)}."
    )


def sample(found: Comparison) -> str:
    """The rows that it rests on."""
    text = f"{found.rows:,} rows, {found.positives:,} of them positive"
    if found.clusters is not None:
        text += f", in {found.clusters:,} clusters"
    if found.weighted:
        text += ", weighted"
    return text


def gates_in_words(found: Comparison) -> List[str]:
    """On each gate, what is required and what became of it, as it follows "Required: "."""
    return [_gate_in_words(gate, found.confidence) for gate in found.gates]


def _gate_in_words(gate: Gate, confidence: float) -> str:
    name = gate_name(gate)
    result = _OF_GATE[gate.verdict]
    if gate.delta is None:
        told = [
            f"{what}: {some_of(names)}"
            for what, names in (("not equivalent", gate.failed), ("not decided", gate.undecided))
            if names
        ]
        what = "each of the days, and their mean," if name == "days" else f"each of the {name}"
        return f"{what} within ±{gate.margin:g}: {result}" + (
            f" ({'; '.join(told)})." if told else "."
        )
    basis = "comparing point values, as it has no interval here"
    if gate.interval is not None:
        low, high = (signed(value, gate.margin) for value in gate.interval)
        basis = f"with {percent(confidence)} confidence between {low} and {high}"
    return (
        f"{name} within ±{gate.margin:g}: {result}. It differs by "
        f"{signed(gate.delta, gate.margin)}, {basis}."
    )


_OF_GATE = {
    Verdict.EQUIVALENT: "met",
    Verdict.NOT_EQUIVALENT: "failed",
    Verdict.INCONCLUSIVE: "not decided on these rows",
}


def gate_name(gate: Gate) -> str:
    """Such as "PCOC" or "slices of country"."""
    if gate.name.startswith("slices "):
        return f"slices of {clipped(gate.name[7:], LONGEST_NAME)}"
    return METRICS.get(gate.name, gate.name)


def beyond_auc(found: Comparison) -> List[str]:
    """Both log losses and PCOCs, or why there are none, to follow "Beyond AUC: "."""
    old, new = found.baseline.calibration, found.candidate.calibration
    loss = found.logloss_difference
    if old is None or new is None or loss is None:
        return list(found.unavailable)
    values = (*loss.interval, loss.delta)
    low, high, delta = (f"{v:+.2g}".replace("-", "−") if v else "0" for v in values)
    return [
        f"log loss {old.logloss:.5g} and {new.logloss:.5g}, a difference of {delta} "
        f"(between {low} and {high}); PCOC {old.pcoc:.4g} and {new.pcoc:.4g}."
    ]


def advice(found: Comparison) -> str:
    """What to do about it."""
    if found.verdict is Verdict.EQUIVALENT and found.decision is Verdict.NOT_EQUIVALENT:
        return (
            "Hold the candidate back: AUC cannot see what failed. Look at calibration, slices and "
            "days below for where the scores part."
        )
    if found.verdict is Verdict.EQUIVALENT and found.decision is Verdict.INCONCLUSIVE:
        return "Compare more rows: AUC is settled, and what was required as well is not."
    if found.verdict is Verdict.EQUIVALENT:
        return "On these rows AUC gives no reason to hold the candidate back."
    if found.verdict is Verdict.NOT_EQUIVALENT:
        if found.delta < 0:
            return (
                "Hold the candidate back. First make sure that both models scored the same rows "
                "with the same features, then look at where the scores part."
            )
        return (
            "If the candidate was to be the same model, find out why it is better before you trust "
            "it: other rows, other features or labels that leaked also look like this."
        )
    if lacks_record(found) and found.rare_failures is not None:
        return (
            f"Compare about {rounded(found.rare_failures.rows_to_exclude)} rows like these. Or, "
            "where the candidate was converted, hand in the record of its complete verification: "
            "semisync verify PREFIX OUT --json > verified.json, and --verified verified.json here."
        )
    if found.training is not None and found.training.runs_to_settle is not None:
        return f"Train about {found.training.runs_to_settle} runs of each model and compare again."
    if found.rows_to_settle is None:
        return "Compare more rows."
    if found.rows_to_settle <= found.rows:
        return (
            "Compare several times as many rows: equal models would have shown it on these four "
            "times out of five, so the difference may well be near the margin. Or look for what "
            "makes the models differ."
        )
    return (
        f"Compare more rows: equal models would be found equivalent four times out of five with "
        f"about {rounded(found.rows_to_settle)} rows like these, "
        f"{found.rows_to_settle / found.rows:,.2g} times as many; or state a wider margin "
        "beforehand, if a larger difference does not matter."
    )


def limits(found: Comparison) -> str:
    """What the verdict does not cover."""
    text = (
        "The interval covers the choice of the rows alone. Two training runs of one pipeline "
        "differ as well, and one run of each model cannot show by how much."
    )
    if found.training is not None:
        text = "The interval covers the choice of the rows and the training runs' seeds."
    if found.clusters is None:
        text += (
            " The rows are taken to be independent; if users or sessions have several rows, name "
            "them as groups, or the interval may be too narrow."
        )
    return text


def parts_in_words(found: Comparison) -> List[str]:
    """A sentence on the days and one on each set of slices."""
    lines = [] if found.days is None else [days_in_words(found.days, found.margin)]
    return lines + [slices_in_words(name, parts) for name, parts in found.slices]


def days_in_words(days: Days, margin: float) -> str:
    """The mean of the days and the drift."""
    low, high = (signed(value, margin) for value in days.interval)
    text = (
        f"Mean of {len(days.days)} daily differences "
        f"{signed(days.mean_delta, margin)}, between {low} and {high}"
    )
    if days.drift_p is not None:
        slope = f"{days.slope:+.1g}".replace("-", "−")
        text += f"; drift {slope} a day (p = {days.drift_p:.2g})"
    if days.change is not None and days.change.likely:
        return f"{text}. {change_in_words(days.change, margin)}"
    return text + "."


def change_in_words(change: Change, margin: float) -> str:
    """From when on the daily difference is another one, and how surely."""
    when = "From {} on" if change.lasts else "On {} alone"
    return (
        f"{when.format(clipped(change.day, LONGEST_NAME))} the daily difference is another one, by "
        f"{signed(change.difference, margin)} (p = {change.p:.2g}, corrected for the "
        f"{change.places} places looked at)."
    )


def slices_in_words(name: str, parts: Sequence[Part]) -> str:
    """How many slices have which verdict, and in which the difference is not chance."""
    counts = [f"{sum(part.verdict is Verdict.EQUIVALENT for part in parts)} equivalent"]
    for verdict, told in (
        (Verdict.NOT_EQUIVALENT, "not equivalent"),
        (Verdict.INCONCLUSIVE, "inconclusive"),
        (None, "with too few rows of a class"),
    ):
        names = [part.name for part in parts if part.verdict is verdict]
        if names:
            counts.append(f"{len(names)} {told} ({some_of(names)})")
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


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(clipped(name, LONGEST_NAME) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def signed(value: float, margin: float) -> str:
    """A difference in AUC, with its sign unless it rounds to 0."""
    text = f"{value:+.{_digits(margin)}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def plain(value: float, margin: float) -> str:
    """An AUC, to the digits of `signed`."""
    return f"{value:.{_digits(margin)}f}"


def percent(share: float) -> str:
    """Such as 90% or 97.5%."""
    return f"{100 * share:.6g}%"


def rounded(count: int) -> str:
    """A count to two significant digits."""
    scale = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // scale) * scale:,}"


def _digits(margin: float) -> int:
    return max(4, 2 + math.ceil(-math.log10(margin)))


def clipped(text: str, most: int) -> str:
    """A name that the user chose, at most so long."""
    return text if len(text) <= most else text[: most - 1] + "…"
