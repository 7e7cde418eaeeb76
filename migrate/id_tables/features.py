"""A look-up's input, as a table's ids and bags."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

import torch
from torch import Tensor

from migrate.id_tables import pooling
from migrate.id_tables.table import IdTable
from migrate.torchrec.weights import combiner_weights
from semisync.common.errors import UsageError


class Feature(NamedTuple):
    """The ids of a feature, flat.

    Attributes:
        ids: int64 [ids].
        bounds: int64 [bags + 1], where each bag starts; None without bags.
        weights: float32 [ids], or None.
        shape, device: of the ids as they were given.
    """

    ids: Tensor
    bounds: Optional[Tensor]
    weights: Optional[Tensor]
    shape: torch.Size
    device: torch.device


def given(features: Any, tables: Sequence[IdTable]) -> Dict[str, Feature]:
    """The features of `tables`, by name; raises UsageError for missing ones or other values.

    Args:
        features: a KeyedJaggedTensor, or by name (ids, offsets), (ids, offsets, weights) with
            offsets [bags + 1], or ids alone where the table does not pool.
    """
    by_name: Mapping[str, Any] = features.to_dict() if hasattr(features, "to_dict") else features
    found = {}
    for table in tables:
        for name in table.features:
            if name not in by_name:
                raise UsageError(
                    f"table {table.name!r} embeds the feature {name!r}, which is not among "
                    f"{sorted(by_name)}"
                )
            found[name] = _feature(name, by_name[name], table)
    return found


def _feature(name: str, value: Any, table: IdTable) -> Feature:
    if isinstance(value, Tensor):
        ids, bounds, weights = value, None, None
    elif isinstance(value, tuple):
        ids, bounds, weights = (*value, None)[:3]
    else:
        ids, bounds, weights = value.values(), value.offsets(), value.weights_or_none()
    if ids.dtype not in (torch.int64, torch.int32):
        raise UsageError(f"the ids of the feature {name!r} are {ids.dtype}, expected int64")
    flat = ids.detach().reshape(-1).long().cpu().contiguous()
    if bounds is not None:
        bounds = bounds.detach().long().cpu().contiguous()
    if table.pooling is not None and bounds is None:
        raise UsageError(
            f"the feature {name!r} has no offsets, by which table {table.name!r} pools"
        )
    if bounds is not None and not _bound(bounds, len(flat)):
        raise UsageError(
            f"the offsets of the feature {name!r} do not ascend from 0 to its {len(flat)} ids; "
            "there is one more than there are bags"
        )
    if weights is not None and weights.shape != flat.shape:
        raise UsageError(
            f"the feature {name!r} has {len(flat)} ids and weights of shape {list(weights.shape)}"
        )
    weights = None if weights is None or table.pooling is None else weights.float().cpu()
    return Feature(flat, bounds, weights, ids.shape, ids.device)


def _bound(bounds: Tensor, count: int) -> bool:
    if bounds.dim() != 1 or not len(bounds) or int(bounds[0]) or int(bounds[-1]) != count:
        return False
    return bool((bounds[1:] >= bounds[:-1]).all())


def vectors(
    table: IdTable, features: Mapping[str, Feature], rows: Tensor, places: Tensor
) -> Dict[str, Tensor]:
    """The look-up's result for each feature of a table: pooled [bags, dim], else [*shape of the
    ids, dim]; on the device of its ids.

    Args:
        rows: float32 [n, dim].
        places: in `rows`, of all ids of its features one after the other.
    """
    own = [features[name] for name in table.features]
    sizes = [len(one.ids) for one in own]
    if table.pooling is None:
        parts = pooling.taken(rows, places).split(sizes)
        shaped = [part.reshape(*one.shape, table.dim) for part, one in zip(parts, own)]
        return {name: part.to(features[name].device) for name, part in zip(table.features, shaped)}
    lengths = torch.cat([one.bounds.diff() for one in own if one.bounds is not None])
    bounds = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    weights = _weights(table, own, lengths)
    sums = pooling.pooled(rows, places, bounds, weights)
    if weights is None and table.pooling != "sum":
        # A bag without ids keeps its sum, 0.
        counts = lengths.clamp(min=1).unsqueeze(1).float()
        sums = sums / (counts if table.pooling == "mean" else counts.sqrt())
    bags = [len(one.bounds) - 1 for one in own if one.bounds is not None]
    parts = sums.split(bags)
    return {name: part.to(features[name].device) for name, part in zip(table.features, parts)}


def _weights(table: IdTable, own: List[Feature], lengths: Tensor) -> Optional[Tensor]:
    if all(one.weights is None for one in own):
        return None
    every = [torch.ones(len(f.ids)) if f.weights is None else f.weights for f in own]
    assert table.pooling is not None
    return combiner_weights(table.pooling, lengths, torch.cat(every))
