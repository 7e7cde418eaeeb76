"""`parity.diagnose`: from columns and paths to a comparison with its suspects."""

import dataclasses
from typing import TYPE_CHECKING, Any, Mapping, Optional

import numpy as np

from parity.diagnosis.case import Case
from parity.diagnosis.facts import known_facts
from parity.diagnosis.ranking import ranked
from parity.inputs.checks import Column
from parity.inputs.ids import to_ids
from parity.inputs.rows import Rows, checked_rows
from parity.stats.equivalence import Verdict

if TYPE_CHECKING:
    from parity.result import Comparison

_LARGEST_SQUARED = np.float64(1e100)  # wide, so that float32 scores are not compared as such


def diagnose(
    found: "Comparison",
    labels: Any = None,
    baseline: Any = None,
    candidate: Any = None,
    weights: Any = None,
    parts: Optional[Mapping[str, Any]] = None,
    day: Optional[str] = None,
    ids: Optional[Mapping[str, Any]] = None,
    baseline_model: Optional[str] = None,
    candidate_model: Optional[str] = None,
) -> "Comparison":
    """The comparison with `diagnosis`: why the models may differ, the likeliest cause first.

    Args:
        found: from `parity.compare`; one that is EQUIVALENT has nothing to explain.
        labels, baseline, candidate, weights: the columns that it was made from, in the order of
            the file; without them only the models can tell something.
        parts: by name, columns (n,) that cut the rows: slices, days.
        day: which of `parts` is the day.
        ids: by name, columns of ids: (n,), or a list of ids a row. A column is matched with the
            models' table of its name.
        baseline_model, candidate_model: where facts about each side's model are: a TensorFlow
            checkpoint's prefix, a converted directory, or a .yaml or .json file of settings
            (parity.diagnosis.settings).

    Raises: BadInput for a column or a model that cannot be read.
    """
    if found.decision is Verdict.EQUIVALENT:
        return found
    rows, cut, looked_up = None, {}, {}
    if labels is not None:
        rows = checked_rows(labels, baseline, candidate, None, weights)
        for name, values in (parts or {}).items():
            cut[name] = rows.aligned(np.asarray(values), Column(name))
        for name, values in (ids or {}).items():
            column = to_ids(values, Column(name))
            kept = rows.aligned(np.arange(column.rows), Column(name))
            looked_up[name] = column if rows.kept is None else column.take(kept)
        note = _beyond_squares(rows)
        if note is not None:
            found = dataclasses.replace(found, notes=(*found.notes, note))
            rows, cut, looked_up = None, {}, {}
    case = Case(
        found,
        rows,
        cut,
        day,
        looked_up,
        None if baseline_model is None else known_facts(baseline_model),
        None if candidate_model is None else known_facts(candidate_model),
    )
    return dataclasses.replace(found, diagnosis=ranked(case))


def _beyond_squares(rows: Rows) -> Optional[str]:
    """A sentence where a score is too large for the mean squared difference, which is diagnosed."""
    for side, scores in (("baseline", rows.baseline), ("candidate", rows.candidate)):
        large = np.flatnonzero(np.abs(scores) > _LARGEST_SQUARED)
        if large.size:
            first = large[0] if rows.kept is None else np.flatnonzero(rows.kept)[large[0]]
            return (
                f"The {side}'s score in row {first + 1:,} is {float(scores[large[0]]):g}, one of "
                f"{large.size:,} beyond +-{_LARGEST_SQUARED:g}. The AUC needs their order alone "
                "and stands; their squared differences exceed double precision, so the scores are "
                "not diagnosed. Find out what makes them so large."
            )
    return None
