"""HSTU, the tower of generative recommenders: in plain torch, and on GPUs by kernels of its own.

    tower = Hstu(dim=64, heads=2, layers=2, length=200, buckets=64)
    states = tower(vectors, packed)       # [T, dim], each from the items up to its own

A layer, for the tokens X [n, dim] of one sequence (Zhai et al. 2024, "Actions Speak Louder than
Words", equations 1 to 3):

    U, V, Q, K = split(silu(f1(norm(X))))
    A[i, j]    = silu(Q[i] K[j] + position[i - j] + time[bucket(t[i + 1] - t[j])]) / N    for j <= i
    Y          = X + f2(norm(A V) * U)

f1, f2 are linear; A is of each head; N is the longest sequence of the configuration. There is no
softmax, so that how often something occurred counts. t[i + 1] is when the answer is asked for.
The norms' epsilon is the authors', 1e-6. A V begins with a variance of 1e-8, so that the epsilon
scales attention initially.

Where Triton is there, a GPU computes A V without A in memory (`migrate.sequences.fused`).
"""

from __future__ import annotations

import functools
import importlib.util
from typing import TYPE_CHECKING, Union

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from migrate.sequences.pairs import InBlocks, Pairs
from migrate.sequences.tokens import Tokens
from migrate.sequences.tower import Tower

if TYPE_CHECKING:
    from migrate.sequences.fused.attention import Fused


_EPSILON = 1e-6


class Hstu(Tower):
    """The tower of generative recommenders (Zhai et al. 2024); the module has its formula.

    Args:
        dim: of the vectors.
        heads: the number of attention heads that share `dim`.
        layers: how many.
        length: of the longest sequence.
        buckets: for ages; 0: times have no influence.
        dropout: the share of values that is dropped in training.

    Raises:
        UsageError: the heads cannot share `dim`.

    Examples:
        >>> from migrate.sequences import Hstu, Packed
        >>> tower = Hstu(dim=8, heads=2, layers=1, length=20, buckets=4)
        >>> tower(torch.randn(3, 8), Packed.of([[3, 8], [4]], times=[[60, 90], [0]])).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        layers: int,
        length: int,
        buckets: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(dim, heads, length, buckets, dropout, _EPSILON)
        self.layers = nn.ModuleList(
            HstuLayer(dim, heads, length, buckets, dropout) for _ in range(layers)
        )

    def among(self, tokens: Tokens, vectors: Tensor) -> Union[InBlocks, Fused]:
        """The tokens as they are for the kernels, else in blocks."""
        if not has_kernels(vectors):
            return InBlocks(tokens, self.buckets)
        from migrate.sequences.fused.attention import Fused

        return Fused(tokens, self.buckets > 0)


class HstuLayer(nn.Module):
    """A layer; the module docstring has its formula."""

    def __init__(self, dim: int, heads: int, length: int, buckets: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.length, self.dropout = heads, length, dropout
        self.norm, self.gate_norm = (nn.LayerNorm(dim, _EPSILON) for _ in range(2))
        self.inward, self.outward = nn.Linear(dim, 4 * dim), nn.Linear(dim, dim)
        nn.init.normal_(self.inward.weight, std=0.02)
        nn.init.xavier_uniform_(self.outward.weight)
        self.bias = RelativeBias(length, buckets)

    def forward(self, tokens: Tensor, among: Union[InBlocks, Fused]) -> Tensor:
        """The tokens after the layer: [P, dim] for [P, dim]."""
        gate, rest = F.silu(self.inward(self.norm(tokens))).tensor_split([tokens.shape[1]], 1)
        parts = rest.unflatten(1, (3, self.heads, -1))  # value, query, key
        if isinstance(among, InBlocks):
            found = []
            for block, pair in among.each(parts):
                value, query, key = block.unbind(2)
                found.append(attention(query, key, value, self.bias(pair), pair.visible))
            attended = torch.cat([one.flatten(0, 1) for one in found])
        else:
            attended = among.attention(parts, self.bias.position, self.bias.time)
        averaged = attended.flatten(1) / self.length
        gated = F.dropout(self.gate_norm(averaged) * gate, self.dropout, self.training)
        return tokens + self.outward(gated)


class RelativeBias(nn.Module):
    """A learned number for each distance below `length`, and for each of `buckets` of ages."""

    def __init__(self, length: int, buckets: int) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.randn(length) * 0.02)
        self.time = nn.Parameter(torch.randn(buckets) * 0.02) if buckets else None

    def forward(self, pair: Pairs) -> Tensor:
        """The bias of each pair: [b or 1, n, n]."""
        bias = _looked_up(self.position, pair.distances)
        if self.time is None:
            return bias
        assert pair.ages is not None
        return bias + _looked_up(self.time, pair.ages)


def has_kernels(vectors: Tensor) -> bool:
    """Whether the kernels can compute with such vectors."""
    floats = (torch.float32, torch.float16, torch.bfloat16)
    return vectors.is_cuda and vectors.dtype in floats and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, visible: Tensor) -> Tensor:
    """The sum over j of silu(query[i] key[j] + bias[i, j]) value[j], for all j that i sees.

    query, key, value, and the result: [b, n, heads, size].

    Args:
        bias, visible: [b or 1, n, n].
    """
    query, key, value = query.transpose(1, 2), key.permute(0, 2, 3, 1), value.transpose(1, 2)
    weights = F.silu(query @ key + bias.unsqueeze(1)) * visible.unsqueeze(1)
    return (weights @ value).transpose(1, 2)


def _looked_up(numbers: Tensor, places: Tensor) -> Tensor:
    """numbers[places], by index_select: the gradient of indexing is slow."""
    return numbers.index_select(0, places.flatten()).view(places.shape)
