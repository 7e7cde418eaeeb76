"""`parity.diagnose`: from columns and paths to a comparison with its suspects.

Every suspect is asked, and those that remain are ranked. A suspect's own score is the share of the
distance between the scores that it would explain. Scores overlap: a wrong learning rate also shifts
the calibration, and rare ids differ first whatever went wrong. So a score is weighed by the share
that stronger evidence leaves open:

    basis      its evidence                                   the score is multiplied by
    rows       undoing it makes the scores agree              1
    settings   the models are known to differ                 1 - best score by rows
    symptom    a pattern that several causes have             1 - best score by those two
    chance     nothing but the seed                           1 - best score by those three

An untrained side is the only suspect, as all else follows from it. Scores on another scale are
undone first, and the others judged on what is left then; a scale that rises with the other leaves
the AUC as it is and ranks below all that can move it. Nothing is suspected where the scores
differ by rounding alone, nor anything that explains less than a twentieth.
"""

import dataclasses
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from parity.calibrated import calibrated_alike
from parity.diagnosis.apart import NEGLIGIBLE
from parity.diagnosis.case import Case
from parity.diagnosis.facts import Facts
from parity.diagnosis.suspects import (
    batch_norm,
    calibration,
    cold_ids,
    combiner,
    misaligned,
    one_part,
    one_score,
    rounding,
    scale,
    settings,
    training_noise,
)
from parity.inputs.checks import Column, check_names, check_same_order
from parity.inputs.ids import Ids, to_ids
from parity.inputs.rows import Rows, checked_rows
from parity.result import CHANCE, ROWS, SETTINGS, SYMPTOM, Comparison, Suspect
from parity.stats.equivalence import Reason, Verdict

SUSPECTS: Tuple[Callable[[Case], Optional[Suspect]], ...] = (
    misaligned.suspect,
    one_score.suspect,
    rounding.suspect,
    combiner.suspect,
    cold_ids.suspect,
    batch_norm.suspect,
    *(setting.suspect for setting in settings.TABLE),
    calibration.suspect,
    one_part.suspect,
    training_noise.suspect,
)
# A float64: beside a Python float, NumPy would compare as float32, in which this is infinite.
_LARGEST_SQUARED = np.float64(1e100)


def diagnose(
    comparison: Comparison,
    labels: Any = None,
    baseline: Any = None,
    candidate: Any = None,
    weights: Any = None,
    parts: Optional[Mapping[str, Any]] = None,
    day: Optional[str] = None,
    ids: Optional[Mapping[str, Any]] = None,
    baseline_model: Optional[Facts] = None,
    candidate_model: Optional[Facts] = None,
) -> Comparison:
    """The comparison with `diagnosis`: why the models may differ, the likeliest cause first.

    Args:
        comparison: from `parity.compare`. Where its AUCs do not differ, only what the rows
            themselves show is named, and only where the calibration differs or ranks are hidden.
        labels, baseline, candidate, weights: the columns that it was made from, in the order of
            the file; without them the models alone can tell something.
        parts: by name, columns (n,) that cut the rows: slices, days.
        day: which of `parts` is the day.
        ids: by name, columns of ids: (n,), or a list of ids per row. A column is matched with the
            models' table of its name.
        baseline_model, candidate_model: facts about each side's model; `migrate.read_facts` reads
            them from a checkpoint, a converted directory or a file of settings.

    Returns:
        The `Comparison` with suspects in `diagnosis`.

    Raises:
        BadInput: a column that cannot be read.

    Examples:
        >>> shuffled = np.roll(candidate, 1)  # the rows of a file that was shifted by one
        >>> comparison = parity.compare(labels, baseline, shuffled)
        >>> found = parity.diagnose(comparison, labels, baseline, shuffled)
        >>> found.diagnosis[0].name
        'scores of other rows'
    """
    moved = _moved(comparison)
    if not moved and not _hidden(comparison):
        return comparison
    columns: Dict[str, Any] = {}
    if labels is not None:
        check_same_order(labels, {**(parts or {}), **(ids or {})})
        rows = checked_rows(labels, baseline, candidate, None, weights)
        cut = {
            name: rows.aligned(check_names(values, Column(name)), Column(name))
            for name, values in (parts or {}).items()
        }
        looked_up = {name: _aligned_ids(values, name, rows) for name, values in (ids or {}).items()}
        note = _beyond_squares(rows)
        if note is None:
            columns = {"rows": rows, "parts": cut, "day": day, "ids": looked_up}
        else:
            comparison = dataclasses.replace(comparison, notes=(*comparison.notes, note))
    case = Case(
        comparison,
        **columns,
        baseline=baseline_model,
        candidate=candidate_model,
    )
    suspects = ranked(case)
    if not moved:  # nothing needs a cause, but what the rows themselves show is named
        suspects = tuple(suspect for suspect in suspects if suspect.basis == ROWS)
    return dataclasses.replace(comparison, diagnosis=suspects, diagnosed=True)


def _moved(comparison: Comparison) -> bool:
    """Whether AUC, or a required metric, differs and needs an explanation."""
    if any(gate.verdict is not Verdict.EQUIVALENT for gate in comparison.gates):
        return True
    slight = abs(comparison.delta) <= NEGLIGIBLE * comparison.margin
    return comparison.verdict is not Verdict.EQUIVALENT and not slight


def _hidden(comparison: Comparison) -> bool:
    """Whether the AUCs may agree and the scores do not."""
    flawed = comparison.reason in (Reason.TIES, Reason.CHANCE)
    return flawed or calibrated_alike(comparison) is False


def _aligned_ids(values: Any, name: str, rows: Rows) -> Ids:
    """A column of ids, without the rows that were left out for their weight."""
    ids = to_ids(values, Column(name))
    kept = rows.aligned(np.arange(ids.rows), Column(name))
    return ids if rows.kept is None else ids.take(kept)


def _beyond_squares(rows: Rows) -> Optional[str]:
    """A sentence if a score is too large to be squared, as the distance between scores needs."""
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


def ranked(case: Case) -> Tuple[Suspect, ...]:
    """Suspects by falling score; equal ones by the strength of their basis."""
    if case.rows is not None and case.apart is None:
        return ()
    untrained = settings.UNTRAINED.suspect(case)
    if untrained is not None:
        return (untrained,)
    first: Tuple[Suspect, ...] = ()
    scaled = scale.find_scale(case)
    if scaled is not None and case.rows is not None:
        first = tuple(filter(None, [scale.suspect(case)]))
        mended = scaled.undone(case.rows.candidate)
        case = dataclasses.replace(case, rows=case.rows._replace(candidate=mended))
        if case.apart is None:
            return first
    others = _weighed(list(filter(None, (suspect(case) for suspect in SUSPECTS))))
    if scaled is None or not scaled.keeps_ranks:
        return (*first, *others)
    still = [suspect for suspect in others if suspect.name == calibration.NAME]
    return (*(suspect for suspect in others if suspect not in still), *first, *still)


def _weighed(suspects: Sequence[Suspect]) -> List[Suspect]:
    """Suspects that explain enough, weighed by the share that stronger evidence leaves open."""
    weighed: List[Suspect] = []
    left = 1.0  # the share that stronger evidence leaves open
    for basis in (ROWS, SETTINGS, SYMPTOM, CHANCE):
        weighed += [
            suspect._replace(score=suspect.score * left)
            for suspect in suspects
            if suspect.basis == basis
        ]
        left = 1 - max((suspect.score for suspect in weighed), default=0.0)
    named = [suspect for suspect in weighed if suspect.score >= NEGLIGIBLE]
    return sorted(named, key=lambda suspect: -suspect.score)
