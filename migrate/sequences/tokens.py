"""A tower's data on the tokens of a batch, beside their vectors: T tokens of B sequences.

Sequences of similar lengths are computed together in dense blocks, with little padding:

1. Sequences of up to 16 tokens are in a block of exactly their length. A longer one is padded at
   its end to the next of 8 lengths between two powers of two, by less than an eighth, and not
   beyond the longest of the batch. On a GPU, where another block costs more than padding,
   all are padded to a power of two.
2. The blocks follow one another, [tokens, dim], so that work on each token alone is done once for
   all, and a block [sequences, length, dim] is a view.
3. Padding follows the sequence. A causal tower does not see it.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import List, NamedTuple, Optional, Tuple

import numpy
import torch
from torch import Tensor

_EXACT = 16


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
        """The sequences, grouped by similar lengths."""
        return Blocks(self.offsets)


def numbered(offsets: Tensor) -> Tensor:
    """The number of each token in its sequence, from 0: int64 [T]."""
    starts = offsets[:-1].repeat_interleave(offsets.diff())
    return torch.arange(len(starts), device=starts.device) - starts


class Blocks:
    """Sequences of similar lengths in dense blocks.

    Args:
        offsets: int64 [B + 1], of the sequences.

    Attributes:
        shapes: (sequences, length) of each block.
    """

    def __init__(self, offsets: Tensor) -> None:
        starts = offsets.cpu().numpy()
        lengths = numpy.diff(starts)
        order = numpy.argsort(lengths, kind="stable")
        starts, lengths = starts[:-1][order], lengths[order]
        rooms = _rounded(lengths, fine=offsets.device.type == "cpu")
        ends = numpy.cumsum(rooms)
        sequence = numpy.repeat(numpy.arange(len(rooms)), rooms)
        place = numpy.arange(len(sequence)) - (ends - rooms)[sequence]
        real = place < lengths[sequence]
        # Behind a sequence its first token stands again, in place of padding.
        token = starts[sequence] + numpy.where(real, place, 0)
        back = numpy.empty(int(lengths.sum()), numpy.int64)
        back[token[real]] = numpy.flatnonzero(real)
        values, counts = numpy.unique(rooms, return_counts=True)
        self.shapes: List[Tuple[int, int]] = list(zip(counts.tolist(), values.tolist()))
        self._out = torch.from_numpy(token).to(offsets.device)
        self._back = torch.from_numpy(back).to(offsets.device)

    def spread(self, packed: Tensor) -> Tensor:
        """From the order of the batch, [T, ...], to the blocks' order."""
        return packed[self._out]

    def gather(self, spread: Tensor) -> Tensor:
        """The inverse of `spread`."""
        return spread[self._back]

    def split(self, spread: Tensor) -> List[Tensor]:
        """The blocks of a spread tensor: views [sequences, length, ...]."""
        parts = spread.split([count * length for count, length in self.shapes])
        return [part.unflatten(0, shape) for part, shape in zip(parts, self.shapes)]


def _rounded(lengths: numpy.ndarray, fine: bool = True) -> numpy.ndarray:
    """The length of the block for each of these lengths of sequences."""
    if not fine:
        powers = numpy.int64(numpy.ceil(numpy.log2(numpy.maximum(lengths, _EXACT))))
        return numpy.minimum(1 << powers, lengths.max())
    # An eighth of the power of two at or below the length.
    step = 1 << numpy.maximum(numpy.int64(numpy.log2(numpy.maximum(lengths, 1))) - 3, 0)
    rooms = numpy.where(lengths <= _EXACT, lengths, -(-lengths // step) * step)
    return numpy.minimum(rooms, lengths.max())
