"""The whole: a table of items, a tower over their sequences, and what is asked of it.

    items = torch.nn.Embedding(12_101, 64)
    model = RetrievalModel(items, Hstu(64, heads=2, layers=2, length=50), Retrieval(12_101))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for packed in batches:
        optimizer.zero_grad()
        model.loss(packed).backward()
        optimizer.step()

The table is any module from int64 rows [n] to their vectors [n, dim]; it is asked once per loss,
for all rows of it.
"""

from __future__ import annotations

from typing import Dict, Optional

import torch
from torch import Tensor, nn

from migrate.sequences.packed import Packed
from migrate.sequences.ranking import Ranking
from migrate.sequences.retrieval import Retrieval
from migrate.sequences.tower import Tower
from semisync.common.errors import UsageError


class RetrievalModel(nn.Module):
    """Which item comes next. Its score is the product of `user_vectors` and `item_vectors`."""

    def __init__(self, table: nn.Module, tower: Tower, task: Retrieval) -> None:
        super().__init__()
        self.table, self.tower, self.task = table, tower, task

    def loss(self, packed: Packed, generator: Optional[torch.Generator] = None) -> Tensor:
        """A scalar, the mean over the items that another one follows; BadInput without any.

        generator: of the negatives; torch's own by default."""
        seen, places = _plain(packed).followed()
        following = packed.items[places + 1]
        drawn = self.task.draw(following, generator)
        rows = torch.cat([packed.items, drawn.rows])
        own, others = self.table(rows).split([len(packed.items), len(drawn.rows)])
        states = self.tower(own[places], seen)
        with torch.autocast(states.device.type, enabled=False):  # scores are differences
            return self.task.loss(states.to(own), following, own[places + 1], drawn, others)

    def forward(self, packed: Packed) -> Tensor:
        """The loss, for wrappers."""
        return self.loss(packed)

    def user_vectors(self, packed: Packed) -> Tensor:
        """[B, dim], of all that each sequence holds."""
        states = self.tower(self.table(packed.items), _plain(packed))
        return self.task.directions(states[packed.last])

    def item_vectors(self, rows: Optional[Tensor] = None) -> Tensor:
        """[n, dim], of these rows of the table, int64 [n]; None: of all, in order."""
        if rows is None:
            device = next(self.tower.parameters()).device
            rows = torch.arange(self.task.items, device=device)
        return self.task.directions(self.table(rows))


class RankingModel(nn.Module):
    """What a user does with each item."""

    def __init__(self, table: nn.Module, tower: Tower, task: Ranking) -> None:
        super().__init__()
        self.table, self.tower, self.task = table, tower, task

    def losses(self, packed: Packed) -> Dict[str, Tensor]:
        """By label: the mean log loss, a scalar."""
        return self.task.loss(self.logits(packed), packed)

    def loss(self, packed: Packed) -> Tensor:
        """Their sum."""
        return torch.stack(list(self.losses(packed).values())).sum()

    def forward(self, packed: Packed) -> Tensor:
        """The loss, for wrappers."""
        return self.loss(packed)

    def logits(self, packed: Packed) -> Dict[str, Tensor]:
        """By label: of every item, candidates among them, from what came before it, [T]."""
        mixed = self.task.interleave(self.table(packed.items), packed)
        states = self.tower(mixed.tokens, mixed.packed)
        return self.task.logits(states[mixed.items])


def _plain(packed: Packed) -> Packed:
    """A batch of histories alone; UsageError where it has candidates, which are none."""
    if packed.targets is not None:
        raise UsageError("a retrieval takes histories alone, and the batch has candidates")
    return packed
