"""Asks every suspect and ranks what they say.

Each suspect's own score is the share of the distance between the scores that it would explain. They
overlap: a wrong learning rate also shifts the calibration, and rare ids show whatever went wrong.
So a score is weighed by what stronger evidence leaves open:

    basis      what it rests on                               the score is multiplied by
    rows       undoing it makes the scores agree              1
    settings   the models are known to differ                 1 - best score by rows
    symptom    a pattern that several causes have             1 - best score by those two
    chance     nothing but the seed                           1 - best score by those three

An untrained side is the only suspect, as all else follows from it. Scores on another scale are
undone first, and the others judged on what is left then. Nothing is suspected where the scores
differ by rounding alone, nor anything that explains less than a twentieth.
"""

import dataclasses
from typing import Callable, List, Optional, Tuple

from parity.diagnosis.case import Case
from parity.diagnosis.suspect import CHANCE, ROWS, SETTINGS, SYMPTOM, Suspect
from parity.diagnosis.suspects import (
    accumulators,
    batch_norm,
    calibration,
    cold_ids,
    combiner,
    epsilon,
    learning_rate,
    misaligned,
    one_part,
    optimizer,
    optimizer_state,
    other_settings,
    rounding,
    scale,
    training_noise,
    untrained,
)

NEGLIGIBLE = 0.05

SUSPECTS: Tuple[Callable[[Case], Optional[Suspect]], ...] = (
    misaligned.suspect,
    rounding.suspect,
    combiner.suspect,
    cold_ids.suspect,
    batch_norm.suspect,
    optimizer.suspect,
    optimizer_state.suspect,
    accumulators.suspect,
    learning_rate.suspect,
    epsilon.suspect,
    other_settings.suspect,
    calibration.suspect,
    one_part.suspect,
    training_noise.suspect,
)


def ranked(case: Case) -> Tuple[Suspect, ...]:
    """Suspects by falling score; equal ones by the strength of their basis."""
    if case.rows is not None and case.apart is None:
        return ()
    first: List[Suspect] = [one for one in (untrained.suspect(case),) if one is not None]
    if first:
        return tuple(first)
    found = scale.find_scale(case)
    if found is not None and case.rows is not None:
        first = [one for one in (scale.suspect(case),) if one is not None]
        mended = found[0].undo(case.rows.candidate)
        case = dataclasses.replace(case, rows=case.rows._replace(candidate=mended))
        if case.apart is None:
            return tuple(first)
    others = [one for one in (suspect(case) for suspect in SUSPECTS) if one is not None]
    weighed: List[Suspect] = []
    left = 1.0
    for basis in (ROWS, SETTINGS, SYMPTOM, CHANCE):
        weighed += [one._replace(score=one.score * left) for one in others if one.basis == basis]
        left = 1 - max((one.score for one in weighed), default=0.0)
    weighed = [one for one in weighed if one.score >= NEGLIGIBLE]
    return (*first, *sorted(weighed, key=lambda one: -one.score))
