"""Sums over bags of rows, and their gradient.

For the gradient torch's embedding_bag sorts the places of its rows, which costs ten times as much
as the sum itself.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy
import torch
from torch import Tensor
from torch.nn import functional

from semisync.common.compiled import bags


def pooled(rows: Tensor, places: Tensor, bounds: Tensor, weights: Optional[Tensor]) -> Tensor:
    """The weighted sum of each bag: [bags, dim].

    Args:
        rows: float32 [n, dim].
        places: of each id in `rows`, int64 [ids].
        bounds: int64 [bags + 1], where each bag's ids begin.
        weights: float32 [ids], 1 each without them.
    """
    found: Tensor = _Sum.apply(rows, places, bounds, weights)
    return found


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, places: Tensor, bounds: Tensor, weights: Optional[Tensor]
    ) -> Tensor:
        ctx.save_for_backward(rows, places, bounds, weights)
        return functional.embedding_bag(
            places,
            rows,
            bounds,
            mode="sum",
            per_sample_weights=weights,
            include_last_offset=True,
        )

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tuple[Optional[Tensor], ...]:
        rows, places, bounds, weights = ctx.saved_tensors
        grad = grads[0].contiguous()
        each = torch.ones(len(places)) if weights is None else weights.detach()
        out = torch.zeros_like(rows)
        bags.spread(*map(_array, (grad, bounds, places, each, out)))
        of_weights = None
        if ctx.needs_input_grad[3]:
            bag = torch.repeat_interleave(torch.arange(len(grad)), bounds.diff())
            of_weights = (grad[bag] * rows[places]).sum(1)
        return out, None, None, of_weights


def taken(rows: Tensor, places: Tensor) -> Tensor:
    """The row at each place: [ids, dim]."""
    found: Tensor = _Rows.apply(rows, places)
    return found


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor) -> Tensor:
        ctx.count = len(rows)
        ctx.save_for_backward(places)
        return rows.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return summed(grads[0], places, ctx.count), None


def summed(rows: Tensor, places: Tensor, count: int) -> Tensor:
    """The sum of the rows of each place: [count, dim], in the order of the rows."""
    out = torch.zeros(count, rows.shape[1], dtype=rows.dtype)
    bags.add_rows(*map(_array, (rows, places, out)))
    return out


def _array(tensor: Tensor) -> numpy.ndarray:
    return tensor.detach().contiguous().numpy()
