"""Tables by raw ids in training: rows that change hands start over.

TorchRec's MCHManagedCollisionModule (`semisync convert --ids mch`) admits new ids every
`eviction_interval` batches, and gives them the rows of those that are met too rarely. Outside of a
DistributedModelParallel TorchRec leaves such a row as it is (its `evict` is empty): the new id
would go on with the vector and the optimizer's state of the old one.

1. The module counts the ids of each batch; at every interval it chooses which to evict.
2. Before the batch is looked up, the rows of the evicted become zero, as free rows of a converted
   table are, and their slots the optimizer's initial values.
3. Ids between two intervals are counted in memory only: a checkpoint at a multiple of the interval
   is exact, one between two forgets the counts since the last.
"""

from __future__ import annotations

from typing import Any, Dict

import torch
from torchrec.modules.mc_embedding_modules import (
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)

from migrate.torchrec.optimizers.row_optimizer import RowOptimizer


def renew_evicted(module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Makes every managed collection of `module` reset the rows that pass to another id.

    Args:
        module: the module that holds the collections.
        optimizer: the optimizer of its tables, from torch.optim or `migrate.torchrec.optimizers`.

    Examples:
        renew_evicted(model, optimizer)
        train(Task(model, optimizer), Ids(), "raw_ids", Settings(checkpoint_every=4))
    """
    for collection in module.modules():
        if isinstance(collection, ManagedCollisionEmbeddingBagCollection):
            tables = collection._embedding_bag_collection.embedding_bags
        elif isinstance(collection, ManagedCollisionEmbeddingCollection):
            tables = collection._embedding_collection.embeddings
        else:
            continue
        weights = {name: table.weight for name, table in tables.items()}
        managed = collection._managed_collision_collection
        managed.register_forward_hook(lambda ids, *_, of=weights: _renew(ids, of, optimizer))


def _renew(managed: Any, weights: Dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """Resets the rows of evicted ids, after the new ids got them and before they are looked up."""
    for name, rows in managed.evict().items():
        if rows is None or not len(rows):
            continue
        weight = weights[name]
        slots, begin = optimizer.state.get(weight, {}), _beginnings(optimizer, weight)
        with torch.no_grad():
            weight[rows] = 0
            for slot, values in slots.items():
                if values.shape == weight.shape:
                    values[rows] = begin.get(slot, 0.0)


def _beginnings(optimizer: torch.optim.Optimizer, weight: torch.Tensor) -> Dict[str, float]:
    """The initial values of slots, where not 0."""
    (group,) = (
        group for group in optimizer.param_groups if any(one is weight for one in group["params"])
    )
    if isinstance(optimizer, RowOptimizer):
        return optimizer.initial_state(group)
    return {"sum": group.get("initial_accumulator_value", 0.0)}  # torch.optim.Adagrad's
