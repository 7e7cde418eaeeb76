"""Ranking: clicks, conversions, every label of an item, at once.

1. Items and actions take turns: item, action, item, action. An action's vector is the sum over the
   labels of a learned one for 0 and one for 1. A candidate has no action.
2. An item's state sees the item itself, and the items and actions before its moment: the logits of
   its labels are computed from it (Zhai et al. 2024, section 2.2). An action sees its own item too.
   Items shown at one time are of one moment, `Packed.begins`: none sees the labels of another.
3. The items of a moment have one place, as their actions have the next, so that their order has no
   influence.
4. The loss is the sum over labels of the mean log loss.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from migrate.sequences.packed import Packed
from migrate.sequences.tokens import Sees, Tokens
from semisync.common.errors import BadInput, UsageError


class Interleaved(NamedTuple):
    """Items and actions in turn.

    Attributes:
        vectors: of the tokens, [S, dim].
        tokens: their data for the tower.
        items: the position of each item's token, [T].
    """

    vectors: Tensor
    tokens: Tokens
    items: Tensor


class Ranking(nn.Module):
    """The labels of a ranking: how actions enter the tower, and the losses.

    Args:
        dim: of the vectors.
        labels: the names of those that are learned; each batch has them.

    Raises:
        UsageError: there is no label.

    Examples:
        >>> from migrate.sequences import Ranking
        >>> task = Ranking(8, ["click", "buy"])  # for a `RankingModel`
        >>> {label: logits.shape for label, logits in task.logits(torch.randn(3, 8)).items()}
        {'click': torch.Size([3]), 'buy': torch.Size([3])}
    """

    def __init__(self, dim: int, labels: Sequence[str]) -> None:
        super().__init__()
        if not labels:
            raise UsageError("a ranking has no label; name one at least")
        self.labels = tuple(labels)
        self.actions = nn.Embedding(2 * len(labels), dim)
        nn.init.normal_(self.actions.weight, std=0.02)
        self.head = nn.Linear(dim, len(labels))

    def interleave(self, vectors: Tensor, packed: Packed) -> Interleaved:
        """Items and actions in turn, as the tower takes them.

        Args:
            vectors: of the batch's items, [T, dim].
            packed: the batch.

        Returns:
            An `Interleaved`.

        Raises:
            BadInput: the batch lacks a label.
        """
        candidates = packed.candidates()
        acted = torch.ones_like(packed.items, dtype=torch.bool)
        if candidates is not None:
            acted = ~candidates
        sizes = 1 + acted.long()
        items = sizes.cumsum(0) - sizes
        done = self._labels(packed)[acted] + 2 * torch.arange(len(self.labels), device=items.device)
        mixed = vectors.new_empty(int(sizes.sum()), vectors.shape[1])
        mixed = mixed.index_copy(0, items, vectors)
        mixed = mixed.index_copy(0, items[acted] + 1, self.actions(done).sum(1))
        return Interleaved(mixed, _tokens(packed, sizes, items), items)

    def logits(self, states: Tensor) -> Dict[str, Tensor]:
        """The logits of items.

        Args:
            states: of the items, [n, dim].

        Returns:
            By label [n].
        """
        return dict(zip(self.labels, self.head(states).unbind(1)))

    def loss(self, logits: Dict[str, Tensor], packed: Packed) -> Dict[str, Tensor]:
        """The losses of a batch.

        Args:
            logits: by label, of all items.
            packed: the batch.

        Returns:
            By label the mean log loss of all items, a scalar.
        """
        labels = self._labels(packed).unbind(1)
        return {
            name: F.binary_cross_entropy_with_logits(logits[name], label.to(logits[name]))
            for name, label in zip(self.labels, labels)
        }

    def _labels(self, packed: Packed) -> Tensor:
        """The labels of all items: int64 [T, labels]."""
        missing = [name for name in self.labels if name not in packed.labels]
        if missing:
            raise BadInput(f"a batch has no labels {missing[0]!r}")
        labels = torch.stack([packed.labels[name].long() for name in self.labels], 1)
        if bool(((labels != 0) & (labels != 1)).any()):
            raise BadInput("a label is neither 0 nor 1")
        return labels


def _tokens(packed: Packed, sizes: Tensor, items: Tensor) -> Tokens:
    """Items, each followed by its action where it has one.

    Args:
        sizes: tokens of each item, 1 or 2.
        items: the position of each item's token.
    """
    begins = packed.begins()
    moments = begins.cumsum(0) - 1
    starts = packed.offsets[:-1]
    start, number = (
        part[starts].repeat_interleave(packed.lengths) for part in (items, moments)
    )  # of each item's sequence: its first token, and its first moment
    # Tokens before the item's moment.
    known = items[begins][moments] - start
    places = 2 * (moments - number)
    action = torch.arange(int(sizes.sum()), device=items.device)
    action = action - items.repeat_interleave(sizes)  # 1, or 0 of an item
    times = asked = None
    if packed.times is not None:
        later = packed.times[begins].roll(-1)  # when the moment after each is
        later[moments[packed.last]] = (
            packed.times[packed.last] if packed.asked is None else packed.asked
        )
        times = packed.times.repeat_interleave(sizes)
        asked = torch.where(action == 1, later[moments].repeat_interleave(sizes), times)
    sees = Sees(known.repeat_interleave(sizes), (items - start).repeat_interleave(sizes))
    return Tokens(
        torch.cat([items[starts], (items + sizes)[-1:]]),
        places.repeat_interleave(sizes) + action,
        times,
        asked,
        # Where nothing shares a moment each token sees all before it, for which towers need no
        # masks.
        None if torch.equal(*sees) else sees,
    )
