"""The ids of a SparseTensor, or of a dense feature, as bags. It needs numba, which a model of one
id per row does not import."""

from __future__ import annotations

import math
from typing import Any, Iterator, List, Optional

import torch
from torch.nn import functional

from migrate.runtime.embeddings import Bags
from migrate.runtime.numeric.axes import integers
from migrate.runtime.numeric.gathering import places_of
from semisync.common.compiled import bags as compiled
from semisync.common.errors import BadInput


def sparse_bags(
    indices: torch.Tensor,
    ids: torch.Tensor,
    shape: Any,
    weights: Optional[torch.Tensor] = None,
    positive: bool = False,
    default: Optional[int] = None,
) -> Bags:
    """The bags of safe_embedding_lookup_sparse for a SparseTensor of ids: one per index of all axes
    but the last.

    Negative ids are left out. A bag without ids has the id 0, of weight 1, as in TensorFlow, which
    gives that row a gradient of 0; the result of the bag is 0.

    Args:
        weights: one per id.
        positive: whether ids without a positive weight are left out.
        default: the id of a bag without ids, whose result is then that id's row.

    Raises:
        BadInput: an index is outside of the shape, or there are not as many weights as ids.
    """
    sizes = integers(shape)[:-1]
    rows = indices[:, 0] if len(sizes) == 1 else places_of(indices[:, :-1], sizes)
    if weights is None:
        kept, bounds, empty = _filled(rows, ids, sizes, shape)
        if default is None:
            return Bags(kept, bounds, None, empty)
        # `_filled` puts one placeholder at the start of each bag without ids.
        kept[bounds[:-1][empty]] = default
        return Bags(kept, bounds)
    if len(weights) != len(ids):
        raise BadInput(f"a sparse tensor of {len(ids)} ids has {len(weights)} weights")
    # Not `weights <= 0`: TensorFlow keeps those greater than 0, so a NaN goes (embedding_ops.py,
    # _prune_invalid_weights).
    left_out = (ids < 0) | ~(weights > 0) if positive else ids < 0
    places = torch.arange(len(ids), device=ids.device).masked_fill(left_out, -1)
    kept, bounds, empty = _filled(rows, places, sizes, shape)
    kept[bounds[:-1][empty]] = len(ids)  # the placeholder for none
    whole = functional.pad(ids.long(), (0, 1), value=default or 0)[kept]
    of_whole = functional.pad(weights.float(), (0, 1), value=1.0)[kept]
    return Bags(whole, bounds, of_whole, empty if default is None else None)


def present_bags(
    ids: torch.Tensor,
    there: Optional[torch.Tensor] = None,
    weights: Optional[torch.Tensor] = None,
    positive: bool = False,
    default: Optional[int] = None,
) -> Bags:
    """`sparse_bags` for a dense feature.

    Args:
        ids: of the present values, one row after the other.
        there: bool [rows, values]: which are present; None: all, and ids have that shape.
    """
    if there is None:
        there = torch.ones_like(ids, dtype=torch.bool)
    return sparse_bags(there.nonzero(), ids, there.shape, weights, positive, default)


def _filled(
    rows: torch.Tensor, values: torch.Tensor, sizes: List[int], shape: Any
) -> Iterator[torch.Tensor]:
    """The non-negative values of each row, or one 0; the starts of rows; which rows have none."""
    arrays = (one.reshape(-1).long().cpu().contiguous().numpy() for one in (rows, values))
    *found, inside = compiled.filled(*arrays, math.prod(sizes))
    if not inside:
        raise BadInput(f"a sparse tensor has an index outside of its shape {integers(shape)}")
    return (torch.from_numpy(one).to(values.device) for one in found)
