"""HSTU's block, and a tower of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from migrate.hstu.attention import RelativeBias, attention


class Block(nn.Module):
    """[batch, n, dim] and times [batch, n] to [batch, n, dim]; n is at most `length`."""

    def __init__(
        self, dim: int, heads: int, length: int, buckets: int = 64, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"dim is {dim}, which {heads} heads cannot share")
        self.heads, self.length, self.dropout = heads, length, dropout
        self.norm, self.gate_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.inward, self.outward = nn.Linear(dim, 4 * dim), nn.Linear(dim, dim)
        self.bias = RelativeBias(length, buckets)

    def forward(self, tokens: Tensor, times: Tensor) -> Tensor:
        """As the package says."""
        mixed = F.silu(self.inward(self.norm(tokens)))
        gate, value, query, key = mixed.chunk(4, -1)
        found = attention(
            self._by_head(query),
            self._by_head(key),
            self._by_head(value),
            self.bias(times),
            self.length,
        )
        found = found.transpose(1, 2).flatten(2)
        more = self.outward(self.gate_norm(found) * gate)
        return tokens + F.dropout(more, self.dropout, self.training)

    def _by_head(self, mixed: Tensor) -> Tensor:
        """[batch, heads, n, dim of a head]"""
        return mixed.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Hstu(nn.Module):
    """Blocks one after the other, and a norm."""

    def __init__(
        self,
        dim: int,
        heads: int,
        blocks: int,
        length: int,
        buckets: int = 64,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(dim, heads, length, buckets, dropout) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens: Tensor, times: Tensor) -> Tensor:
        """[batch, n, dim] and times [batch, n] to [batch, n, dim]."""
        for block in self.blocks:
            tokens = block(tokens, times)
        return torch.as_tensor(self.norm(tokens))
