"""Rows of a table that no TorchRec collection holds: of one axis, or of more than two.

Where an optimizer moves only the rows that a batch looked up, it must know them: the gradient of a
table marked `table.sparse_gradient = True` is sparse, [looked up rows, ...], not coalesced, as
TensorFlow's IndexedSlices. `torch.nn.Embedding(sparse=True)` is the same for two axes. What
`table.looked_up` is, where it is set, is called with the indices and what was found.
"""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor


def rows(table: Tensor, indices: Tensor) -> Tensor:
    """The rows of table, [n, ...], at indices of any shape: [*indices.shape, ...]."""
    if getattr(table, "sparse_gradient", False) and torch.is_grad_enabled():
        found = _Rows.apply(table, indices)
    else:
        found = table.index_select(0, indices.reshape(-1))
    found = found.reshape(*indices.shape, *table.shape[1:])
    listener = getattr(table, "looked_up", None)
    if listener is not None:
        listener(indices, found)
    return found


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, indices: Tensor) -> Tensor:
        flat = indices.reshape(-1)
        ctx.shape = table.shape
        ctx.save_for_backward(flat)
        return table.index_select(0, flat)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tuple[Tensor, None]:
        (flat,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(
            flat.long().unsqueeze(0), grads[0], ctx.shape, check_invariants=False
        ), None
