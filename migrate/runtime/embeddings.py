"""Calls of TorchRec's collections with the inputs of TensorFlow's look-ups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional

import torch
from torch import nn
from torch.nn import functional
from torchrec import EmbeddingBagCollection, EmbeddingCollection, KeyedJaggedTensor

from migrate.runtime.tables.rows import refuse_strays


@dataclass(frozen=True)
class Bags:
    """The ids of bags, one bag after the other.

    Attributes:
        ids: int64 [n].
        bounds: int64 [bags + 1]; bag k has the ids from bounds[k] up to bounds[k + 1].
        weights: float [n]; None: 1 each.
        empty: bool [bags]: whether a bag has no id but a placeholder, so that its result is 0;
            None: no bag is empty.
        places: int64 [n], after `distinct`: the position in `ids` of each original id.
    """

    ids: torch.Tensor
    bounds: torch.Tensor
    weights: Optional[torch.Tensor] = None
    empty: Optional[torch.Tensor] = None
    places: Optional[torch.Tensor] = None

    def distinct(self) -> Bags:
        """The bags with each id once, for rows that are changed before they are pooled."""
        ids, places = torch.unique(self.ids, return_inverse=True)
        return replace(self, ids=ids, places=places)

    def pooled(self, rows: torch.Tensor) -> torch.Tensor:
        """The weighted sums of the rows of `ids`: float [bags, dim]; 0 for a bag without ids."""
        if self.places is not None:
            rows = rows.index_select(0, self.places)
        if self.weights is not None:
            rows = rows * self.weights.unsqueeze(1)
        return _without_empty(self._sums(rows), self.empty)

    def lengths(self) -> torch.Tensor:
        """The ids in each bag: int64 [bags]."""
        return self.bounds[1:] - self.bounds[:-1]

    def sizes(self) -> torch.Tensor:
        """The sum of the weights in each bag, or its number of ids, at least 1; float [bags, 1]."""
        if self.weights is None:
            return self.lengths().clamp(min=1).float().unsqueeze(1)
        return self._sums(self.weights.unsqueeze(1))

    def norms(self) -> torch.Tensor:
        """The divisor of sqrtn, as `sizes`: the root of the sum of the squares of the weights."""
        if self.weights is None:
            return self.sizes().sqrt()
        return self._sums(self.weights.square().unsqueeze(1)).sqrt()

    def _sums(self, values: torch.Tensor) -> torch.Tensor:
        places = torch.arange(values.shape[0], device=values.device)
        # right=True passes over bags without ids: their end is not above the place.
        bag = torch.searchsorted(self.bounds[1:], places, right=True)
        sums = values.new_zeros(self.bounds.shape[0] - 1, values.shape[1])
        return sums.index_add(0, bag, values)


def bags(ids: torch.Tensor, segments: torch.Tensor, weights: Optional[torch.Tensor] = None) -> Bags:
    """The inputs of SparseSegmentSum and its like as bags.

    The last segment determines the number of bags.

    Args:
        segments: [n], ascending.
    """
    bounds = functional.pad(torch.bincount(segments).cumsum(0), (1, 0))
    return Bags(ids.reshape(-1).long(), bounds, None if weights is None else weights.reshape(-1))


def look_up(collection: nn.Module, ids: Mapping[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """The rows of each feature's ids, of any shape: float [*shape of the ids, dim].

    In a sharded collection all ids of a feature are one jagged row, so that features may have
    different numbers of ids.

    Args:
        collection: an EmbeddingCollection; if it is not sharded its tables are called directly.
    """
    if type(collection) is EmbeddingCollection:
        return _rows_one_by_one(collection, ids)
    flat = [one.reshape(-1).long() for one in ids.values()]
    lengths = torch.tensor([len(one) for one in flat])
    found = collection(KeyedJaggedTensor(keys=list(ids), values=torch.cat(flat), lengths=lengths))
    return {
        # torch infers no size of a tensor without elements.
        name: found[name].values().reshape(*one.shape, -1 if one.numel() else _dim(collection))
        for name, one in ids.items()
    }


def look_up_bags(collection: nn.Module, given: Mapping[str, Bags]) -> Dict[str, torch.Tensor]:
    """The pooled rows of each feature's bags: float [bags, dim]; 0 for a bag without ids.

    Args:
        collection: an EmbeddingBagCollection; if it is not sharded its tables are called directly.
    """
    if type(collection) is EmbeddingBagCollection:
        found = _bags_one_by_one(collection, given)
    else:
        found = _bags_together(collection, given)
    return {name: _without_empty(one, given[name].empty) for name, one in found.items()}


def _rows_one_by_one(
    collection: EmbeddingCollection, ids: Mapping[str, torch.Tensor]
) -> Dict[str, torch.Tensor]:
    """`look_up` of a collection that is not sharded, by its own tables: a KeyedJaggedTensor costs
    as much as the look-ups, on a CPU, and fixes the number of ids in an exported program."""
    configs = {
        name: config for config in collection.embedding_configs() for name in config.feature_names
    }
    tables = collection.embeddings
    return {name: _called(configs[name], tables, one.long()) for name, one in ids.items()}


def _bags_one_by_one(
    collection: EmbeddingBagCollection, given: Mapping[str, Bags]
) -> Dict[str, torch.Tensor]:
    """`look_up_bags` of a collection that is not sharded, as `_rows_one_by_one`."""
    found: Dict[str, torch.Tensor] = {}
    weighted = collection.is_weighted()
    for config in collection.embedding_bag_configs():
        for name in config.feature_names:
            one = given[name]
            more = one.bounds, _weights(one) if weighted else None
            found[name] = _called(config, collection.embedding_bags, one.ids, *more)
    return found


def _called(config: Any, tables: nn.ModuleDict, ids: torch.Tensor, *more: Any) -> torch.Tensor:
    """The result of a table for ids.

    Raises:
        BadInput: an id is no row of the table.
    """
    try:
        return tables[config.name](ids, *more)
    # Of an id out of range, F.embedding raises the first and F.embedding_bag the second.
    except (IndexError, RuntimeError):
        refuse_strays(ids, config.num_embeddings, config.name)
        raise


def _bags_together(collection: nn.Module, given: Mapping[str, Bags]) -> Dict[str, torch.Tensor]:
    """`look_up_bags` of a sharded collection, whose features have the same number of bags."""
    lengths = {name: one.lengths() for name, one in given.items()}
    most = max(map(len, lengths.values()), default=0)
    weighted = any(one.weights is not None for one in given.values())
    features = KeyedJaggedTensor(
        keys=list(given),
        values=torch.cat([one.ids for one in given.values()]),
        # A KeyedJaggedTensor has one batch size for all features: empty bags make up the
        # difference.
        lengths=torch.cat([functional.pad(one, (0, most - len(one))) for one in lengths.values()]),
        weights=torch.cat([_weights(one) for one in given.values()]) if weighted else None,
    )
    pooled = collection(features)
    return {name: pooled[name][: len(one)] for name, one in lengths.items()}


def _without_empty(found: torch.Tensor, empty: Optional[torch.Tensor]) -> torch.Tensor:
    # Tracing cannot branch on the values of `empty`, so a compiled model fills unconditionally.
    if empty is None or not (torch.compiler.is_compiling() or empty.any()):
        return found
    return found.masked_fill(empty.unsqueeze(1), 0)


def _weights(one: Bags) -> torch.Tensor:
    if one.weights is None:
        return torch.ones_like(one.ids, dtype=torch.float32)
    return one.weights


def _dim(collection: nn.Module) -> int:
    dim: Any = collection._embedding_dim  # parameters of a sharded one may be elsewhere
    return int(dim)
