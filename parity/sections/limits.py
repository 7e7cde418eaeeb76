"""What the verdict rests on, and what it does not cover."""

from parity import words
from parity.result import Comparison
from parity.sections.markup import paragraphs


def limits_section(found: Comparison) -> str:
    """Its limits, then the comparison's own notes."""
    return paragraphs(words.limits(found), *found.notes)
