"""What the verdict rests on, and what it does not cover."""

from parity.report import words
from parity.report.sections.markup import paragraphs
from parity.result import Comparison


def limits_section(found: Comparison) -> str:
    """Its limits, then the comparison's own notes."""
    return paragraphs(words.limits(found), *found.notes)
