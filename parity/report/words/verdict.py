"""The verdict in words: the report's first sentence, and its evidence."""

from typing import List

from parity.calibrated import calibrated_alike
from parity.formatting import LONGEST_NAME, clipped, percent, plain, rounded, signed
from parity.gates import METRICS
from parity.result import Comparison, Gate
from parity.stats.equivalence import Reason, Verdict, judge

MARK = {Verdict.EQUIVALENT: "✓", Verdict.NOT_EQUIVALENT: "✗", Verdict.INCONCLUSIVE: "?"}
NAME = {
    Verdict.EQUIVALENT: "EQUIVALENT",
    Verdict.NOT_EQUIVALENT: "NOT EQUIVALENT",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}

# Reasons that can turn the verdict although the interval lies inside the margin, or outside of it.
HIDDEN = {
    Reason.LONE_RUN: "a model's only run cannot show how far its runs spread",
    Reason.TIES: "a model gives many rows one score, and equal ties show nothing",
    Reason.CHANCE: "a model's AUC cannot be told from 0.5, and two that guess agree as well",
    Reason.OBSERVATIONS: "so few rows cannot vouch for it",
    Reason.CARRIERS: (
        "so few rows carry the standard error that three more like them could turn it"
    ),
    Reason.RARE_FAULTS: "so few rows cannot exclude rare faults that matter",
}
_OPEN = {
    Reason.COUNTS: (
        "Counts in histograms leave the difference of the AUCs too uncertain for this margin."
    ),
    Reason.INTERVAL: "These rows cannot tell whether the AUCs differ by more than the margin.",
}

_OF_GATES = {
    Verdict.NOT_EQUIVALENT: "Required as well, and failed",
    Verdict.INCONCLUSIVE: "Required as well, and not decided",
    Verdict.EQUIVALENT: "Required as well, and met",
}


def headline(comparison: Comparison) -> str:
    """The verdict as one sentence, AUC's blind spots, and the outcome of the gates."""
    outcomes = {}
    for verdict, outcome in _OF_GATES.items():
        names = [gate_name(gate) for gate in comparison.gates if gate.verdict is verdict]
        if names:
            outcomes[verdict] = f"{outcome}: {', '.join(names)}."
    on_auc = [_headline_on_auc(comparison)]
    failed = outcomes.pop(Verdict.NOT_EQUIVALENT, None)
    if failed is not None and comparison.verdict is not Verdict.NOT_EQUIVALENT:
        on_auc = [failed.replace("Required as well, and failed", "Required, and failed")]
    elif failed is not None:
        on_auc.append(failed)
    return " ".join([*on_auc, *outcomes.values()])


def _headline_on_auc(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.EQUIVALENT:
        if needs_record(comparison):
            return (
                "The candidate's AUC is the baseline's, to within the margin, by these rows and "
                "the verification of its values together." + _unseen(comparison)
            )
        return "The candidate's AUC is the baseline's, to within the margin." + _unseen(comparison)
    if comparison.verdict is Verdict.NOT_EQUIVALENT:
        way = "higher" if comparison.delta > 0 else "lower"
        return f"The candidate's AUC is {way} than the baseline's by more than the margin."
    hidden = HIDDEN.get(comparison.reason or Reason.INTERVAL)
    if hidden is None:
        return _OPEN[comparison.reason or Reason.INTERVAL]
    agree = "differ by more than" if _outside(comparison) else "agree to within"
    return f"On these rows the AUCs {agree} the margin, but {hidden}."


def _outside(comparison: Comparison) -> bool:
    """Whether the interval lies outside the margin, whatever the verdict."""
    return judge(comparison.interval, comparison.margin) is Verdict.NOT_EQUIVALENT


def _unseen(comparison: Comparison) -> str:
    """AUC's blind spot, if the calibration differs."""
    if calibrated_alike(comparison) is not False:
        return ""
    old, new = comparison.baseline.calibration, comparison.candidate.calibration
    if old is None or new is None:
        sides = ("baseline", "candidate") if new is None else ("candidate", "baseline")
        return (
            f" AUC cannot see that the {sides[0]}'s scores are probabilities and the {sides[1]}'s "
            "are not, or are 0 or 1 exactly."
        )
    return (
        f" AUC cannot see calibration, which differs: log loss {old.logloss:.3g} and "
        f"{new.logloss:.3g}, PCOC {old.pcoc:.3g} and {new.pcoc:.3g}."
    )


def gate_name(gate: Gate) -> str:
    """The gate in words, such as "PCOC", "slices of country" or "AUC of at least 0.7"."""
    if gate.margin is None:
        return f"AUC of at least {gate.least:g}"
    if gate.name.startswith("slices "):
        return f"slices of {clipped(gate.name[7:], LONGEST_NAME)}"
    return METRICS.get(gate.name, gate.name)


def finding(comparison: Comparison) -> str:
    """The measured difference, and its certainty."""
    margin = comparison.margin
    low, high = (signed(value, margin) for value in comparison.interval)
    return (
        f"Baseline AUC {plain(comparison.baseline.auc, margin)}, "
        f"candidate AUC {plain(comparison.candidate.auc, margin)}: "
        f"a difference of {signed(comparison.delta, margin)}, "
        f"with {percent(comparison.confidence)} confidence between {low} and {high}; "
        f"the margin is ±{margin:g}."
    )


def explanation(comparison: Comparison) -> str:
    """AUC, margin and interval, for a reader who knows no statistics."""
    text = (
        "AUC is the chance that a model scores a random positive row above a random negative one: "
        "0.5 is guessing, 1 is perfect. The margin is the largest difference that does not matter, "
        "stated before the comparison. The bar is where the true difference lies with "
        f"{percent(comparison.confidence)} confidence: outside the band the models are not "
        "equivalent, across its edge the data cannot say, and inside they are equivalent, unless "
        "something else can turn it."
    )
    if comparison.reason in HIDDEN:
        place = "outside" if _outside(comparison) else "inside"
        text += f" Here the bar lies {place}, but {HIDDEN[comparison.reason]}."
    if comparison.reason is Reason.COUNTS:
        text += f" Here nothing follows from the bar: {_OPEN[Reason.COUNTS]}"
    return text


def compared(comparison: Comparison) -> str:
    """The subject of the comparison."""
    if comparison.training is None:
        return f"The scores of two models on the same rows: {sample(comparison)}."
    runs = len(comparison.training.baseline_aucs), len(comparison.training.candidate_aucs)
    return (
        f"Training runs of two models, {runs[0]} of the baseline and {runs[1]} of the candidate, "
        f"scored on the same rows: {sample(comparison)}."
    )


def sample(comparison: Comparison) -> str:
    """The rows that the comparison rests on."""
    text = f"{comparison.rows:,} rows, {comparison.positives:,} of them positive"
    if comparison.clusters is not None:
        text += f", in {comparison.clusters:,} clusters"
    if comparison.weighted:
        text += ", weighted"
    return text


def units(comparison: Comparison) -> str:
    """The unit whose number would narrow the interval: rows, or whole groups of them."""
    return "rows" if comparison.clusters is None else "groups"


def so_many(comparison: Comparison, rows: int) -> str:
    """A number of rows in words, as groups where the rows have groups."""
    if comparison.clusters is not None:
        rows = -(-rows * comparison.clusters // comparison.rows)
    return f"{rounded(rows)} {units(comparison)}"


def rare_failures_in_words(comparison: Comparison) -> List[str]:
    """The faults that the rows cannot exclude, and the record that does, if one was given."""
    rare = comparison.rare_failures
    if rare is None:
        return []
    observed = "rows of the rarer class"
    if comparison.clusters is not None:
        observed = "clusters that hold the rarer class"
    room = "inside the margin."
    if rare.floor >= comparison.margin:
        room = "which is not inside the margin."
        if rare.rows_to_exclude is not None:
            many = so_many(comparison, rare.rows_to_exclude)
            room = f"which is not inside the margin; about {many} like these would exclude it."
    sentences = [
        f"Rare faults: one that hits fewer than {rare.share:.2g} of the {observed} may have hit "
        f"none of {rare.observations:,.0f}, and could move the AUC by up to {rare.floor:.2g}, "
        f"{room}"
    ]
    record = comparison.verified
    if record is not None:
        rests = ", and the verdict rests on both." if needs_record(comparison) else "."
        sentences.append(
            f"Verified: {record.directory} holds every value of {record.source} "
            f"({record.rows:,} rows of {record.tensors:,} tensors compared, none differs), which "
            f"excludes rare faults of the conversion{rests}"
        )
    return sentences


def needs_record(comparison: Comparison) -> bool:
    """Whether the verdict is EQUIVALENT by a verification and the rows, not by the rows alone."""
    rare = comparison.rare_failures
    matter = rare is not None and rare.floor >= comparison.margin
    return comparison.verdict is Verdict.EQUIVALENT and matter
