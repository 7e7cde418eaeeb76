"""The candidate's scores are shifted or stretched: its ranks, and so the AUC, are the baseline's.

The counterfactual: the affine map with the least stretch that noise does not make as well
(parity.diagnosis.apart), undone. The score is the share of the distance that is its own, if it is
more than chance makes of noise. It is a finding of its own where that is nine tenths or more, as
retraining moves ranks as well, and where the AUCs do not clearly differ, as it cannot cause that;
else a symptom that many causes have.

A map of a part of the rows does change the ranks. It shows where the other rows agree to rounding
and the map explains nine tenths or more of the distance in the part.
"""

from typing import List, Optional

import numpy as np

from parity.diagnosis.apart import Apart
from parity.diagnosis.case import Case
from parity.inputs.logits import sigmoid
from parity.result import ROWS, SYMPTOM, Suspect
from parity.stats.calibration import losses

NAME = "calibration"
OF_A_PART = "calibration of a part of the rows"
ALONE = 0.9
PART = 0.005  # of the rows, at least, that differ, and that agree


def suspect(case: Case) -> Optional[Suspect]:
    """Measures shift and stretch, of a part of the rows or of all."""
    apart = case.apart
    if apart is None or not apart.deviations.all():
        return None
    return _of_a_part(case, apart) or _of_all(case, apart)


def _of_all(case: Case, apart: Apart) -> Optional[Suspect]:
    share = apart.affine
    if not share:
        return None
    low, high = case.comparison.interval
    apart_in_auc = not low <= 0 <= high
    ranks = "it leaves the ranks and so the AUC as they are"
    if apart_in_auc:
        ranks = "as a map of all rows leaves their ranks, what moves the AUC is something else"
    evidence = [
        f"{_map_in_words(apart)}, which explains {share:.1%} of the difference between the "
        f"scores; {ranks}.",
        *_losses_in_words(case, apart),
    ]
    fits = case.comparison.baseline.calibration, case.comparison.candidate.calibration
    if fits[0] is not None and fits[1] is not None:
        evidence.append(
            f"Predicted over actual clicks (PCOC): baseline {fits[0].pcoc:.3f}, candidate "
            f"{fits[1].pcoc:.3f}."
        )
    remedy = f"{_where_to_look(apart)}; recalibrating the candidate changes no AUC."
    alone = share >= ALONE and not apart_in_auc
    return Suspect(NAME, share, tuple(evidence), remedy, ROWS if alone else SYMPTOM)


def _of_a_part(case: Case, apart: Apart) -> Optional[Suspect]:
    differing = apart.differing
    if not PART <= differing.mean() <= 1 - PART:
        return None
    part = apart.of(differing)
    if not part.deviations.all() or part.affine < ALONE:
        return None
    mended = apart.new.copy()
    mended[differing] = part.recalibrated()
    return Suspect(
        OF_A_PART,
        part.affine,
        (
            f"In {case.rows_in_words(differing)}, "
            f"{_map_in_words(part, begins=False)}, which explains {part.affine:.1%} of the "
            "difference between the scores; in the others the scores agree, so that the ranks "
            "change.",
            case.auc_in_words(mended, "With that undone"),
        ),
        f"Find out what those rows share. {_where_to_look(part)}.",
        ROWS,
    )


def _map_in_words(apart: Apart, begins: bool = True) -> str:
    intercept = round(float(apart.means[1] - apart.slope * apart.means[0]), 9) + 0.0
    return (
        f"{'The' if begins else 'the'} candidate's {'logit' if apart.logits else 'score'} is "
        f"{apart.slope:.3g} x the baseline's {intercept:+.3g}"
    )


def _where_to_look(apart: Apart) -> str:
    if apart.shift >= ((apart.slope - 1) * float(apart.deviations[0])) ** 2:
        return (
            "Compare the biases of the last layer, and how the sampling of negatives is corrected "
            "for on each side"
        )
    return "Compare the scale of the last layer (temperature, dropout at inference, pooling)"


def _losses_in_words(case: Case, apart: Apart) -> List[str]:
    rows = case.rows
    if rows is None or not apart.logits:
        return []
    # Inside (0, 1): `losses` gives none for a sigmoid that rounds to 0 or 1.
    mended = np.clip(sigmoid(apart.recalibrated()), 1e-300, 1 - 1e-16)
    means = []
    for scores in (rows.baseline, rows.candidate, mended):
        loss = losses(rows.positive, scores)
        if loss is None:
            return []
        means.append(float(apart.weight @ loss))
    return [
        f"With that undone its log loss would differ by {means[2] - means[0]:+.2g} instead of "
        f"{means[1] - means[0]:+.2g}."
    ]
