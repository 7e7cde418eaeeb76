"""The progress of an epoch: the rows of its order that are left, and their division over ranks.

An epoch begins with all rows of its order left. Each entry of `Position.taken` divides the rows
left over ranks and takes some batches from each; the next entry, made when the number of ranks or
the batch size changes, divides the remainder.
"""

from __future__ import annotations

import bisect
from itertools import accumulate
from typing import Any, Iterable, Iterator, List, NamedTuple, Tuple

from semisync.common.errors import BadInput

Range = Tuple[int, int]  # rows of the order, the second one excluded


class Taken(NamedTuple):
    """`batches` batches of `batch_size` rows that each of `ranks` ranks has taken."""

    ranks: int
    batch_size: int
    batches: int


class Position(NamedTuple):
    """A position in a data set: the same on every rank, between two global batches.

    Attributes:
        epoch: from 0.
        taken: the batches taken from it: (ranks, batch size, batches) for each division so far.

    Examples:
        >>> from migrate.data import Position
        >>> Position.from_json([0, [[2, 256, 7]]]).taken
        (Taken(ranks=2, batch_size=256, batches=7),)
    """

    epoch: int = 0
    taken: Tuple[Taken, ...] = ()

    def to_json(self) -> Any:
        """The position in the form that `from_json` reads.

        Returns:
            Lists and numbers.
        """
        return [self.epoch, [list(taken) for taken in self.taken]]

    @classmethod
    def from_json(cls, saved: Any) -> Position:
        """The position from the result of `to_json`.

        Args:
            saved: lists and numbers.

        Returns:
            A `Position`.

        Raises:
            BadInput: anything else.
        """
        try:
            epoch, taken = saved
            position = cls(int(epoch), tuple(Taken(*map(int, one)) for one in taken))
        except (TypeError, ValueError) as error:
            raise BadInput(f"{saved!r} is not a position in a data set") from error
        sizes = [number for one in position.taken for number in one[:2]]
        counts = [position.epoch, *(one.batches for one in position.taken)]
        if min(sizes, default=1) < 1 or min(counts) < 0:
            raise BadInput(f"{saved!r} is not a position in a data set")
        return position


class Share(NamedTuple):
    """How many rows a rank's batch adds to a global batch, and how many that has.

    Attributes:
        rows: of the rank; 0 if it has only another rank's row as a placeholder.
        of: of all ranks.

    Examples:
        >>> from migrate.data import Column, open_data
        >>> schema, share = [Column("clicked", "label")], lambda rows: rows.share
        >>> list(open_data("clicks.parquet", schema, 3, last="keep", convert=share))
        [Share(rows=3, of=3), Share(rows=3, of=3), Share(rows=2, of=2)]
    """

    rows: int
    of: int


class Left:
    """Rows of the order: ranges, one after the other."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.ranges: List[Range] = []
        for start, stop in ranges:
            if self.ranges and self.ranges[-1][1] == start:
                self.ranges[-1] = (self.ranges[-1][0], stop)
            elif start < stop:
                self.ranges.append((start, stop))
        self._ends = list(accumulate(stop - start for start, stop in self.ranges))
        self.rows = self._ends[-1] if self._ends else 0

    def part(self, start: int, stop: int) -> List[Range]:
        """The rows from the start-th to before the stop-th."""
        parts: List[Range] = []
        number = bisect.bisect_right(self._ends, start)
        while start < stop:
            first, last = self.ranges[number]
            end = self._ends[number]
            upto = min(end, stop)
            parts.append((last - (end - start), last - (end - upto)))
            start, number = upto, number + 1
        return parts


class Division:
    """The rows that are left, divided over ranks.

    Args:
        in_order: a global batch is a range of them; otherwise each rank has one range, and a
            global batch is a batch of each.
        last: the treatment of the last, partial global batch, see `open_data`.
    """

    def __init__(
        self, left: Left, ranks: int, batch_size: int, in_order: bool, last: str = "drop"
    ) -> None:
        self._left, self._ranks, self._size = left, ranks, batch_size
        self._in_order, self._last, self.rows = in_order, last, left.rows
        self.whole, self._rest = divmod(left.rows, ranks * batch_size)
        self.batches = self.whole + int(last != "drop" and self._rest > 0)

    def batch(self, rank: int, number: int) -> List[Range]:
        """The rows of a rank's batch.

        In the last, partial global batch they are fewer than the batch size. A rank without a row
        has none, or, if they are kept, the first one.
        """
        if number == self.whole:
            first, last = self._part(rank)
            if first == last and self._last == "keep":
                first, last = 0, 1
            start = self.whole * self._ranks * self._size
            return self._left.part(start + first, start + last)
        ahead = number * self._ranks + rank if self._in_order else rank * self.whole + number
        return self._left.part(ahead * self._size, (ahead + 1) * self._size)

    def rows_of(self, rank: int, numbers: Iterable[int]) -> List[Range]:
        """The rows of several of a rank's batches, one after the other."""
        ranges = [one for number in numbers for one in self.batch(rank, number)]
        return Left(ranges).ranges

    def runs(self, rank: int, taken: int, most: int) -> Iterator[Tuple[range, List[Range]]]:
        """The batches left when some are `taken`: up to `most` whole ones together, then the last.

        Yields:
            Their numbers, and a rank's rows of them.
        """
        for first in range(taken, self.whole, most):
            numbers = range(first, min(first + most, self.whole))
            yield numbers, self.rows_of(rank, numbers)
        if self.whole < self.batches:
            numbers = range(self.whole, self.batches)
            yield numbers, self.rows_of(rank, numbers)

    def share(self, rank: int, number: int) -> Share:
        """The share of a rank's batch in its global batch."""
        if number == self.whole:
            first, last = self._part(rank)
            return Share(last - first, self._rest)
        return Share(self._size, self._ranks * self._size)

    def _part(self, rank: int) -> Range:
        """A rank's rows of the last, partial global batch."""
        return self._rest * rank // self._ranks, self._rest * (rank + 1) // self._ranks

    def after(self, batches: int) -> Left:
        """The rows left when each rank has taken the first `batches`, all of them whole."""
        taken = batches * self._size
        if self._in_order:
            return Left(self._left.part(taken * self._ranks, self._left.rows))
        share = self.whole * self._size
        ranges: List[Range] = []
        for rank in range(self._ranks):
            ranges += self._left.part(rank * share + taken, (rank + 1) * share)
        # The rows of the last, partial batch lie behind the ranks' parts.
        return Left(ranges + self._left.part(self._ranks * share, self._left.rows))


def left_at(position: Position, rows: int, in_order: bool) -> Left:
    """The rows of an epoch that are left; raises BadInput if more were taken than there are."""
    left = Left([(0, rows)])
    for taken in position.taken:
        division = Division(left, taken.ranks, taken.batch_size, in_order)
        if taken.batches > division.batches:
            raise BadInput(
                f"the position says that {taken.ranks} ranks took {taken.batches} batches of "
                f"{taken.batch_size} rows, but only {division.batches} were left"
            )
        left = division.after(taken.batches)
    return left
