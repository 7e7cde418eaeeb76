"""Attention's pairs: the tokens that a token sees, and their distances.

A tower asks once per batch, and its layers share the answer, block by block (`Blocks` of
`migrate.sequences.tokens`). Of a block of b sequences of n tokens, the one that looks is row i, the
one that it looks at column j.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from migrate.sequences.tokens import Tokens
from semisync.common.errors import BadInput

_STEP = 0.301  # of the logarithm, as the authors of HSTU have it: about that of 2 to the base 10


class Pairs(NamedTuple):
    """The pairs of one block.

    Attributes:
        visible: bool [b or 1, n, n], whether i sees j.
        distances: int64 [b or 1, n, n], of the places, at least 0.
        ages: int64 [b, n, n], the bucket of the time from j to when i is asked; None: no times.
    """

    visible: Tensor
    distances: Tensor
    ages: Optional[Tensor] = None


class InBlocks:
    """Tokens in the order of their blocks.

    Args:
        buckets: of ages; 0: times have no influence.
    """

    def __init__(self, tokens: Tokens, buckets: int) -> None:
        self._blocks, self._pairs = tokens.blocks, pairs(tokens, buckets)
        self.spread, self.gather = self._blocks.spread, self._blocks.gather

    def each(self, spread: Tensor) -> Iterator[Tuple[Tensor, Pairs]]:
        """Each block [sequences, length, ...] of a spread tensor, with its pairs."""
        return zip(self._blocks.split(spread), self._pairs)


def pairs(tokens: Tokens, buckets: int = 0) -> List[Pairs]:
    """The pairs of each block.

    Args:
        buckets: the number of those for ages; 0: no ages.

    Raises:
        BadInput: ages are wanted of a batch without times.
    """
    found = _places(tokens)
    check_times(tokens, buckets > 0)
    if not buckets:
        return found
    assert tokens.times is not None and tokens.asked is not None
    times, asked = _by_block(tokens, tokens.times), _by_block(tokens, tokens.asked)
    return [
        pair._replace(ages=bucket(later.unsqueeze(2) - earlier.unsqueeze(1), buckets))
        for pair, later, earlier in zip(found, asked, times)
    ]


def check_times(tokens: Tokens, wanted: bool) -> None:
    """Raises BadInput if times are wanted of a batch without."""
    if wanted and tokens.times is None:
        raise BadInput("the model has a bias by time, and the batch has no times")


def bucket(ages: Tensor, buckets: int) -> Tensor:
    """Bucket of each age, in any unit: floor(ln(max(1, |age|)) / 0.301), at most buckets - 1."""
    logs = ages.abs().clamp(min=1).float().log() / _STEP
    return logs.long().clamp(max=buckets - 1)


def _places(tokens: Tokens) -> List[Pairs]:
    orders = [
        torch.arange(length, device=tokens.places.device).unsqueeze(0)
        for _, length in tokens.blocks.shapes
    ]
    if tokens.sees is None:
        return [_pairs(order, order.unsqueeze(2) >= order.unsqueeze(1)) for order in orders]
    found = []
    parts = (_by_block(tokens, part) for part in (tokens.places, *tokens.sees))
    for order, places, known, event in zip(orders, *parts):
        row, column = order.unsqueeze(2), order.unsqueeze(1)
        own = (column >= event.unsqueeze(2)) & (column <= row)
        found.append(_pairs(places, (column < known.unsqueeze(2)) | own))
    return found


def _pairs(places: Tensor, visible: Tensor) -> Pairs:
    return Pairs(visible, (places.unsqueeze(2) - places.unsqueeze(1)).clamp(min=0))


def _by_block(tokens: Tokens, part: Tensor) -> List[Tensor]:
    return tokens.blocks.split(tokens.blocks.spread(part))
