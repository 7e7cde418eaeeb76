"""What `semisync parity` says on the terminal: the decision first, in plain ASCII."""

from typing import Any, List, Mapping

from parity.diagnosis.words import in_words
from parity.report import words
from parity.report.subject import subject
from parity.result import Comparison

_ASCII = str.maketrans({"−": "-", "±": "+-", "…": "..."})  # for logs of any encoding


def lines(found: Comparison, provenance: Mapping[str, Any]) -> List[str]:
    """One a sentence."""
    told = [
        words.finding(found),
        f"{words.sample(found)}.",
        *words.rare_failures_in_words(found),
        *filter(None, [subject(provenance)]),
        *(f"Required: {told}" for told in words.gates_in_words(found)),
        *(f"Beyond AUC: {told}" for told in words.beyond_auc(found)),
        *(f"Warning: {sentence}" for sentence in found.warnings),
        words.advice(found),
        *in_words(found.diagnosis),
        *words.parts_in_words(found),
        *(f"Note: {note}" for note in found.notes),
    ]
    first = f"{words.NAME[found.decision]}: {words.headline(found)}"
    return [line.translate(_ASCII) for line in (first, *(f"  {line}" for line in told))]
