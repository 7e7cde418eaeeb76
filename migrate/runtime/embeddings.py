"""Calls of TorchRec's collections with what TensorFlow's look-ups are given."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

import torch
from torch import nn
from torchrec import EmbeddingBagCollection, EmbeddingCollection, KeyedJaggedTensor

Bag = Sequence[Optional[torch.Tensor]]  # ids [n], segments [n] ascending, and weights [n] if any


def look_up(collection: nn.Module, ids: Mapping[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """The rows of each feature's ids, of any shape: float [*shape of the ids, dim].

    collection: an EmbeddingCollection; of one that is not sharded the tables themselves are called.
    Else all ids of a feature are one jagged row, so that features need not have as many ids as each
    other.
    """
    if type(collection) is EmbeddingCollection:
        return _rows_one_by_one(collection, ids)
    flat = [one.reshape(-1).long() for one in ids.values()]
    lengths = torch.tensor([len(one) for one in flat])
    found = collection(KeyedJaggedTensor(keys=list(ids), values=torch.cat(flat), lengths=lengths))
    return {
        name: found[name].values().reshape(*one.shape, -1 if one.numel() else _dim(collection))
        for name, one in ids.items()
    }


def look_up_bags(collection: nn.Module, bags: Mapping[str, Bag]) -> Dict[str, torch.Tensor]:
    """The pooled rows of each feature's bags: float [bags, dim].

    collection: an EmbeddingBagCollection. A bag is (ids, segments), or with weights
    (ids, segments, weights), None for weights of 1. There are as many bags as the last segment
    says, as TensorFlow's SparseSegment ops have it; one without ids gives zeros.
    """
    if type(collection) is EmbeddingBagCollection:
        return _bags_one_by_one(collection, bags)
    counts = {name: _count(bag[1]) for name, bag in bags.items()}
    most = max(counts.values(), default=0)
    lengths = [torch.bincount(_given(bag[1]), minlength=most) for bag in bags.values()]
    ids = [_given(bag[0]).reshape(-1).long() for bag in bags.values()]
    weighted = any(len(bag) > 2 for bag in bags.values())
    features = KeyedJaggedTensor(
        keys=list(bags),
        values=torch.cat(ids),
        lengths=torch.cat(lengths),
        weights=torch.cat([_weights(bag) for bag in bags.values()]) if weighted else None,
    )
    pooled = collection(features)
    return {name: pooled[name][: counts[name]] for name in bags}


def _rows_one_by_one(
    collection: EmbeddingCollection, ids: Mapping[str, torch.Tensor]
) -> Dict[str, torch.Tensor]:
    """`look_up` of a collection that is not sharded, by its own tables: a KeyedJaggedTensor costs
    as much as the look-ups, on a CPU, and holds the number of ids fast in an exported program."""
    configs = collection.embedding_configs()
    tables = {name: config.name for config in configs for name in config.feature_names}
    return {name: collection.embeddings[tables[name]](one.long()) for name, one in ids.items()}


def _bags_one_by_one(
    collection: EmbeddingBagCollection, bags: Mapping[str, Bag]
) -> Dict[str, torch.Tensor]:
    """`look_up_bags` of a collection that is not sharded, as `_rows_one_by_one`."""
    found: Dict[str, torch.Tensor] = {}
    for config in collection.embedding_bag_configs():
        table = collection.embedding_bags[config.name]
        for name in config.feature_names:
            ids, segments = _given(bags[name][0]).reshape(-1).long(), _given(bags[name][1])
            bounds = nn.functional.pad(torch.bincount(segments).cumsum(0), (1, 0))
            weights = _weights(bags[name]) if collection.is_weighted() else None
            found[name] = table(ids, bounds, weights)
    return found


def bag_sizes(segments: torch.Tensor) -> torch.Tensor:
    """The ids in each bag, at least 1: float [bags, 1]."""
    return torch.bincount(segments).clamp(min=1).float().unsqueeze(1)


def _count(segments: Optional[torch.Tensor]) -> int:
    segments = _given(segments)
    return int(segments[-1]) + 1 if len(segments) else 0


def _weights(bag: Bag) -> torch.Tensor:
    if len(bag) < 3 or bag[2] is None:
        return torch.ones(len(_given(bag[0])))
    return _given(bag[2]).reshape(-1)


def _given(tensor: Optional[torch.Tensor]) -> torch.Tensor:
    assert tensor is not None
    return tensor


def _dim(collection: nn.Module) -> int:
    dim: Any = collection._embedding_dim  # of a sharded one, whose parameters may be elsewhere
    return int(dim)
