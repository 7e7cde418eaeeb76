"""The candidate's scores are shifted or stretched: its ranks, and so the AUC, are the baseline's.

The counterfactual: the affine map with the least stretch that noise does not make as well
(parity.diagnosis.apart), undone. The score is the share of the distance that is its own, if it is
more than chance makes of noise. It is a finding of its own where that is nine tenths or more, as
retraining moves ranks as well, and where the AUCs do not clearly differ, as it cannot cause that;
else a symptom that many causes have.
"""

from typing import List, Optional

import numpy as np

from parity.diagnosis.apart import Apart, sigmoid
from parity.diagnosis.case import Case
from parity.result import ROWS, SYMPTOM, Suspect
from parity.stats.calibration import losses

NAME = "calibration"
ALONE = 0.9


def suspect(case: Case) -> Optional[Suspect]:
    """Measures shift and stretch."""
    apart = case.apart
    if apart is None or not apart.deviations.all():
        return None
    share, slope = apart.affine, apart.slope
    if not share:
        return None
    intercept = float(apart.means[1] - slope * apart.means[0])
    unit = "logit" if apart.logits else "score"
    evidence = [
        f"The candidate's {unit} is {slope:.3g} x the baseline's {intercept:+.3g}, which explains "
        f"{share:.1%} of the difference between the scores; it leaves the ranks and so the AUC as "
        "they are.",
        *_losses_in_words(case, apart),
    ]
    fits = case.comparison.baseline.calibration, case.comparison.candidate.calibration
    if fits[0] is not None and fits[1] is not None:
        evidence.append(
            f"Predicted over actual clicks (PCOC): baseline {fits[0].pcoc:.3f}, candidate "
            f"{fits[1].pcoc:.3f}."
        )
    if apart.shift >= ((slope - 1) * float(apart.deviations[0])) ** 2:
        remedy = (
            "Compare the biases of the last layer, and how the sampling of negatives is corrected "
            "for on each side; recalibrating the candidate changes no AUC."
        )
    else:
        remedy = (
            "Compare the scale of the last layer (temperature, dropout at inference, pooling); "
            "recalibrating the candidate changes no AUC."
        )
    low, high = case.comparison.interval
    alone = share >= ALONE and low <= 0 <= high
    return Suspect(NAME, share, tuple(evidence), remedy, ROWS if alone else SYMPTOM)


def _losses_in_words(case: Case, apart: Apart) -> List[str]:
    rows = case.rows
    if rows is None or not apart.logits:
        return []
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
