"""How well logits order and foretell labels, by parity's own functions."""

from __future__ import annotations

from typing import NamedTuple, Optional

import numpy
from torch import Tensor

import parity
from parity.inputs.logits import sigmoid
from parity.stats.calibration import losses
from parity.stats.gauc import within_groups
from semisync.common.errors import BadInput


class Judged(NamedTuple):
    """How good logits are for one label.

    Attributes:
        rows: how many.
        auc: None where one class alone occurs.
        gauc: the users' own, weighted by their rows; None without users, or where none has both
            classes.
        loss: mean log loss, in nats; None where a logit is so large that its probability is 0 or 1.

    Examples:
        >>> from migrate.sequences import judged
        >>> judged(torch.tensor([0, 1, 1]), torch.tensor([-1.0, 0.0, 2.0])).auc
        1.0
    """

    rows: int
    auc: Optional[float]
    gauc: Optional[float]
    loss: Optional[float]


def judged(labels: Tensor, logits: Tensor, users: Optional[Tensor] = None) -> Judged:
    """Measures logits against labels.

    Args:
        labels: 0 or 1, [n].
        logits: [n].
        users: the user of each row, int64 [n].

    Returns:
        A `Judged`.

    Raises:
        BadInput: other labels, logits that are not finite, or no row.

    Examples:
        >>> from migrate.sequences import judged
        >>> found = judged(torch.tensor([0, 1]), torch.tensor([1.0, 0.0]), torch.tensor([7, 7]))
        >>> found.auc, found.gauc
        (0.0, 0.0)
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
    loss = losses(positive, sigmoid(logit))
    gauc = None
    if users is not None:
        groups = numpy.unique(users.cpu().numpy(), return_inverse=True)[1]
        gauc = within_groups(positive, logit, groups).gauc
    return Judged(len(label), auc, gauc, None if loss is None else float(loss.mean()))
