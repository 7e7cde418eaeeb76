"""The difference within each slice, and which slices a hunt points out."""

from parity import plot
from parity.report import words
from parity.report.sections.markup import drawing, paragraphs
from parity.report.sections.parts import parts_table
from parity.result import Comparison
from parity.stats.parts import FALSE_DISCOVERIES

_MOST_COLUMNS = 20
_MOST_FIGURES = 5  # further columns have a table alone, so that the page stays small
_MOST_ROWS = 150  # of all tables together, about


def slices_section(found: Comparison) -> str:
    """A sentence, a forest plot and a table for each column that slices."""
    if not found.slices:
        return ""
    most = max(3, min(plot.MOST_PARTS, _MOST_ROWS // len(found.slices)))
    blocks = [
        paragraphs(
            "Each slice is compared on its own rows. Read them in one of two ways, chosen "
            "beforehand. If every slice has to pass, each must be equivalent. If you look for "
            "slices that differ at all, read q, the p-value corrected for the number of slices: "
            f"of those with q below {FALSE_DISCOVERIES:g}, one in ten is expected to be a false "
            "alarm."
        )
    ]
    for place, (name, parts) in enumerate(found.slices[:_MOST_COLUMNS]):
        sentence = words.slices_in_words(name, parts)
        blocks.append(paragraphs(sentence))
        if place < _MOST_FIGURES and any(part.interval is not None for part in parts):
            blocks.append(
                drawing(
                    f"Difference in AUC by {words.clipped(name, 40)}, with "
                    f"{words.percent(found.confidence)} intervals; "
                    "● equivalent, ✖ not equivalent, ◇ inconclusive",
                    plot.slices(found, name),
                    f"slices-{place}",
                    sentence,
                )
            )
        blocks.append(parts_table(parts, words.clipped(name, 40), found.margin, most))
    if len(found.slices) > _MOST_COLUMNS:
        rest = len(found.slices) - _MOST_COLUMNS
        blocks.append(paragraphs(f"and {rest:,} more columns, in report.json"))
    return "\n".join(blocks)
