"""The daily differences, their mean, and the tests for drift and a break."""

from parity import plot
from parity.report import words
from parity.report.sections.markup import drawing, paragraphs
from parity.report.sections.parts import parts_table
from parity.result import Comparison


def days_section(found: Comparison) -> str:
    """The series against the margin's band; the days that differ most surely as a table."""
    if found.days is None:
        return ""
    days = found.days
    drift = "With fewer than three days there is no test for drift."
    if days.drift_p is not None:
        slope = f"{days.slope:+.2g}".replace("-", "−")
        drift = (
            f"Test for drift: the difference changes by {slope} a day, give or take "
            f"{days.slope_error:.2g} (one standard error); a series without drift shows as much "
            f"with probability p = {days.drift_p:.2g}."
        )
    if days.change is not None and not days.change.likely:
        drift += (
            f" No break stands out: the surest of {days.change.places} places to look at is "
            f"{days.change.day}, with p = {days.change.p:.2g} after correction for them."
        )
    return "\n".join(
        (
            paragraphs(
                words.days_in_words(days, found.margin),
                drift,
                "Each day weighs the same in the mean, and rows of different days are not compared "
                "with each other; the verdict above is of all rows together.",
            ),
            drawing(
                f"Difference in AUC by day, with {words.percent(found.confidence)} intervals; the "
                "band is the margin",
                plot.days(found),
                "days",
                words.days_in_words(days, found.margin),
            ),
            parts_table(days.days, "day", found.margin, plot.MOST_PARTS),
        )
    )
