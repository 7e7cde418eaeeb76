"""The ids of a SparseTensor as bags; compiled, which a model of dense ids alone does without."""

from __future__ import annotations

import math
from typing import Any

import torch

from migrate.runtime.compiled import bags as compiled
from migrate.runtime.embeddings import Bags
from migrate.runtime.numeric.axes import integers
from migrate.runtime.numeric.gathering import places_of
from semisync.common.errors import BadInput


def sparse_bags(indices: torch.Tensor, ids: torch.Tensor, shape: Any) -> Bags:
    """What safe_embedding_lookup_sparse makes of a SparseTensor of ids: a bag for each place on all
    its axes but the last.

    Negative ids are left out. A bag without ids has the id 0, as in TensorFlow, which gives that
    row a gradient of 0; the result of the bag is 0.

    Raises:
        BadInput: an index outside of the shape.
    """
    sizes = integers(shape)[:-1]
    rows = indices[:, 0] if len(sizes) == 1 else places_of(indices[:, :-1], sizes)
    arrays = (one.reshape(-1).long().cpu().contiguous().numpy() for one in (rows, ids))
    kept, bounds, empty, inside = compiled.filled(*arrays, math.prod(sizes))
    if not inside:
        raise BadInput(f"a sparse tensor has an index outside of its shape {integers(shape)}")
    found = (torch.from_numpy(one).to(ids.device) for one in (kept, bounds, empty))
    return Bags(next(found), next(found), None, next(found))
