"""A comparison in plain sentences, the same on the terminal and in the report.

Numbers carry two digits more than the margin has, and a real minus sign.
"""

import math
from typing import List, Sequence

from parity.equivalence import CONFIDENCE, Verdict
from parity.result import Comparison
from parity.strata import Days, Part

LONGEST_NAME = 60  # letters of a name in a sentence

MARK = {Verdict.EQUIVALENT: "✓", Verdict.NOT_EQUIVALENT: "✗", Verdict.INCONCLUSIVE: "?"}
NAME = {
    Verdict.EQUIVALENT: "EQUIVALENT",
    Verdict.NOT_EQUIVALENT: "NOT EQUIVALENT",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}

EXPLANATION = (
    "AUC is the chance that a model scores a random positive row above a random negative one: 0.5 "
    "is guessing, 1 is perfect. The margin is the largest difference that does not matter, stated "
    "before the comparison. The bar is where the true difference lies with 90% confidence: inside "
    "the band the models are equivalent, outside they are not, and across its edge the data cannot "
    "say."
)


def headline(found: Comparison) -> str:
    """The verdict as one sentence."""
    if found.verdict is Verdict.EQUIVALENT:
        return "The candidate's AUC is the baseline's, to within the margin."
    if found.verdict is Verdict.NOT_EQUIVALENT:
        way = "higher" if found.delta > 0 else "lower"
        return f"The candidate's AUC is {way} than the baseline's by more than the margin."
    return "These rows cannot tell whether the AUCs differ by more than the margin."


def finding(found: Comparison) -> str:
    """What was measured, and how surely."""
    low, high = (signed(value, found.margin) for value in found.interval)
    return (
        f"Baseline AUC {plain(found.baseline.auc, found.margin)}, "
        f"candidate AUC {plain(found.candidate.auc, found.margin)}: "
        f"a difference of {signed(found.delta, found.margin)}, "
        f"with {CONFIDENCE:.0%} confidence between {low} and {high}; "
        f"the margin is ±{found.margin:g}."
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


def advice(found: Comparison) -> str:
    """What to do about it."""
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
    return text + "."


def slices_in_words(name: str, parts: Sequence[Part]) -> str:
    """How many slices pass, and which a hunt points out."""
    differ = [clipped(part.name, LONGEST_NAME) for part in parts if part.differs]
    passed = sum(part.verdict is Verdict.EQUIVALENT for part in parts)
    return (
        f"{clipped(name, LONGEST_NAME)}: {passed} of {len(parts)} slices equivalent, "
        f"{len(differ)} found to differ" + (f": {', '.join(differ[:5])}." if differ else ".")
    )


def signed(value: float, margin: float) -> str:
    """A difference in AUC, with its sign unless it rounds to 0."""
    text = f"{value:+.{_digits(margin)}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def plain(value: float, margin: float) -> str:
    """An AUC, to the digits of `signed`."""
    return f"{value:.{_digits(margin)}f}"


def rounded(count: int) -> str:
    """A count to two significant digits."""
    scale = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // scale) * scale:,}"


def _digits(margin: float) -> int:
    return max(4, 2 + math.ceil(-math.log10(margin)))


def clipped(text: str, most: int) -> str:
    """A name that the user chose, at most so long."""
    return text if len(text) <= most else text[: most - 1] + "…"
