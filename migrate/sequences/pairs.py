"""What an item may know of those before it: which it sees, and how far back they lie.

A tower asks once per batch, and its layers share the answer, block by block (`migrate.sequences.
blocks`). Of a block of b sequences of n items, the one that looks is row i, the one that it looks
at column j.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import torch
from torch import Tensor

from migrate.sequences.packed import Packed
from semisync.common.errors import BadInput

_STEP = 0.301  # of the logarithm, as the authors of HSTU have it: about that of 2 to the base 10


class Pairs(NamedTuple):
    """visible    bool [b or 1, n, n]: j <= i, and j is not a candidate, or i itself
    distances  int64 [b or 1, n, n]: of the places, at least 0
    ages       int64 [b, n, n]: the bucket of the time from j to the item after i; None: no times
    """

    visible: Tensor
    distances: Tensor
    ages: Optional[Tensor] = None


def pairs(packed: Packed, buckets: int = 0) -> List[Pairs]:
    """Those of each block.

    Args:
        buckets: the number of those for ages; 0: no ages.

    Raises:
        BadInput: ages are wanted of a batch without times.
    """
    found = _places(packed)
    check_times(packed, buckets > 0)
    if not buckets:
        return found
    assert packed.times is not None
    times, asked = _by_block(packed, packed.times), _by_block(packed, packed.next_times())
    return [
        pair._replace(ages=bucket(later.unsqueeze(2) - earlier.unsqueeze(1), buckets))
        for pair, later, earlier in zip(found, asked, times)
    ]


def check_times(packed: Packed, wanted: bool) -> None:
    """Raises BadInput if times are wanted of a batch without."""
    if wanted and packed.times is None:
        raise BadInput("the model has a bias by time, and the batch has no times")


def bucket(ages: Tensor, buckets: int) -> Tensor:
    """That of each age, in any unit: floor(ln(max(1, |age|)) / 0.301), at most buckets - 1."""
    logs = ages.abs().clamp(min=1).float().log() / _STEP
    return logs.long().clamp(max=buckets - 1)


def _places(packed: Packed) -> List[Pairs]:
    found = []
    for _, length in packed.blocks.shapes:
        order = torch.arange(length, device=packed.items.device).unsqueeze(0)
        distances = order.unsqueeze(2) - order.unsqueeze(1)
        found.append(Pairs(distances >= 0, distances.clamp(min=0)))
    candidates = packed.candidates()
    if candidates is None:
        return found
    among = zip(found, _by_block(packed, candidates), _by_block(packed, packed.places()))
    for number, (pair, candidate, places) in enumerate(among):
        itself = torch.eye(candidate.shape[1], dtype=torch.bool, device=candidate.device)
        distances = places.unsqueeze(2) - places.unsqueeze(1)
        found[number] = Pairs(
            pair.visible & (~candidate.unsqueeze(1) | itself), distances.clamp(min=0)
        )
    return found


def _by_block(packed: Packed, part: Tensor) -> List[Tensor]:
    return packed.blocks.split(packed.blocks.spread(part))
