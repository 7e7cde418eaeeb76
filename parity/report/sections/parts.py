"""Parts of the rows: days, slices, and the rows that pull the difference hardest."""

from typing import Any, Sequence, Tuple

from parity import plot
from parity.formatting import clipped, percent, signed, two_digits
from parity.plot.auc_figures import MOST_PARTS, surest_first
from parity.report.markup import drawing, paragraphs, table
from parity.report.words.details import days_in_words, slices_in_words
from parity.report.words.verdict import MARK, NAME
from parity.result import Comparison
from parity.stats.parts import FALSE_DISCOVERIES, Part

# So that the page stays small, however long the lists; report.json has everything.
_LONGEST = 40  # letters of a name or a value
_MOST_COLUMNS = 20  # that slice
_MOST_FIGURES = 5  # further columns have a table alone
_MOST_ROWS = 150  # of all tables of slices together, about
_MOST_WORST = 50  # rows


def days_section(comparison: Comparison) -> str:
    """The series against the margin's band; the days that differ most surely as a table."""
    if comparison.days is None:
        return ""
    days = comparison.days
    drift = "With fewer than three days there is no test for drift."
    if days.drift_p is not None and days.slope is not None:
        drift = (
            f"Test for drift: the difference changes by {two_digits(days.slope)} per day, give or "
            f"take {days.slope_error:.2g} (one standard error); a series without drift shows as "
            f"much with probability p = {days.drift_p:.2g}."
        )
    if days.change is not None and not days.change.likely:
        drift += (
            f" No break stands out: the surest of {days.change.places} places to look at is "
            f"{days.change.day}, with p = {days.change.p:.2g} after correction for them."
        )
    return "\n".join(
        (
            paragraphs(
                days_in_words(days, comparison.margin),
                drift,
                "Each day weighs the same in the mean, and rows of different days are not compared "
                "with each other; the verdict above is on all rows together.",
            ),
            drawing(
                f"Difference in AUC by day, with {percent(comparison.confidence)} intervals; the "
                "band is the margin",
                plot.days(comparison),
                "days",
                days_in_words(days, comparison.margin),
            ),
            _parts_table(days.days, "day", comparison.margin, MOST_PARTS),
        )
    )


def slices_section(comparison: Comparison) -> str:
    """A sentence, a forest plot and a table for each column that slices."""
    if not comparison.slices:
        return ""
    most = max(3, min(MOST_PARTS, _MOST_ROWS // len(comparison.slices)))
    blocks = [
        paragraphs(
            "Each slice is compared on its own rows. Read them in one of two ways, chosen "
            "beforehand. If every slice has to pass, each must be equivalent. If you look for "
            "slices that differ at all, read q, the p-value corrected for the number of slices: "
            f"of those with q below {FALSE_DISCOVERIES:g}, one in ten is expected to be a false "
            "alarm."
        )
    ]
    for place, (name, parts) in enumerate(comparison.slices[:_MOST_COLUMNS]):
        sentence, column = slices_in_words(name, parts), clipped(name, _LONGEST)
        blocks.append(paragraphs(sentence))
        if place < _MOST_FIGURES and any(part.interval is not None for part in parts):
            blocks.append(
                drawing(
                    f"Difference in AUC by {column}, with "
                    f"{percent(comparison.confidence)} intervals; "
                    "● equivalent, ✖ not equivalent, ◇ inconclusive",
                    plot.slices(comparison, name),
                    f"slices-{place}",
                    sentence,
                )
            )
        blocks.append(_parts_table(parts, column, comparison.margin, most))
    if len(comparison.slices) > _MOST_COLUMNS:
        rest = len(comparison.slices) - _MOST_COLUMNS
        blocks.append(paragraphs(f"and {rest:,} more columns, in report.json"))
    return "\n".join(blocks)


def worst_section(comparison: Comparison) -> str:
    """The rows that pull hardest; a common trait is near the cause."""
    if not comparison.worst:
        return ""
    shown = comparison.worst[:_MOST_WORST]
    names = list(shown[0].columns or ())
    rows = [
        (
            f"{row.row:,}",
            *(_word((row.columns or {}).get(name)) for name in names),
            str(row.label),
            f"{row.baseline:.6g}",
            f"{row.candidate:.6g}",
            two_digits(row.share),
        )
        for row in shown
    ]
    head = (
        "row",
        *(clipped(name, _LONGEST) for name in names),
        "label",
        "baseline",
        "candidate",
        "share",
    )
    lines = [
        paragraphs(
            "Rows are counted from 0 in the order of the baseline's data; a row's share is how "
            "much of the difference in AUC it makes. Look for what they have in common."
        ),
        f'<div class="parts">{table(rows, head)}</div>',
    ]
    if len(comparison.worst) > _MOST_WORST:
        lines.append(paragraphs(f"report.json has all {len(comparison.worst):,}."))
    return "\n".join(lines)


def _parts_table(parts: Sequence[Part], name: str, margin: float, most: int) -> str:
    """The parts in their order; where there are more than `most`, those that differ most surely."""
    shown = list(parts) if len(parts) <= most else surest_first(parts)[:most]
    head: Tuple[str, ...] = (name, "verdict", "difference", "interval", "q", "rows", "positive")
    rows = [_row(part, margin) for part in shown]
    if all(part.q is None for part in shown):
        head = tuple(cell for cell in head if cell != "q")
        rows = [row[:4] + row[5:] for row in rows]
    text = f'<div class="parts">{table(rows, head)}</div>'
    if len(shown) < len(parts):
        text += "\n" + paragraphs(
            f"These are the {len(shown):,} of {len(parts):,} that differ most surely; report.json "
            "has all."
        )
    return text


def _row(part: Part, margin: float) -> Tuple[str, ...]:
    counts = f"{part.rows:,}", f"{part.positives:,}"
    if part.delta is None or part.interval is None or part.verdict is None:
        return (part.name, "too few rows of a class", "–", "–", "–", *counts)
    mark = f"{MARK[part.verdict]} {NAME[part.verdict].lower()}"
    low, high = (signed(value, margin) for value in part.interval)
    q = "–" if part.q is None else f"{part.q:.2g}"
    return (part.name, mark, signed(part.delta, margin), f"{low} to {high}", q, *counts)


def _word(value: Any) -> str:
    return "–" if value is None else clipped(str(value), _LONGEST)
