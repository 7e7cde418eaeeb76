"""The terminal output of `semisync parity`: the decision first, in plain ASCII."""

from typing import Any, List, Mapping

from parity.report.words.advice import what_to_do
from parity.report.words.details import (
    beyond_auc,
    gates_in_words,
    parts_in_words,
    suspects_in_words,
)
from parity.report.words.subject import subject
from parity.report.words.verdict import NAME, finding, headline, rare_failures_in_words, sample
from parity.result import Comparison

_ASCII = str.maketrans({"−": "-", "±": "+-", "…": "..."})  # for logs of any encoding


def lines(comparison: Comparison, provenance: Mapping[str, Any]) -> List[str]:
    """The lines, one per sentence; all but the first are indented."""
    first = f"{NAME[comparison.decision]}: {headline(comparison)}"
    sentences = [
        finding(comparison),
        f"{sample(comparison)}.",
        *rare_failures_in_words(comparison),
        *filter(None, [subject(provenance)]),
        *(f"Required: {sentence}" for sentence in gates_in_words(comparison)),
        *(f"Beyond AUC: {sentence}" for sentence in beyond_auc(comparison)),
        *(f"Warning: {sentence}" for sentence in comparison.warnings),
        what_to_do(comparison),
        *suspects_in_words(comparison.diagnosis),
        *parts_in_words(comparison),
        *(f"Note: {note}" for note in comparison.notes),
    ]
    return [line.translate(_ASCII) for line in (first, *(f"  {line}" for line in sentences))]
