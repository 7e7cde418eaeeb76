"""The rows that pull the difference hardest."""

from typing import Any

from parity.report.sections.markup import paragraphs, table
from parity.report.words import clipped
from parity.result import Comparison

_MOST = 50


def worst_section(found: Comparison) -> str:
    """A table of them; where they are alike, the cause is near."""
    if not found.worst:
        return ""
    shown = found.worst[:_MOST]
    names = list(shown[0].columns or ())
    rows = [
        (
            f"{row.row:,}",
            *(_word((row.columns or {}).get(name)) for name in names),
            str(row.label),
            f"{row.baseline:.6g}",
            f"{row.candidate:.6g}",
            f"{row.share:+.2g}".replace("-", "−"),
        )
        for row in shown
    ]
    head = (
        "row",
        *(clipped(name, 40) for name in names),
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
    if len(found.worst) > _MOST:
        lines.append(paragraphs(f"report.json has all {len(found.worst):,}."))
    return "\n".join(lines)


def _word(value: Any) -> str:
    return "–" if value is None else clipped(str(value), 40)
