"""The subject of the comparison, in one sentence: which columns of which files."""

from typing import Any, Mapping, Optional, Sequence

from parity.formatting import LONGEST_NAME, clipped, some_of

_MOST_FILES = 3


def subject(provenance: Optional[Mapping[str, Any]]) -> Optional[str]:
    """The sentence, from a report's provenance; None where that says too little.

    Args:
        provenance: with "columns", names by role, and "inputs", the data sets of "baseline" and
            "candidate" as they were named; or None.
    """
    columns = (provenance or {}).get("columns") or {}
    if "baseline_score" not in columns or "candidate_score" not in columns:
        return None
    inputs = (provenance or {}).get("inputs") or {}
    old, new = (inputs.get(side) or [] for side in ("baseline", "candidate"))
    text = _column(columns["baseline_score"], old) + " against "
    text += _column(columns["candidate_score"], [] if new == old else new)
    for role, phrase in (
        ("label", "labels in {}"),
        ("key", "joined by {}"),
        ("weight", "weighted by {}"),
    ):
        if columns.get(role):
            named = columns[role]
            several = named if isinstance(named, (list, tuple)) else [named]
            text += ", " + phrase.format(" and ".join(map(_quoted, several)))
    return text[0].upper() + text[1:] + "."


def _column(name: str, files: Sequence[str]) -> str:
    place = f" of {some_of(files, _MOST_FILES)}" if files else ""
    return f"column {_quoted(name)}{place}"


def _quoted(name: str) -> str:
    return f"'{clipped(str(name), LONGEST_NAME)}'"
