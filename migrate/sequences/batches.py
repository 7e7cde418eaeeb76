"""Batches of about equal numbers of items, and each process's share of them.

1. The order of an epoch's sequences is a pure function of (seed, epoch). Consecutive ones make a
   global batch, of about `tokens` items, give or take less than the longest sequence.
2. A global batch is the same however many processes there are. It is dealt out longest first, each
   sequence to the share that has the fewest items so far. A process has `accumulate` of its
   shares, so that all have equally many; a share may be empty.
3. The position is the epoch and the batches that are taken of it: the same for all processes, and
   for any other number of them.
"""

from __future__ import annotations

import heapq
from typing import List, Optional

import numpy


def plan(
    lengths: numpy.ndarray, tokens: int, seed: Optional[int] = None, epoch: int = 0
) -> List[numpy.ndarray]:
    """The sequences of each global batch: numbers into `lengths`, int64.

    Args:
        lengths: items of each sequence.
        seed: without one they keep their order.
    """
    order = numpy.arange(len(lengths))
    if seed is not None:
        order = numpy.random.default_rng([seed, epoch]).permutation(len(lengths))
    ends = numpy.cumsum(lengths[order])
    # A sequence is of the batch in which its last item falls.
    batch = (ends - 1) // tokens
    return numpy.split(order, numpy.flatnonzero(numpy.diff(batch)) + 1)


def shares(batch: numpy.ndarray, lengths: numpy.ndarray, count: int) -> List[numpy.ndarray]:
    """Splits a global batch into shares of about as many items, each in the batch's order."""
    own = lengths[batch]
    least = [(0, share) for share in range(count)]
    owner = numpy.empty(len(batch), numpy.int64)
    # Longest first, to the share with the fewest items: the greedy rule that leaves them about
    # even.
    for place in numpy.argsort(-own, kind="stable"):
        items, share = least[0]
        owner[place] = share
        heapq.heapreplace(least, (items + int(own[place]), share))
    return [batch[owner == share] for share in range(count)]
