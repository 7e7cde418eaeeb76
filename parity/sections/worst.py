"""The rows that pull the difference hardest."""

from parity.result import Comparison
from parity.sections.markup import paragraphs, table

_MOST = 50


def worst_section(found: Comparison) -> str:
    """A table of them; where they are alike, the cause is near."""
    if not found.worst:
        return ""
    rows = [
        (
            f"{row.row:,}",
            str(row.label),
            f"{row.baseline:.6g}",
            f"{row.candidate:.6g}",
            f"{row.share:+.2g}".replace("-", "−"),
        )
        for row in found.worst[:_MOST]
    ]
    lines = [
        paragraphs(
            "Rows are counted from 0 in the order compared; a row's share is how much of the "
            "difference in AUC it makes. Look for what they have in common."
        ),
        table(rows, ("row", "label", "baseline's score", "candidate's", "share")),
    ]
    if len(found.worst) > _MOST:
        lines.append(paragraphs(f"report.json has all {len(found.worst):,}."))
    return "\n".join(lines)
