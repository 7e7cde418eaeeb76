"""SASRec, the tower with softmax attention, as the control of HSTU.

    tower = SasRec(dim=64, heads=2, layers=2, length=200)
    states = tower(vectors, packed)       # [T, dim], each from the items up to its own

A layer, for the tokens X [n, dim] of one sequence (Kang and McAuley 2018, with the norms before
what they feed):

    Q, K, V = split(f1(norm(X)))
    Y       = X + f2(softmax(Q[i] K[j] / sqrt(size)) V)    over j <= i, of each head
    Z       = Y + f4(relu(f3(norm(Y))))
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from migrate.sequences.pairs import InBlocks
from migrate.sequences.tower import Tower


class SasRec(Tower):
    """The tower with softmax attention (Kang and McAuley 2018). Times have no influence.

    Args:
        dim: of the vectors.
        heads: the number of attention heads that share `dim`.
        layers: how many.
        length: of the longest sequence.
        dropout: the share of values that is dropped in training.
        inner: the size of the feed-forward layer; `dim` by default.

    Raises:
        UsageError: the heads cannot share `dim`.

    Examples:
        >>> from migrate.sequences import Packed, SasRec
        >>> tower = SasRec(dim=8, heads=2, layers=1, length=20)
        >>> tower(torch.randn(3, 8), Packed.of([[3, 8], [4]])).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        layers: int,
        length: int,
        dropout: float = 0.0,
        inner: Optional[int] = None,
    ) -> None:
        super().__init__(dim, heads, length, 0, dropout)
        self.layers = nn.ModuleList(
            SasRecLayer(dim, heads, inner or dim, dropout) for _ in range(layers)
        )


class SasRecLayer(nn.Module):
    """A layer; the module docstring has its formula."""

    def __init__(self, dim: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm, self.inner_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.inward, self.outward = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.first, self.second = nn.Linear(dim, inner), nn.Linear(inner, dim)

    def forward(self, tokens: Tensor, among: InBlocks) -> Tensor:
        """The tokens after the layer: [P, dim] for [P, dim]."""
        found = []
        for block, pair in among.each(self.inward(self.norm(tokens))):
            query, key, value = block.unflatten(2, (3, self.heads, -1)).transpose(1, 3).unbind(2)
            # It drops out whenever it is given a share, in evaluation too.
            seen = F.scaled_dot_product_attention(
                query, key, value, pair.visible.unsqueeze(1), self.dropout * self.training
            )
            found.append(seen.transpose(1, 2).flatten(2).flatten(0, 1))
        tokens = tokens + self._dropped(self.outward(torch.cat(found)))
        inner = self._dropped(F.relu(self.first(self.inner_norm(tokens))))
        return tokens + self._dropped(self.second(inner))

    def _dropped(self, tokens: Tensor) -> Tensor:
        return F.dropout(tokens, self.dropout, self.training)
