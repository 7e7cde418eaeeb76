"""The differences that carry an error of their own, and what they rest on."""

from parity import words
from parity.equivalence import CONFIDENCE
from parity.result import Comparison
from parity.sections.markup import table
from parity.words import signed


def difference_section(found: Comparison) -> str:
    """The difference in AUC, the paired one in log loss, the rows and the clusters."""
    low, high = (signed(value, found.margin) for value in found.interval)
    rows = [
        ("difference in AUC", signed(found.delta, found.margin)),
        ("its standard error, paired", f"{found.standard_error:.2g}"),
        (f"its {CONFIDENCE:.0%} interval", f"{low} to {high}"),
        ("margin", f"±{found.margin:g}"),
    ]
    if found.bound is not None:
        rows.append(
            ("certified bound of what histograms hide, in the interval", f"±{found.bound:.2g}")
        )
    if found.logloss_difference is not None:
        loss = found.logloss_difference
        ends = (f"{value:+.2g}".replace("-", "−") for value in (loss.delta, *loss.interval))
        rows.append(("difference in log loss, with 90% interval", "{} ({} to {})".format(*ends)))
    rows += [
        ("rows", f"{found.rows:,}"),
        ("positive", f"{found.positives:,} ({found.positives / found.rows:.2%})"),
        ("weighted", "yes" if found.weighted else "no"),
    ]
    if found.clusters is not None:
        rows += [
            ("clusters", f"{found.clusters:,}"),
            ("standard error if rows were independent", f"{found.standard_error_independent:.2g}"),
        ]
    if found.design_effect is not None:
        rows.append(("design effect of the clusters", f"{found.design_effect:.2f}"))
    if found.rows_to_settle is not None:
        rows.append(("rows that would settle it, about", words.rounded(found.rows_to_settle)))
    return table(rows)
