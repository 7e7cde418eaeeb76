"""Shared by all towers: vectors of items come in, with their places, and go from layer to layer.

A layer takes tokens, [P, dim], and the layout of their sequences, and returns tokens.
Work on each token alone is done once for all of them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from migrate.sequences.packed import Packed
from migrate.sequences.pairs import InBlocks
from migrate.sequences.tokens import Tokens
from semisync.common.errors import BadInput, UsageError


class Tower(nn.Module):
    """[T, dim], the vectors of a batch's items, to [T, dim], each from the items up to its own.

    The input of the first layer is sqrt(dim) times the vector, plus a learned one for its place.

    Args:
        length: of the longest sequence.
        buckets: for ages; 0: times have no influence.
        epsilon: of the norm after the last layer.
    """

    layers: nn.ModuleList

    def __init__(
        self,
        dim: int,
        heads: int,
        length: int,
        buckets: int,
        dropout: float,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        if dim % heads:
            raise UsageError(f"{heads} heads cannot share a dim of {dim}")
        self.dim, self.length, self.buckets, self.dropout = dim, length, buckets, dropout
        self.places = nn.Parameter(torch.randn(length, dim) / math.sqrt(dim))
        self.norm = nn.LayerNorm(dim, epsilon)

    def forward(self, vectors: Tensor, packed: Packed) -> Tensor:
        """The states of a batch's items, [T, dim].

        Raises:
            BadInput: a sequence is longer than `length`, or a batch lacks the times it needs.
        """
        return self.states(vectors, packed.tokens)

    def states(self, vectors: Tensor, tokens: Tokens) -> Tensor:
        """The states of any tokens, [T, dim]; errors as of `forward`."""
        if tokens.longest > self.length:
            raise BadInput(
                f"a sequence has {tokens.longest} tokens, and the model's longest {self.length}: "
                "keep the last ones"
            )
        among = self.among(tokens, vectors)
        placed = vectors * math.sqrt(self.dim) + self.places[tokens.places]
        spread = among.spread(F.dropout(placed, self.dropout, self.training))
        for layer in self.layers:
            spread = layer(spread, among)
        return torch.as_tensor(self.norm(among.gather(spread)))

    def among(self, tokens: Tokens, vectors: Tensor) -> Any:
        """The layout of the sequences for all layers, which spreads tokens and gathers them."""
        return InBlocks(tokens, self.buckets)

    @property
    def device(self) -> torch.device:
        """The device of the tower.

        Returns:
            A torch.device.
        """
        return self.places.device
