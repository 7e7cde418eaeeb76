"""The suspects in words."""

from typing import List, Sequence

from parity.diagnosis.suspect import CHANCE, ROWS, Suspect

BASIS = {
    "rows": "shown by the rows",
    "settings": "known to differ",
    "symptom": "a symptom",
    "chance": "chance",
}
MOST = 0.99  # that an estimate or a pattern is said to explain, as neither proves anything
FIRST = 3  # suspects that the terminal names


def in_words(suspects: Sequence[Suspect]) -> List[str]:
    """A line for each of the first suspects."""
    return [
        f"Suspect {place}: {one.name}, {weight(one)}. {one.evidence[0]}"
        for place, one in enumerate(suspects[:FIRST], 1)
    ]


def weight(one: Suspect) -> str:
    """How much of the difference it explains, or could explain at most, and what says so."""
    if one.basis == ROWS:
        return f"{one.score:.0%} of the difference ({BASIS[one.basis]})"
    if one.basis == CHANCE:
        return f"possible ({BASIS[one.basis]})"
    return f"could explain up to {min(one.score, MOST):.0%} of the difference ({BASIS[one.basis]})"
