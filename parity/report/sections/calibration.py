"""Whether the scores are right as probabilities, which AUC cannot see."""

from parity import plot
from parity.report.sections.markup import drawing, paragraphs
from parity.result import Comparison


def calibration_section(found: Comparison) -> str:
    """The reliability curves, where both models give probabilities."""
    if found.baseline.reliability is None or found.candidate.reliability is None:
        return ""
    ece = [side.reliability.ece for side in (found.baseline, found.candidate) if side.reliability]
    return "\n".join(
        (
            paragraphs(
                "On the dotted line a score is the share of positives that it promises; below it, "
                "the model promises too much. AUC sees the order of the rows alone, so two models "
                "of one AUC may differ here."
            ),
            drawing(
                "Reliability, in bins of equal row count",
                plot.reliability(found),
                "reliability",
                "Share of positives against mean score, one curve a model; mean gap "
                f"{ece[0]:.2g} for the baseline, {ece[1]:.2g} for the candidate.",
            ),
        )
    )
