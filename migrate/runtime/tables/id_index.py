"""The rows of int64 ids, in a hash table at most half full, which grows with them."""

from __future__ import annotations

import numpy

from semisync.common.compiled.table import add_integers, find_integers


class IdIndex:
    """Row i is that of ids[i]; for an id that occurs twice, the first one.

    Args:
        ids: int64 [n].
        room: the least capacity.
    """

    def __init__(self, ids: numpy.ndarray, room: int = 0) -> None:
        self.room = 1 << (max(len(ids), room, 1) - 1).bit_length()
        self._slots = numpy.full((2 * self.room, 2), -1, numpy.int64)
        at = 0
        while at < len(ids):
            at += self.add(ids[at:], at) + 1

    def find(self, ids: numpy.ndarray) -> numpy.ndarray:
        """The row [n] int64 of each of `ids` [n] int64; -1 where there is none."""
        found: numpy.ndarray = find_integers(self._slots, -1, ids)
        return found

    def add(self, ids: numpy.ndarray, first: int) -> int:
        """Adds `ids` as the rows from `first` on, up to one that has a row; returns how many."""
        return int(add_integers(self._slots, ids, first))
