"""The whole model: a table of items, a tower over their sequences, and its task.

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
    """A model of the next item, whose score is the product of `user_vectors` and `item_vectors`.

    Args:
        table: any module from rows of items to vectors [dim].
        tower: an `Hstu` or a `SasRec`.
        task: the loss.

    Examples:
        >>> from migrate.sequences import Hstu, Packed, Retrieval, RetrievalModel
        >>> table, tower = torch.nn.Embedding(50, 8), Hstu(8, heads=2, layers=1, length=20)
        >>> model = RetrievalModel(table, tower, Retrieval(50, "uniform", count=16))
        >>> packed = Packed.of([[3, 8, 1], [4, 9]])
        >>> model.loss(packed).backward()
        >>> (model.user_vectors(packed) @ model.item_vectors().T).shape
        torch.Size([2, 50])
    """

    def __init__(self, table: nn.Module, tower: Tower, task: Retrieval) -> None:
        super().__init__()
        self.table, self.tower, self.task = table, tower, task

    def loss(self, packed: Packed, generator: Optional[torch.Generator] = None) -> Tensor:
        """The mean loss over the items that follow another moment's.

        Args:
            packed: a batch.
            generator: of the negatives; torch's own by default.

        Returns:
            A scalar.

        Raises:
            BadInput: no sequence has items of two moments.
        """
        seen, places, asking, at = _plain(packed).followed()
        following = packed.items[at]
        drawn = self.task.draw(following, generator)
        rows = torch.cat([packed.items, drawn.rows])
        own, others = self.table(rows).split([len(packed.items), len(drawn.rows)])
        states = self.tower(own[places], seen)[asking]
        with torch.autocast(states.device.type, enabled=False):  # scores are differences
            return self.task.loss(states.to(own), following, own[at], drawn, others)

    def forward(self, packed: Packed) -> Tensor:
        """The loss, for wrappers.

        Args:
            packed: a batch.

        Returns:
            A scalar.
        """
        return self.loss(packed)

    def user_vectors(self, packed: Packed) -> Tensor:
        """The vector of each sequence, of all that it holds.

        Args:
            packed: a batch.

        Returns:
            [B, dim].
        """
        states = self.tower(self.table(packed.items), _plain(packed))
        return self.task.directions(states[packed.last])

    def item_vectors(self, rows: Optional[Tensor] = None) -> Tensor:
        """The vectors of items.

        Args:
            rows: of the table, int64 [n]; None: all, in order.

        Returns:
            [n, dim].
        """
        if rows is None:
            rows = torch.arange(self.task.items, device=self.tower.device)
        return self.task.directions(self.table(rows))


class RankingModel(nn.Module):
    """A model of the labels of each item, from the events before its moment: see `Packed.begins`.

    Args:
        table: any module from rows of items to vectors [dim].
        tower: an `Hstu` or a `SasRec`.
        task: the labels.

    Examples:
        >>> from migrate.sequences import Hstu, Packed, Ranking, RankingModel
        >>> table, tower = torch.nn.Embedding(50, 8), Hstu(8, heads=2, layers=1, length=20)
        >>> model = RankingModel(table, tower, Ranking(8, ["click", "buy"]))
        >>> packed = Packed.of([[3, 8, 1]], labels={"click": [[1, 0, 1]], "buy": [[0, 0, 1]]})
        >>> model.loss(packed).backward()
        >>> model.logits(packed)["buy"].shape
        torch.Size([3])
    """

    def __init__(self, table: nn.Module, tower: Tower, task: Ranking) -> None:
        super().__init__()
        self.table, self.tower, self.task = table, tower, task

    def losses(self, packed: Packed) -> Dict[str, Tensor]:
        """The losses of a batch.

        Args:
            packed: with labels.

        Returns:
            By label the mean log loss, a scalar.
        """
        return self.task.loss(self.logits(packed), packed)

    def loss(self, packed: Packed) -> Tensor:
        """The sum of `losses`.

        Args:
            packed: with labels.

        Returns:
            A scalar.
        """
        return torch.stack(list(self.losses(packed).values())).sum()

    def forward(self, packed: Packed) -> Tensor:
        """The loss, for wrappers.

        Args:
            packed: with labels.

        Returns:
            A scalar.
        """
        return self.loss(packed)

    def logits(self, packed: Packed) -> Dict[str, Tensor]:
        """The logits of every item, candidates included, from the events before its moment.

        Args:
            packed: a batch.

        Returns:
            By label [T].
        """
        mixed = self.task.interleave(self.table(packed.items), packed)
        states = self.tower.states(mixed.vectors, mixed.tokens)
        return self.task.logits(states[mixed.items])


def _plain(packed: Packed) -> Packed:
    """A batch of histories alone; raises UsageError if it has candidates."""
    if packed.targets is not None:
        raise UsageError("a retrieval takes histories alone, and the batch has candidates")
    return packed
