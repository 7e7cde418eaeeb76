"""The next item: sampled softmax over each item's successor.

Of the state u of an item, the vector v of the one that followed, and K draws of negatives j, each
drawn with probability q[j], the loss is

    -log  exp(s(v)) / (exp(s(v)) + sum over draws j, other than v, of exp(s(j)) / (K q[j]))

s(v) = u v / temperature, with u and v divided by their norms. In the mean over draws the sum is
that of the full softmax (Bengio and Senecal 2008): this is the correction by log q. Without it no
draw has a weight; negatives from the batch then push down popular items.

    all        every item once, K q = 1: the full softmax
    uniform    K of all items, q = 1 / items
    in-batch   K of the batch's own next items; q is each one's share of all next items so far,
               of all processes: each draws as often as the others in training
"""

from __future__ import annotations

import math
from typing import NamedTuple, Optional

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from semisync.common.errors import UsageError

NEGATIVES = ("all", "in-batch", "uniform")


class Negatives(NamedTuple):
    """Negatives, the same for all items of a batch.

    Attributes:
        rows: int64 [k], of the item table.
        weights: [k], the logarithm of each one's factor in the sum.
    """

    rows: Tensor
    weights: Tensor


class Retrieval(nn.Module):
    """Sampled softmax over each item's successor; the module has its formula.

    Where torch.distributed runs, all processes must draw in-batch negatives equally often in
    training: each draw waits for those of the others.

    Args:
        items: the number of rows of the table.
        negatives: "all", "in-batch" or "uniform".
        count: how many negatives are drawn, at most.
        temperature: the divisor of the scores.
        normalise: whether vectors are divided by their norms.
        log_q: whether the sum is corrected by how likely each negative was.

    Raises:
        UsageError: other negatives.

    Examples:
        >>> from migrate.sequences import Retrieval
        >>> task = Retrieval(50, "uniform", count=16)  # for a `RetrievalModel`
        >>> task.draw(torch.tensor([3, 8])).rows.shape
        torch.Size([16])
    """

    seen: Tensor  # how often each item came next, for in-batch negatives

    def __init__(
        self,
        items: int,
        negatives: str = "uniform",
        count: int = 1024,
        temperature: float = 0.05,
        normalise: bool = True,
        log_q: bool = True,
    ) -> None:
        super().__init__()
        if negatives not in NEGATIVES:
            raise UsageError(f"negatives are {negatives!r}, expected one of {', '.join(NEGATIVES)}")
        self.items, self.kind, self.count = items, negatives, count
        self.temperature, self.normalise, self.log_q = temperature, normalise, log_q
        counted = items if negatives == "in-batch" else 0
        self.register_buffer("seen", torch.zeros(counted, dtype=torch.int64))

    def draw(self, following: Tensor, generator: Optional[torch.Generator] = None) -> Negatives:
        """The negatives of a batch.

        Args:
            following: the rows of the items that came next, int64 [n].
            generator: torch's own by default.

        Returns:
            `Negatives`.
        """
        device = following.device
        if self.kind == "in-batch":
            return self._in_batch(following, generator)
        if self.kind == "all":
            rows = torch.arange(self.items, device=device)
        else:
            drawn_on, shape = _device(generator, device), (self.count,)
            rows = torch.randint(self.items, shape, device=drawn_on, generator=generator)
            rows = rows.to(device)
        weight = math.log(self.items / len(rows)) if self.log_q else 0.0
        return Negatives(rows, torch.full((len(rows),), weight, device=device))

    def _in_batch(self, following: Tensor, generator: Optional[torch.Generator]) -> Negatives:
        if self.training:
            met = _of_all_processes(following)  # a checkpoint has one process's counts
            self.seen.index_add_(0, met, torch.ones_like(met))
        drawn_on = _device(generator, following.device)
        order = torch.randperm(len(following), device=drawn_on, generator=generator)[: self.count]
        rows, times = following[order.to(following.device)].unique(return_counts=True)
        # An item drawn several times is one row, of as many times the weight.
        weights = times.log()
        if self.log_q:
            share = self.seen[rows].clamp(min=1) / self.seen.sum().clamp(min=1)
            weights = weights - (share * len(order)).log()
        return Negatives(rows, weights)

    def loss(
        self, states: Tensor, following: Tensor, vectors: Tensor, drawn: Negatives, others: Tensor
    ) -> Tensor:
        """The mean over the items that another followed.

        Args:
            states: of these items, [n, dim].
            following: rows of the next items, int64 [n].
            vectors: of the next items, [n, dim].
            drawn: the negatives.
            others: the vectors of the negatives, [k, dim].

        Returns:
            A scalar.
        """
        users = self.directions(states) / self.temperature
        negative = torch.addmm(drawn.weights.to(users), users, self.directions(others).T)
        if self.kind == "all":
            return F.cross_entropy(negative, following)
        positive = (users * self.directions(vectors)).sum(1)
        hit = following.unsqueeze(1) == drawn.rows
        # Not -inf: the gradient of logsumexp is NaN where all negatives are hits.
        negative = negative.masked_fill(hit, torch.finfo(negative.dtype).min)
        return (torch.logaddexp(positive, negative.logsumexp(1)) - positive).mean()

    def directions(self, vectors: Tensor) -> Tensor:
        """The factor of a score, of states or of items' vectors.

        Args:
            vectors: [n, dim].

        Returns:
            [n, dim].
        """
        return F.normalize(vectors, dim=-1) if self.normalise else vectors


def _of_all_processes(rows: Tensor) -> Tensor:
    """The rows of this process and of all others, rank by rank; they may differ in number."""
    if not (dist.is_available() and dist.is_initialized()):
        return rows
    each = [rows.new_zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(each, rows.new_tensor([len(rows)]))
    counts = torch.cat(each).tolist()
    padded = [rows.new_zeros(max(counts)) for _ in counts]
    dist.all_gather(padded, F.pad(rows, (0, max(counts) - len(rows))))
    return torch.cat([part[:count] for part, count in zip(padded, counts)])


def _device(generator: Optional[torch.Generator], otherwise: torch.device) -> torch.device:
    """The device on which a generator draws."""
    return otherwise if generator is None else generator.device
