"""Whether several processes, each with a share of the batch, take the step of the whole batch.

They average their gradients, so that the loss must be the mean of the losses of the shares, by
their rows. That is tried on the first batch: a sum over the batch, or a loss over pairs of its
rows, is refused.
"""

from __future__ import annotations

from typing import Sequence

import torch

from migrate.runtime.tables.by_id import TableById
from migrate.training.task import Batch, loss_and_scores
from semisync.common.errors import UsageError

_TOLERANCE = 1e-4  # relative; a sum differs by a factor of the number of shares


def check_mean(module: torch.nn.Module, whole: Batch, shares: Sequence[Batch]) -> None:
    """Raises UsageError unless the loss of `whole` is the mean of those of its shares."""
    training = module.training
    tables = [inner for inner in module.modules() if isinstance(inner, TableById)]
    defaults = [table.default for table in tables]
    for table in tables:  # a graph may draw its default at random, anew in each call
        table.default = torch.zeros(table.weight.shape[1])
    module.eval()  # no dropout
    losses = [_loss(module, batch) for batch in (whole, *shares)]
    module.train(training)
    for table, default in zip(tables, defaults):
        table.default = default
    together, count = losses[0], len(shares)
    mean = sum(one.weight(count) * loss for one, loss in zip(shares, losses[1:])) / count
    if abs(together - mean) > _TOLERANCE * max(abs(together), abs(mean)):
        raise UsageError(
            f"the loss of the first batch is {together:.6g}, and the mean over its {len(shares)} "
            f"shares {mean:.6g}: it is not a mean over the rows, and {len(shares)} processes would "
            "take other steps than one; train in one process"
        )


@torch.no_grad()
def _loss(module: torch.nn.Module, batch: Batch) -> float:
    """The loss of a batch, by the same sampled classes for each."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return float(loss_and_scores(module, batch)[0])
