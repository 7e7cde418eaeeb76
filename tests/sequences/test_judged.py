"""Labels are judged by parity's functions."""

import math

import pytest
import torch

from migrate.sequences import judged
from semisync.common.errors import BadInput

LABELS, LOGITS = torch.tensor([1, 0, 1, 0, 1, 1]), torch.tensor([2.0, 1.0, 0.0, 0.5, 3.0, 0.5])
USERS = torch.tensor([9, 9, 4, 4, 4, 7])


def test_auc_gauc_and_log_loss():
    found = judged(LABELS, LOGITS, USERS)
    assert found.rows == 6
    assert found.auc == 4.5 / 8
    assert found.gauc == pytest.approx((2 * 1 + 3 * 0.5) / 5)
    losses = [math.log1p(math.exp(-x if y else x)) for x, y in zip(LOGITS.tolist(), LABELS)]
    assert found.loss == pytest.approx(sum(losses) / 6)


def test_what_cannot_be_told_is_none():
    found = judged(torch.ones(2), torch.tensor([1.0, 800.0]))
    assert (found.auc, found.gauc, found.loss) == (None, None, None)


@pytest.mark.filterwarnings("error")
def test_a_logit_whose_exponential_overflows_is_one_like_others():
    found = judged(torch.tensor([0, 1]), torch.tensor([-720.0, -1.0]))
    assert found.auc == 1 and found.loss == pytest.approx(math.log1p(math.e) / 2)


def test_what_is_no_label_or_no_logit_is_refused():
    with pytest.raises(BadInput, match="neither 0 nor 1"):
        judged(torch.tensor([2]), torch.tensor([0.0]))
    with pytest.raises(BadInput, match="not finite"):
        judged(torch.tensor([1]), torch.tensor([math.inf]))
    with pytest.raises(BadInput, match="no row"):
        judged(torch.empty(0), torch.empty(0))
