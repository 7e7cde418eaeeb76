"""Asks for every suspect and ranks them.

A suspect's own score is the share of the distance between the scores that it would explain. Scores
overlap: a wrong learning rate also shifts the calibration, and rare ids differ first whatever went
wrong. So a score is weighed by the share that stronger evidence leaves open:

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
from typing import Callable, List, Optional, Sequence, Tuple

from parity.diagnosis.apart import NEGLIGIBLE
from parity.diagnosis.case import Case
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
from parity.result import CHANCE, ROWS, SETTINGS, SYMPTOM, Suspect

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
    left = 1.0
    for basis in (ROWS, SETTINGS, SYMPTOM, CHANCE):
        weighed += [
            suspect._replace(score=suspect.score * left)
            for suspect in suspects
            if suspect.basis == basis
        ]
        left = 1 - max((suspect.score for suspect in weighed), default=0.0)
    named = [suspect for suspect in weighed if suspect.score >= NEGLIGIBLE]
    return sorted(named, key=lambda suspect: -suspect.score)
