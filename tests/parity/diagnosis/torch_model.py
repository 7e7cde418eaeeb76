"""A small torch model of the log, so that a fault can be planted where it arises.

It embeds, pools, normalises, and has one hidden layer; one pass over the log takes a second or so.
"""

import numpy as np
import torch

from tests.parity.diagnosis.log import ITEMS, NUMBERS, TAGS, USERS

BATCH = 256


class Model(torch.nn.Module):
    """Embeddings, BatchNorm over the numbers, one hidden layer; logits out."""

    def __init__(self, seed=0, pooling="mean"):
        super().__init__()
        torch.manual_seed(seed)
        self.user = torch.nn.Embedding(USERS, 8)
        self.item = torch.nn.Embedding(ITEMS, 8)
        self.tags = torch.nn.EmbeddingBag(TAGS, 8, mode=pooling)
        for table in (self.user, self.item, self.tags):
            torch.nn.init.normal_(table.weight, std=0.1)
        self.norm = torch.nn.BatchNorm1d(NUMBERS, eps=1e-3, momentum=0.05)
        self.hidden = torch.nn.Linear(24 + NUMBERS, 16)
        self.out = torch.nn.Linear(16, 1)

    def forward(self, log):
        """float32 (rows,)"""
        user, item, tags = (torch.from_numpy(one) for one in (log.user, log.item, log.tags))
        offsets = torch.from_numpy(np.cumsum(log.lengths) - log.lengths)
        numbers = self.norm(torch.from_numpy(log.numbers))
        parts = [self.user(user), self.item(item), self.tags(tags, offsets), numbers]
        return self.out(torch.relu(self.hidden(torch.cat(parts, 1)))).squeeze(1)


def train(model, log, optimizer):
    """One pass over the log; returns the model."""
    model.train()
    for first in range(0, len(log.user), BATCH):
        batch = log.batch(first, first + BATCH)
        label = torch.from_numpy(batch.label.astype(np.float32))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def logits(model, log):
    """float32 (rows,), at inference."""
    model.eval()
    with torch.no_grad():
        return model(log).numpy()


def score(model, log):
    """float32 (rows,): probabilities."""
    return 1 / (1 + np.exp(-logits(model, log)))
