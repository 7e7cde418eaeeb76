"""The suspects in words."""

from typing import List, Sequence

from parity.diagnosis.suspect import Suspect

BASIS = {
    "rows": "shown by the rows",
    "settings": "known to differ",
    "symptom": "a symptom",
    "chance": "chance",
}
FIRST = 3  # suspects that the terminal names


def in_words(suspects: Sequence[Suspect]) -> List[str]:
    """A line for each of the first suspects."""
    return [
        f"Suspect {place}: {one.name}, {weight(one)}. {one.evidence[0]}"
        for place, one in enumerate(suspects[:FIRST], 1)
    ]


def weight(one: Suspect) -> str:
    """How much of the difference it would explain, and what says so."""
    return f"{one.score:.0%} of the difference ({BASIS[one.basis]})"
