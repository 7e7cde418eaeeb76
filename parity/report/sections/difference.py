"""The differences that carry an error of their own, and what they rest on."""

from parity.report import words
from parity.report.sections.markup import table
from parity.report.words import signed
from parity.result import Comparison


def difference_section(found: Comparison) -> str:
    """The difference in AUC, the paired one in log loss, the rows and the clusters."""
    low, high = (signed(value, found.margin) for value in found.interval)
    rows = [
        ("difference in AUC", signed(found.delta, found.margin)),
        ("its standard error, paired", f"{found.standard_error:.2g}"),
        (f"its {words.percent(found.confidence)} interval", f"{low} to {high}"),
        ("margin", f"±{found.margin:g}"),
        ("p-value of no difference, two-sided", f"{found.p_difference:.2g}"),
        ("p-value of a difference of the margin or more", f"{found.p_equivalence:.2g}"),
    ]
    if found.bound is not None:
        rows.append(
            ("certified bound of what histograms hide, in the interval", f"±{found.bound:.2g}")
        )
    for name, paired in (
        ("log loss", found.logloss_difference),
        ("PCOC", found.pcoc_difference),
        ("GAUC", found.gauc_difference),
    ):
        if paired is not None:
            values = (paired.delta, *paired.interval)
            ends = (f"{value:+.2g}".replace("-", "−") for value in values)
            rows.append((f"difference in {name}, with its interval", "{} ({} to {})".format(*ends)))
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
    if found.rare_failures is not None:
        rare = found.rare_failures
        rows += [
            ("rows of the rarer class, or clusters that hold it", f"{rare.observations:,.0f}"),
            ("of all that carry the standard error, about", f"{rare.carriers:,.0f}"),
            ("what rare faults could move the AUC by", f"±{rare.floor:.2g}"),
        ]
    if found.rows_to_settle is not None:
        rows.append(("rows that would settle it, about", words.rounded(found.rows_to_settle)))
    return table(rows)
