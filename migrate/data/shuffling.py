"""The order of an epoch's rows: a pure function of the rows of the blocks, the shuffle, the epoch.

1. With `Shuffle`, the blocks are permuted. Consecutive ones form a window until it has at least
   `buffer` rows; the rows of a window are permuted.
2. Without it, the blocks keep their order and each is a window.

The random numbers are those of numpy's RandomState, whose streams no version of numpy changes
(NEP 19): a state that was saved today names the same rows under a later numpy.
"""

from __future__ import annotations

import bisect
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy

from semisync.common.errors import UsageError

_BLOCKS, _ROWS = 0, 1  # the permuted items, as a part of the seed


class Shuffle(NamedTuple):
    """How rows are shuffled: the blocks, and the rows within windows.

    Args:
        seed: from 0 to 2**32 - 1; every epoch has another order.
        buffer: the least number of rows in a window.

    Examples:
        >>> from migrate.data import Column, Shuffle, open_data
        >>> data = open_data(
        ...     "clicks.parquet", [Column("item", "ids")], 8, last="drop", shuffle=Shuffle(seed=1)
        ... )
        >>> sorted(next(iter(data)).sparse.values().tolist())
        [1, 2, 3, 4, 5, 6, 7, 8]
    """

    seed: int = 0
    buffer: int = 1 << 18

    def checked(self) -> Shuffle:
        """Checks the values.

        Returns:
            Itself.

        Raises:
            UsageError: a value is out of range.
        """
        if not 0 <= self.seed < 1 << 32:
            raise UsageError(f"the seed of a shuffle is {self.seed}; it must be 0 to 2**32 - 1")
        if self.buffer < 1:
            raise UsageError(
                f"the buffer of a shuffle is {self.buffer}; at least 1 row is expected"
            )
        return self


class Window(NamedTuple):
    """Blocks whose rows are at start to start + rows of the order, permuted or not."""

    blocks: Tuple[int, ...]
    start: int
    rows: int


class Order:
    """The rows of one epoch, from 0 to `rows`.

    Args:
        block_rows: the rows of each block of the listing.
    """

    def __init__(self, block_rows: Sequence[int], shuffle: Optional[Shuffle], epoch: int) -> None:
        self._shuffle, self._epoch = shuffle, epoch
        sequence: Sequence[int] = range(len(block_rows))
        if shuffle is not None:
            sequence = self._random(shuffle, _BLOCKS, 0).permutation(len(block_rows)).tolist()
        self.windows: List[Window] = []
        self.rows = start = 0
        blocks: List[int] = []
        for block in sequence:
            # Such as a block of text in which no line begins.
            if not block_rows[block]:
                continue
            blocks.append(block)
            self.rows += block_rows[block]
            if shuffle is None or self.rows - start >= shuffle.buffer:
                self.windows.append(Window(tuple(blocks), start, self.rows - start))
                blocks, start = [], self.rows
        if blocks:
            self.windows.append(Window(tuple(blocks), start, self.rows - start))
        self._starts = [window.start for window in self.windows]

    def window_of(self, row: int) -> int:
        """The number of the window that holds a row of the order."""
        return bisect.bisect_right(self._starts, row) - 1

    def permutation(self, window: int) -> Optional[numpy.ndarray]:
        """The row of the blocks at each position of the window, int64 [rows]; None: unpermuted."""
        if self._shuffle is None:
            return None
        rows = self.windows[window].rows
        return self._random(self._shuffle, _ROWS, window).permutation(rows)

    def _random(self, shuffle: Shuffle, what: int, number: int) -> numpy.random.RandomState:
        return numpy.random.RandomState([shuffle.seed, self._epoch, what, number])
