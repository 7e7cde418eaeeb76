"""From one order of the ids to the rows of the target: the moves are written into maps.

1. Ids come block by block in the order of their places, each with its entry of every map.
2. An id's row is the next one (`InTurn`), or that of its hash (`ByHash`).
3. A row without an id gets the map's mark of a free row.

Memory: a block, and of each bucket the ids that found no row up to its end.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import BinaryIO, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from migrate.ids.hashing import homes
from semisync.common.errors import BadInput

_BLOCK_ROWS = 1 << 16  # written or searched at a time


@dataclass
class Target:
    """The assignment of rows to ids.

    Attributes:
        rows: how many; None for those of the ids and the spare ones.
        spare: rows that no id gets.
        buckets: number of buckets that hold the ids by hash; 0 if rows are assigned in order.
        reserved, owner: see `migrate.manifest.id_modes.Mode`.
    """

    rows: Optional[int]
    spare: int
    buckets: int
    reserved: Tuple[int, int]
    owner: str


class Map(NamedTuple):
    """A file of int64, one for each row of the target, `free` for a row without an id."""

    file: BinaryIO
    free: int

    def write(self, values: numpy.ndarray) -> None:
        """Writes int64 values; ndarray.tofile's OSError on a full disk would have no errno."""
        self.file.write(numpy.ascontiguousarray(values).data)

    def put(self, rows: numpy.ndarray, values: numpy.ndarray, first: int, end: int) -> None:
        """Appends the rows first..end: at `rows` [n], which ascend, `values` [n], else free."""
        for start in range(first, end, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, end)
            some = slice(*numpy.searchsorted(rows, (start, stop)))
            block = numpy.full(stop - start, self.free)
            block[rows[some] - start] = values[some]
            self.write(block)

    def leave_free(self, count: int) -> None:
        """Appends free rows."""
        for start in range(0, count, _BLOCK_ROWS):
            self.write(numpy.full(min(_BLOCK_ROWS, count - start), self.free))


class InTurn:
    """Gives the ids the rows of the target one after the other."""

    max_probe = 1

    def __init__(self, target: Target, maps: Sequence[Map]) -> None:
        self._target, self._maps = target, maps
        self._next = 0

    def put(self, places: numpy.ndarray, columns: Sequence[numpy.ndarray]) -> None:
        """Appends `columns`, one per map, of the next ids."""
        for values, map_ in zip(columns, self._maps):
            map_.write(values)
        self._next += len(places)

    def end(self) -> int:
        """Adds the spare rows; returns the number of all."""
        rows = self._target.rows or self._next + self._target.spare
        for map_ in self._maps:
            map_.leave_free(rows - self._next)
        return rows


class ByHash:
    """Each id gets its home row or, where that is taken, the next free one of its bucket.

    Ids come in the order of their home rows, so that the next free row is behind the last one
    taken. An id without one in its bucket is put into the first free rows of the bucket
    when all of its ids are there.

    Args:
        where: names the table in messages.

    Attributes:
        max_probe: the longest search for an id, in rows.
    """

    def __init__(self, target: Target, maps: Sequence[Map], where: str) -> None:
        assert target.rows is not None
        self._rows, self._maps, self._where = target.rows, maps, where
        self._size = target.rows // target.buckets
        self._bucket = 0
        self._next = 0  # the first row that the maps do not have yet
        self._over: List[Tuple[int, List[int]]] = []  # home row, columns of ids without a row
        self.max_probe = 1

    def put(self, places: numpy.ndarray, columns: Sequence[numpy.ndarray]) -> None:
        """Writes the maps up to the last row that the ids with these `places` take.

        Args:
            columns: the entries of each map.
        """
        of_ids = homes(places, self._rows)
        while len(of_ids):
            bucket = int(of_ids[0]) // self._size
            if bucket != self._bucket:
                self._close()
                self._bucket = bucket
                self._fill(bucket * self._size)
            end = int(numpy.searchsorted(of_ids, (bucket + 1) * self._size))
            self._put(of_ids[:end], [column[:end] for column in columns])
            of_ids, columns = of_ids[end:], [column[end:] for column in columns]

    def end(self) -> int:
        """Closes the last bucket; returns the number of rows."""
        self._close()
        self._fill(self._rows)
        return self._rows

    def _put(self, of_ids: numpy.ndarray, columns: Sequence[numpy.ndarray]) -> None:
        """Places the ids of one bucket, given their home rows."""
        turn = numpy.arange(len(of_ids))
        # Linear probing of ascending homes without a loop: row k is max(home k, row k-1 + 1), so
        # row k - k is a running maximum of home - k.
        rows = numpy.maximum(numpy.maximum.accumulate(of_ids - turn), self._next) + turn
        fits = int(numpy.searchsorted(rows, (self._bucket + 1) * self._size))
        if fits:
            self.max_probe = max(self.max_probe, int((rows - of_ids)[:fits].max()) + 1)
            end = int(rows[fits - 1]) + 1
            for column, map_ in zip(columns, self._maps):
                map_.put(rows[:fits], column[:fits], self._next, end)
            self._next = end
        for late in range(fits, len(of_ids)):
            self._over.append((int(of_ids[late]), [int(column[late]) for column in columns]))

    def _fill(self, row: int) -> None:
        """Leaves the rows before `row` free that have nothing yet."""
        for map_ in self._maps:
            map_.leave_free(row - self._next)
        self._next = max(self._next, row)

    def _close(self) -> None:
        """Ends the bucket: ids without a row wrap around to its beginning."""
        begin = self._bucket * self._size
        self._fill(begin + self._size)
        if not self._over:
            return
        free = _free_rows(self._maps[0], begin, begin + self._size)
        for home, values in self._over:
            row = next(free, None)
            if row is None:
                raise BadInput(
                    f"{self._where}: bucket {self._bucket} has more ids than its {self._size} "
                    "rows; give the table more rows or fewer buckets in the plan"
                )
            for value, map_ in zip(values, self._maps):
                map_.file.seek(8 * row)
                map_.write(numpy.array([value]))
            # Up to the bucket's end, and from its beginning on.
            self.max_probe = max(self.max_probe, self._size - home + row + 1)
        self._over = []
        for map_ in self._maps:
            map_.file.seek(0, os.SEEK_END)


def _free_rows(map_: Map, begin: int, end: int) -> Iterator[int]:
    """Yields the free rows of begin..end; the caller may fill those it was given meanwhile."""
    for first in range(begin, end, _BLOCK_ROWS):
        map_.file.seek(8 * first)
        # fromfile goes on from the Python file's position; `seek` has flushed what was written.
        block = numpy.fromfile(map_.file, numpy.int64, min(_BLOCK_ROWS, end - first))
        yield from (first + numpy.flatnonzero(block == map_.free)).tolist()
