"""Ragged tensors: values, and the splits that divide them into rows, outermost first.

splits   [rows + 1]: row k has the values splits[k] ... splits[k + 1] - 1. Values may be Strings.
Source: tensorflow/core/kernels/ragged_*_op.cc
"""

from __future__ import annotations

import math
from typing import Any, List, Sequence, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.arrays import added_up, range_sizes
from migrate.runtime.numeric.axes import integers
from migrate.runtime.numeric.sparse import joined, like, taken
from semisync.common.errors import BadInput


def ragged_range(
    starts: Tensor, limits: Tensor, steps: Tensor, dtype: str = "int64"
) -> Tuple[Tensor, Tensor]:
    """(splits, values) of a range per row; a single start, limit or step applies to all."""
    starts, limits, steps = torch.broadcast_tensors(
        *(value.reshape(-1) for value in (starts, limits, steps))
    )
    counts = range_sizes(starts, limits, steps) if steps.all() else steps.new_tensor(-2)
    if (counts < -1).any():
        raise BadInput("a range has steps of 0, or no end")
    counts = counts.clamp(min=0)
    splits = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    rows, places = _places(splits)
    if starts.is_floating_point():
        values = starts.new_empty(len(rows))
        # Rows of about one length at a time, for they are filled up to the longest.
        lengths = counts.clamp(min=1).log2().long()
        for length in lengths.unique():
            of = lengths == length
            most = int(counts[of].max())
            filled = torch.cat([starts[of, None], steps[of, None].expand(-1, most)], 1)
            places = torch.arange(most, device=counts.device)
            values[of[rows]] = added_up(filled)[:, :most][places < counts[of, None]]
    else:
        values = starts[rows] + steps[rows] * places.to(steps.dtype)
    return splits.to(getattr(torch, dtype)), values


def ragged_gather(splits: Tensor, values: Any, indices: Tensor) -> Tuple[Tensor, Any]:
    """(splits, values) of the rows at `indices`, a vector; values: [n, ...]."""
    rows = len(splits) - 1
    if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < rows:
        raise BadInput(f"a row of a ragged tensor is outside of 0 to {rows - 1}")
    counts = (splits[1:] - splits[:-1])[indices.long()].long()
    found = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    owners, places = _places(found)
    return found.to(splits.dtype), values[splits[:-1][indices.long()][owners].long() + places]


def ragged_to_sparse(splits: Sequence[Tensor], values: Any) -> Tuple[Tensor, Any, Tensor]:
    """(indices, values, shape) of the same values as a sparse tensor."""
    columns, sizes = _columns(splits)
    rest = list(values.shape[1:])
    inner = math.prod(rest)
    index = torch.stack(columns, 1).repeat_interleave(inner, 0)
    for axis, size in enumerate(rest):
        step = math.prod(rest[axis + 1 :])
        place = torch.arange(len(index)) // step % size
        index = torch.cat([index, place.unsqueeze(1)], 1)
    return index, values.reshape([-1]), torch.tensor([*sizes, *rest])


def ragged_to_dense(
    shape: Any, values: Any, default: Any, parts: Sequence[Tensor], kinds: Sequence[str]
) -> Any:
    """A dense tensor of the rows, `default` where one is shorter than the longest.

    Args:
        shape: sizes to cut or fill to, -1 for the needed size.
        kinds: TensorFlow's name for the type of each part.
    """
    columns, sizes = _columns(_as_splits(parts, kinds))
    wanted = integers(shape)
    wanted += [-1] * (len(sizes) - len(wanted))  # a shape of -1 is not even known in its rank
    sizes = [size if one == -1 else one for one, size in zip(wanted, sizes)]
    kept = torch.ones(len(columns[0]), dtype=torch.bool)
    places = torch.zeros(len(columns[0]), dtype=torch.int64)
    for column, size in zip(columns, sizes):
        kept &= column < size
        places = places * size + column
    rest = list(values.shape[1:])
    numbers = torch.zeros(math.prod(sizes), dtype=torch.int64)
    # Position 0 of the pool is the default.
    numbers[places[kept]] = kept.nonzero().reshape(-1) + 1
    if not rest:
        pool = joined([like(values, default), values])
    else:
        other = torch.as_tensor(default, dtype=values.dtype).expand(1, *rest)
        pool = torch.cat([other, values])
    return taken(pool, numbers).reshape([*sizes, *rest])


def _as_splits(parts: Sequence[Tensor], kinds: Sequence[str]) -> List[Tensor]:
    """The splits of every level, also if a part has row numbers."""
    count, found = 0, []
    for part, kind in zip(parts, kinds):
        if kind == "FIRST_DIM_SIZE":
            count = int(part)
        elif kind == "ROW_SPLITS":
            found.append(part)
            count = int(part[-1])
        else:
            # Row numbers ascend: row k begins at the first one of k or more.
            found.append(torch.searchsorted(part, torch.arange(count + 1, dtype=part.dtype)))
            count = len(part)
    return found


def _columns(splits: Sequence[Tensor]) -> Tuple[List[Tensor], List[int]]:
    """The index of each value, an axis at a time, and the sizes of the axes."""
    columns = [torch.arange(len(splits[0]) - 1)]
    sizes = [len(splits[0]) - 1]
    for level in splits:
        rows, places = _places(level.long())
        columns = [column[rows] for column in columns] + [places]
        sizes.append(int((level[1:] - level[:-1]).max()) if len(level) > 1 else 0)
    return columns, sizes


def _places(splits: Tensor) -> Tuple[Tensor, Tensor]:
    """The row of each value, and its position in the row."""
    counts = splits[1:] - splits[:-1]
    rows = torch.arange(len(counts), device=splits.device).repeat_interleave(counts)
    return rows, torch.arange(len(rows), device=splits.device) - (splits[:-1] - splits[0])[rows]
