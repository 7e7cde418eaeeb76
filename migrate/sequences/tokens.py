"""A tower's data on the tokens of a batch, beside their vectors: T tokens of B sequences."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from migrate.sequences.blocks import Blocks


class Sees(NamedTuple):
    """A token sees the first `known` ones of its sequence, and those from `event` on to itself.

    Attributes:
        known: int64 [T], at most `event`.
        event: int64 [T], where in its sequence the event begins that it is of.
    """

    known: Tensor
    event: Tensor


@dataclasses.dataclass(frozen=True)
class Tokens:
    """The tokens of a batch.

    Args:
        offsets: int64 [B + 1], of the sequences.
        places: int64 [T], for learned vectors of places and biases of distances; those of n tokens
            of a sequence in a row are less than n apart.
        times: [T]; None: unknown.
        asked: [T], when the item at each token is asked for; None: unknown.
        sees: each one's view; None: all of its sequence up to itself, whose places are 0, 1, 2, ...
    """

    offsets: Tensor
    places: Tensor
    times: Optional[Tensor] = None
    asked: Optional[Tensor] = None
    sees: Optional[Sees] = None

    @functools.cached_property
    def longest(self) -> int:
        """How many tokens the longest sequence has."""
        return int(self.offsets.diff().max())

    @functools.cached_property
    def blocks(self) -> Blocks:
        """How sequences of about one length stand side by side."""
        return Blocks(self.offsets)


def numbered(offsets: Tensor) -> Tensor:
    """The number of each token in its sequence, from 0: int64 [T]."""
    starts = offsets[:-1].repeat_interleave(offsets.diff())
    return torch.arange(len(starts), device=starts.device) - starts
