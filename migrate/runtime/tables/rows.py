"""Rows of a table that no TorchRec collection holds: of one axis, or of more than two.

An optimizer that moves only the rows that a batch looked up must know them: the gradient of a table
marked `table.sparse_gradient = True` is sparse, [looked up rows, ...], not coalesced, as
TensorFlow's IndexedSlices. `torch.nn.Embedding(sparse=True)` is the same for two axes. The function
`table.looked_up`, if it is set, is called with the indices and the rows.
"""

from __future__ import annotations

from typing import Any, Sequence, Tuple

import torch
from torch import Tensor

from semisync.common.errors import BadInput


def rows(table: Tensor, indices: Tensor) -> Tensor:
    """The rows of table, [n, ...], at indices of any shape: [*indices.shape, ...]."""
    try:
        if getattr(table, "sparse_gradient", False) and torch.is_grad_enabled():
            found = _Rows.apply(table, indices)
        else:
            found = table.index_select(0, indices.reshape(-1))
    except (IndexError, RuntimeError):
        # Only after a failure: a check of every batch would cost a pass over its ids.
        refuse_strays(indices, len(table))
        raise
    return _reported(table, indices, found)


def refuse_strays(ids: Tensor, rows: int, table: str = "") -> None:
    """Raises BadInput for an id that is no row of its table: torch's own error names neither."""
    strays = ids[(ids < 0) | (ids >= rows)]
    if strays.numel():
        named = f"the table {table!r}, which has the" if table else "its table, which has the"
        raise BadInput(
            f"the id {int(strays[0])} is no row of {named} rows 0 to {rows - 1:,}: TensorFlow ends "
            "there; leave such rows of the data out, or give the data that the job reads"
        )


def rows_that_grow(table: Tensor, indices: Tensor) -> Tensor:
    """`rows` of a parameter that may grow before its gradients arrive: torch itself requires that a
    gradient has the parameter's size at the look-up, and that all look-ups agree in it."""
    flat = indices.reshape(-1)
    found = table.detach().index_select(0, flat) if len(flat) else table.detach()[:0]
    if table.requires_grad and torch.is_grad_enabled():
        # The empty tensor has autograd call `backward`; the list hides the table, whose gradient's
        # size autograd would check.
        found = _GrowingRows.apply(torch.empty(0, requires_grad=True), found, [table], indices)
    return _reported(table, indices, found)


def _reported(table: Tensor, indices: Tensor, found: Tensor) -> Tensor:
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


class _GrowingRows(torch.autograd.Function):
    """The look-up of `rows_that_grow`; adds to the table's `grad` itself, at its current size."""

    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, found: Tensor, table: Sequence[Tensor], indices: Tensor
    ) -> Tensor:
        ctx.table = table[0]
        ctx.save_for_backward(indices.reshape(-1))
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tuple[None, None, None, None]:
        (flat,), table = ctx.saved_tensors, ctx.table
        where, values = flat.long().unsqueeze(0), grads[0]
        if not getattr(table, "sparse_gradient", False):
            grad = torch.zeros_like(table).index_add_(0, where[0], values)
            if table.grad is not None:
                # An earlier gradient may be from before the table grew.
                grad[: len(table.grad)] += table.grad
        else:
            if table.grad is not None:
                where = torch.cat([table.grad._indices(), where], 1)
                values = torch.cat([table.grad._values(), values])
            grad = torch.sparse_coo_tensor(where, values, table.shape, check_invariants=False)
        table.grad = grad
        return None, None, None, None
