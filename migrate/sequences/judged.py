"""How well logits order and foretell labels, by parity's own functions."""

from __future__ import annotations

from typing import NamedTuple, Optional

import numpy
from torch import Tensor

import parity
from parity.stats.calibration import losses
from parity.stats.gauc import within_groups
from semisync.common.errors import BadInput


class Judged(NamedTuple):
    """auc: None where one class alone occurs. gauc: the users' own, weighted by their rows; None
    without users, or where none has both classes. loss: mean log loss; None where a logit is so
    large that its probability is 0 or 1."""

    rows: int
    auc: Optional[float]
    gauc: Optional[float]
    loss: Optional[float]


def judged(labels: Tensor, logits: Tensor, users: Optional[Tensor] = None) -> Judged:
    """labels: 0 or 1, [n]; logits: [n]; users: int64 [n], whose rows they are.

    Raises BadInput for other labels, for logits that are not finite, and without a row.
    """
    if not len(labels):
        raise BadInput("there is no row to judge")
    label, logit = labels.cpu().numpy(), logits.detach().double().cpu().numpy()
    positive = label == 1
    if not (positive | (label == 0)).all():
        raise BadInput("a label is neither 0 nor 1")
    if not numpy.isfinite(logit).all():
        raise BadInput("a logit is not finite: the training has diverged")
    auc = parity.auc(positive, logit) if 0 < positive.sum() < len(positive) else None
    loss = losses(positive, 1 / (1 + numpy.exp(-logit)))
    gauc = None
    if users is not None:
        groups = numpy.unique(users.cpu().numpy(), return_inverse=True)[1]
        gauc = within_groups(positive, logit, groups).gauc
    return Judged(len(label), auc, gauc, None if loss is None else float(loss.mean()))
