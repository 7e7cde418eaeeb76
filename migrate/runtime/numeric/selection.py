"""The final choice of a decoder or a detector: the best beams, and boxes that overlap no better
one.

Source: tensorflow/contrib/seq2seq/kernels/beam_search_ops.cc and
tensorflow/core/kernels/image/non_max_suppression_op.cc
"""

from __future__ import annotations

from typing import List, Tuple

import torch
from torch import Tensor


def gather_tree(ids: Tensor, parents: Tensor, lengths: Tensor, end: int) -> Tensor:
    """The beams of a search, each followed back from its last step, [steps, batch, beams].

    After its first `end` a beam is `end` throughout.

    Args:
        ids, parents: of each step, and the beam of the previous step that it continues.
        lengths: the steps of each search, [batch].
    """
    beams = torch.full_like(ids, end)
    here = torch.arange(ids.shape[2]).expand(ids.shape[1:])
    for step in range(len(ids) - 1, -1, -1):
        runs = (step < lengths)[:, None]
        beams[step] = torch.where(runs, ids[step].gather(1, here), beams[step])
        here = torch.where(runs, parents[step].gather(1, here), here)
    ended = (beams == end).cumsum(0) > 0
    return torch.where(ended, torch.full_like(beams, end), beams)


def non_max_suppression(
    boxes: Tensor, scores: Tensor, count: int, overlap: float, least: float = float("-inf")
) -> Tensor:
    """The indices, int32, of at most `count` boxes, the best first, of which no two overlap by more
    than `overlap`, their intersection over their union.

    Args:
        boxes: two opposite corners each, [n, 4].
        least: a score must be greater.
    """
    low = torch.minimum(boxes[:, :2], boxes[:, 2:])
    high = torch.maximum(boxes[:, :2], boxes[:, 2:])
    areas = (high - low).prod(1)
    order = scores.argsort(descending=True, stable=True)
    order = order[scores[order] > least]
    chosen: List[Tensor] = []
    while len(order) and len(chosen) < count:
        best, order = order[0], order[1:]
        chosen.append(best)
        sides = torch.minimum(high[best], high[order]) - torch.maximum(low[best], low[order])
        shared = sides.clamp(min=0).prod(1)
        part = shared / (areas[best] + areas[order] - shared)
        # TensorFlow takes the overlap with a box without area as 0.
        of_nothing = (areas[best] <= 0) | (areas[order] <= 0)
        order = order[of_nothing | (part <= overlap)]
    return torch.stack(chosen).int() if chosen else torch.empty(0, dtype=torch.int32)


def padded_suppression(chosen: Tensor, count: int, pad: bool) -> Tuple[Tensor, Tensor]:
    """(indices, their number, int32): `chosen`, padded with zeros to `count`."""
    missing = count - len(chosen) if pad else 0
    indices = torch.cat([chosen, chosen.new_zeros(missing)])
    return indices, torch.tensor(len(chosen), dtype=torch.int32)
