"""The counts of a training's scores do not depend on how its rows are dealt out to batches."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss, roc_auc_score

from migrate.training import metrics
from migrate.training.metrics import Metrics

ROWS = 5_000


@pytest.mark.parametrize("waiting", [1, 300, metrics._WAITING])
def test_batches_of_any_size_count_as_one(waiting, monkeypatch):
    monkeypatch.setattr(metrics, "_WAITING", waiting)
    random = np.random.RandomState(0)
    labels = torch.tensor(random.randint(0, 2, ROWS))
    logits = torch.tensor(random.randn(ROWS) * 8).round() / 8 + labels / 4  # each a bin of its own
    whole, parts = Metrics(), Metrics()
    whole.add(labels, logits)
    size = 0
    for start, stop in zip(range(0, ROWS, 7), range(7, ROWS + 7, 7)):
        parts.add(labels[start:stop], logits[start:stop])
        size += len(labels[start:stop])
        if size % 1400 == 0:  # what is asked between batches changes nothing
            assert parts.whole().rows == size
    one, other = whole.state()[""], Metrics.of([parts.state()]).state()[""]
    assert all(np.array_equal(one[name], other[name]) for name in one)
    found = parts.whole()
    assert found.auc == pytest.approx(roc_auc_score(labels, logits), abs=1e-12)
    assert found.loss == pytest.approx(log_loss(labels, torch.sigmoid(logits.double())), abs=1e-8)
