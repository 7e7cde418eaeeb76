"""The table of days or slices."""

from typing import Sequence, Tuple

from parity.plot import surest_first
from parity.report import words
from parity.report.sections.markup import paragraphs, table
from parity.report.words import signed
from parity.stats.strata import Part


def parts_table(parts: Sequence[Part], name: str, margin: float, most: int) -> str:
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
    mark = f"{words.MARK[part.verdict]} {words.NAME[part.verdict].lower()}"
    low, high = (signed(value, margin) for value in part.interval)
    q = "–" if part.q is None else f"{part.q:.2g}"
    return (part.name, mark, signed(part.delta, margin), f"{low} to {high}", q, *counts)
