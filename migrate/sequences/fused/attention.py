"""HSTU's attention by the kernels, with its gradients."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
import triton
from torch import Tensor

from migrate.sequences.fused import kernels
from migrate.sequences.pairs import check_times
from migrate.sequences.tokens import Tokens

_BLOCK = 32  # tokens of a program; on an H100 altogether faster than 64


class Fused:
    """A batch as it is, in the place of `migrate.sequences.pairs.InBlocks`.

    Args:
        timed: whether times have an influence.
    """

    def __init__(self, tokens: Tokens, timed: bool) -> None:
        check_times(tokens, timed)
        self.offsets, self.longest, self.places = (
            tokens.offsets,
            tokens.longest,
            tokens.places.int(),
        )
        self.sees = None if tokens.sees is None else [part.int() for part in tokens.sees]
        self.times = tokens.times if timed else None
        self.asked = tokens.asked if timed else None

    def spread(self, packed: Tensor) -> Tensor:
        """Tokens keep their order."""
        return packed

    def gather(self, spread: Tensor) -> Tensor:
        """The inverse of `spread`."""
        return spread

    def attention(self, tokens: Tensor, position: Tensor, time: Optional[Tensor]) -> Tensor:
        """As `migrate.sequences.hstu.attention`, [T, heads, size].

        Args:
            tokens: value, query and key of each, [T, 3, heads, size].
            position: [length].
            time: [buckets], or None.
        """
        # The kernels are given the distance of two tokens, and take the rest as contiguous.
        if tokens.stride()[1:] != tokens[:1].contiguous().stride()[1:]:
            tokens = tokens.contiguous()
        found: Tensor = _Attention.apply(tokens, position, time, self)
        return found


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        tokens: Tensor,
        position: Tensor,
        time: Optional[Tensor],
        batch: Fused,
    ) -> Tensor:
        context.save_for_backward(tokens, position, time)
        context.batch = batch
        count, _, heads, size = tokens.shape
        out = tokens.new_empty(count, heads, size)
        grid, given, compiled = _launch(tokens, position, time, batch)
        kernels.forward[grid(heads)](*given, out, **compiled)
        return out

    @staticmethod
    def backward(context: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        tokens, position, time = context.saved_tensors
        heads = tokens.shape[2]
        grid, given, compiled = _launch(tokens, position, time, context.batch)
        grad = grad.contiguous()
        of_tokens = torch.empty_like(tokens, memory_format=torch.contiguous_format)
        # Each of the two fills its parts of `of_tokens`: keys and values, then queries.
        kernels.backward_keys[grid(heads)](*given, grad, of_tokens, **compiled)
        kernels.backward_queries[grid(heads)](*given, grad, of_tokens, **compiled)
        of_position = torch.zeros_like(position, dtype=torch.float32)
        of_time = None if time is None else torch.zeros_like(time, dtype=torch.float32)
        # Without times the second one is not written.
        biases = of_position, of_position if of_time is None else of_time
        kernels.backward_biases[grid(1)](
            *given, grad, *biases, len(position), **compiled, num_warps=2
        )
        return of_tokens, of_position, of_time, None


def _launch(
    tokens: Tensor, position: Tensor, time: Optional[Tensor], batch: Fused
) -> Tuple[Any, Tuple[Any, ...], Any]:
    """(from the programs of a sequence to the grid, the first arguments, the constants)"""
    _, _, heads, size = tokens.shape
    # Triton's dot takes at least 16 in each dimension, and its ranges are powers of two.
    width = max(16, triton.next_power_of_2(size))
    blocks = triton.cdiv(batch.longest, _BLOCK)
    timed = time is not None and batch.times is not None
    given = (
        tokens,
        tokens.stride(0),
        batch.offsets,
        batch.places,
        # Where a constant below turns an argument off, any tensor stands in for it.
        batch.times if timed else tokens,
        batch.asked if timed else tokens,
        *(batch.sees or (tokens, tokens)),
        position,
        time if timed else position,
    )
    compiled = {
        "HEADS": heads,
        "SIZE": size,
        "WIDTH": width,
        "BLOCK": _BLOCK,
        "BUCKETS": len(time) if time is not None and timed else 0,
        "SEES": batch.sees is not None,
        "PRECISION": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3",
    }
    count = len(batch.offsets) - 1
    return lambda programs: (count * programs, blocks), given, compiled
