"""Sequences in blocks, with what an item of each may know of those before it."""

from __future__ import annotations

from typing import Iterator, Tuple

from torch import Tensor

from migrate.sequences.packed import Packed
from migrate.sequences.pairs import Pairs, pairs


class InBlocks:
    """A batch in the order of its blocks. buckets: of ages; 0: times have no influence."""

    def __init__(self, packed: Packed, buckets: int) -> None:
        self._blocks, self._pairs = packed.blocks, pairs(packed, buckets)
        self.spread, self.gather = self._blocks.spread, self._blocks.gather

    def each(self, spread: Tensor) -> Iterator[Tuple[Tensor, Pairs]]:
        """Each block [sequences, length, ...] of what is spread, with its pairs."""
        return zip(self._blocks.split(spread), self._pairs)
