"""From sorted runs to one order: which row of the runs each row of the target is.

1. Table and slots are read in blocks: the ids whose places lie between two bounds, from all runs.
2. An id that two partitions hold is refused, or its newest version wins (`_without_duplicates`).
3. A slot's row is the one of the same id in the same partition as the table's. An id without one
   gets the optimizer's initial value; a slot's row without an id is left out. Both are counted.
4. Each id is given its row: the next one, or that of its hash (`_Placing`). What goes where is
   written into maps, one for the table and one a slot (`migrate.ids.columns`).

Memory: a block of BLOCK_ROWS ids, or more where one run's marks are far apart.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy

from migrate.ids.columns import FREE, describe
from migrate.ids.runs import STEP, Batch, Runs, argsort
from semisync.errors import BadInput

BLOCK_ROWS = 1 << 21


@dataclass
class Merged:
    """What became of a table.

    rows        of the target; ids: how many of them have one
    duplicates  rows that lost against a newer one of the same id
    max_probe   longest search for an id, in rows; 1 where no hash decides
    without     ids that lack a slot, by slot; ownerless: rows of a slot that lack an id
    """

    rows: int = 0
    ids: int = 0
    duplicates: int = 0
    max_probe: int = 1
    without: Dict[str, int] = field(default_factory=dict)
    ownerless: Dict[str, int] = field(default_factory=dict)


@dataclass
class Target:
    """rows: how many it has, None for as many as ids and spare ones. buckets: that share them by
    hash, 0 where rows are given in turn."""

    rows: Optional[int]
    spare: int
    buckets: int
    reserved: Tuple[int, int]
    owner: str


def merge(
    table: Runs,
    slots: Dict[str, Runs],
    target: Target,
    newest: bool,
    where: str,
    partitions: Sequence[str],
) -> Merged:
    """Writes the maps TABLE-map.rows and SLOT-map.rows, and says what became of the table.

    newest: whether the newest version of an id wins; else BadInput where one comes twice.
    where: names the table in messages; partitions: each of its partitions.
    """
    merged = Merged()
    merged.without = dict.fromkeys(slots, 0)
    merged.ownerless = dict.fromkeys(slots, 0)
    with contextlib.ExitStack() as stack:
        everyone = [table, *slots.values()]
        readers = [stack.enter_context(contextlib.closing(one.reader())) for one in everyone]
        maps: List[BinaryIO] = [
            stack.enter_context(open(os.path.join(one.directory, one.stem + "-map.rows"), "w+b"))
            for one in everyone
        ]
        placing: Union[_Placing, _InTurn]
        placing = _Placing(target, where) if target.buckets else _InTurn()
        for bound in _bounds(everyone):
            batches = [reader.until(bound) for reader in readers]
            own = _by_id(batches[0])
            _refuse_reserved(own.ids, target, where)
            own, lost = _without_duplicates(own, table, newest, where, partitions)
            merged.duplicates += lost
            columns = [own.rows]
            for name, batch in zip(slots, batches[1:]):
                rows, ownerless = _joined(own, _by_id(batch), f"{where}: slot {name!r}")
                merged.without[name] += int((rows == FREE).sum())
                merged.ownerless[name] += ownerless
                columns.append(rows)
            merged.ids += len(own.ids)
            placing.put(table.places(own.ids), columns, maps)
        merged.rows = placing.end(maps, merged.ids, target)
        merged.max_probe = placing.max_probe
    for one in everyone:
        describe(one.directory, one.stem + "-map", {"rows": ("int64", [])})
    return merged


def _bounds(everyone: Sequence[Runs]) -> Iterator[Optional[int]]:
    """Places that divide all rows into blocks; None is the end."""
    marks = [numpy.concatenate(one.marks) for one in everyone if one.marks]
    if marks:
        every = numpy.sort(numpy.concatenate(marks))
        step = max(BLOCK_ROWS // STEP, 1)
        yield from numpy.unique(every[step::step]).tolist()
    yield None


def _by_id(batch: Batch) -> Batch:
    order = argsort(batch.ids)
    return Batch(batch.ids[order], batch.rows[order], batch.parts[order])


def _refuse_reserved(ids: numpy.ndarray, target: Target, where: str) -> None:
    first, last = target.reserved
    at = int(numpy.searchsorted(ids, first))
    if at < len(ids) and first <= ids[at] <= last:
        raise BadInput(
            f"{where} has the id {ids[at]}, by which {target.owner} marks rows that are free or in "
            "use; convert it with --ids rows, or save it without this id"
        )


def _without_duplicates(
    batch: Batch, table: Runs, newest: bool, where: str, partitions: Sequence[str]
) -> Tuple[Batch, int]:
    """`batch`, sorted by id, with one row for each id; and how many rows it lost."""
    again = batch.ids[1:] == batch.ids[:-1]
    if not again.any():
        return batch, 0
    at = int(again.argmax())
    first, second = (partitions[batch.parts[one]] for one in (at, at + 1))
    twice = f"{where} has id {batch.ids[at]} twice, in {first} and in {second}"
    if not newest:
        raise BadInput(
            f"{twice}; --duplicates newest takes the row that was updated last, where the source "
            "has versions"
        )
    if "versions" not in table.columns:
        raise BadInput(f"{twice}, and the source has no versions that tell which is newer")
    of_several = numpy.zeros(len(batch.ids), bool)
    of_several[1:] |= again
    of_several[:-1] |= again
    (places,) = numpy.nonzero(of_several)
    with contextlib.closing(table.column("versions")) as column:
        versions = column.take(batch.rows[places])
    order = numpy.lexsort((versions, batch.ids[places]))
    places, versions = places[order], versions[order]
    last = numpy.append(batch.ids[places][1:] != batch.ids[places][:-1], True)
    tied = ~last[:-1] & last[1:] & (versions[1:] == versions[:-1])
    if tied.any():
        at = int(tied.argmax())
        first, second = (partitions[batch.parts[places[one]]] for one in (at, at + 1))
        raise BadInput(
            f"{where} has id {batch.ids[places[at]]} twice with version {versions[at]}, in {first} "
            f"and in {second}: neither is newer"
        )
    kept = ~of_several
    kept[places[last]] = True
    return Batch(*(one[kept] for one in batch)), int((~kept).sum())


def _joined(own: Batch, slot: Batch, where: str) -> Tuple[numpy.ndarray, int]:
    """The slot's row for each id of `own`, FREE where there is none; and its rows without an id."""
    if numpy.array_equal(own.ids, slot.ids):
        return slot.rows, 0
    found = numpy.full(len(own.ids), FREE)
    if not len(own.ids):
        return found, len(slot.ids)
    at = numpy.searchsorted(own.ids, slot.ids).clip(max=len(own.ids) - 1)
    known = own.ids[at] == slot.ids
    ownerless = int((~known).sum())
    again = numpy.zeros(len(slot.ids), bool)
    again[1:] |= slot.ids[1:] == slot.ids[:-1]
    again[:-1] |= slot.ids[1:] == slot.ids[:-1]
    known &= ~again | (own.parts[at] == slot.parts)
    if len(numpy.unique(at[known])) != int(known.sum()):
        raise BadInput(f"{where} has an id twice in one partition; the source is damaged")
    found[at[known]] = slot.rows[known]
    return found, ownerless


class _InTurn:
    """The rows of the target are given to the ids in turn."""

    max_probe = 1

    def put(
        self, places: numpy.ndarray, columns: List[numpy.ndarray], maps: List[BinaryIO]
    ) -> None:
        """Appends what goes into the next rows to the maps."""
        for rows, file in zip(columns, maps):
            rows.tofile(file)

    def end(self, maps: List[BinaryIO], ids: int, target: Target) -> int:
        """Adds the spare rows; returns the number of all."""
        rows = target.rows or ids + target.spare
        for file in maps:
            _free(file, rows - ids)
        return rows


class _Placing:
    """Each id gets its home row or, where that is taken, the next free one of its bucket.

    Ids come in the order of their home rows, so that the next free row is behind the last one
    taken. What finds none up to the end of its bucket is put into the first free rows of the
    bucket when all of its ids are there.
    """

    def __init__(self, target: Target, where: str) -> None:
        assert target.rows is not None
        self._rows, self._where = target.rows, where
        self._size = target.rows // target.buckets
        self._bucket = 0
        self._next = 0  # the first row that the maps do not have yet
        self._over: List[Tuple[int, List[int]]] = []  # home row and columns of what found no row
        self.max_probe = 1

    def put(self, homes: numpy.ndarray, columns: List[numpy.ndarray], maps: List[BinaryIO]) -> None:
        """Writes the maps up to the last row that is taken. homes: in any order."""
        order = argsort(homes)
        homes = homes[order]
        columns = [one[order] for one in columns]
        for bucket in numpy.unique(homes // self._size).tolist():
            if bucket != self._bucket:
                self._close(maps)
                self._bucket = bucket
                self._fill(bucket * self._size, maps)
            span = (bucket * self._size, (bucket + 1) * self._size)
            low, high = numpy.searchsorted(homes, span).tolist()
            self._put(homes[low:high], [one[low:high] for one in columns], maps)

    def end(self, maps: List[BinaryIO], ids: int, target: Target) -> int:
        """Closes the last bucket; returns the number of rows."""
        self._close(maps)
        self._fill(self._rows, maps)
        return self._rows

    def _put(
        self, homes: numpy.ndarray, columns: List[numpy.ndarray], maps: List[BinaryIO]
    ) -> None:
        """Rows of one bucket, sorted by their homes."""
        turn = numpy.arange(len(homes))
        rows = numpy.maximum(numpy.maximum.accumulate(homes - turn), self._next) + turn
        fits = int(numpy.searchsorted(rows, (self._bucket + 1) * self._size))
        if fits:
            self.max_probe = max(self.max_probe, int((rows - homes)[:fits].max()) + 1)
            end = int(rows[fits - 1]) + 1
            for column, file in zip(columns, maps):
                block = numpy.full(end - self._next, FREE)
                block[rows[:fits] - self._next] = column[:fits]
                block.tofile(file)
            self._next = end
        for late in range(fits, len(homes)):
            self._over.append((int(homes[late]), [int(column[late]) for column in columns]))

    def _fill(self, row: int, maps: List[BinaryIO]) -> None:
        """Leaves the rows before `row` free that have nothing yet."""
        for file in maps:
            _free(file, row - self._next)
        self._next = max(self._next, row)

    def _close(self, maps: List[BinaryIO]) -> None:
        """Ends the bucket: what found no row goes round to its beginning."""
        begin = self._bucket * self._size
        self._fill(begin + self._size, maps)
        if not self._over:
            return
        free = _free_rows(maps[0], begin, begin + self._size)
        for home, values in self._over:
            row = next(free, None)
            if row is None:
                raise BadInput(
                    f"{self._where}: bucket {self._bucket} has more ids than its {self._size} "
                    "rows; give the table more rows or fewer buckets in the plan"
                )
            for value, file in zip(values, maps):
                file.seek(8 * row)
                numpy.array([value]).tofile(file)
            self.max_probe = max(self.max_probe, self._size - home + row + 1)
        self._over = []
        for file in maps:
            file.seek(0, os.SEEK_END)


def _free_rows(file: BinaryIO, begin: int, end: int) -> Iterator[int]:
    """The free ones of the rows begin..end of a map; later changes to rows given do not matter."""
    for first in range(begin, end, STEP):
        file.seek(8 * first)
        block = numpy.fromfile(file, numpy.int64, min(STEP, end - first))
        yield from (first + numpy.flatnonzero(block == FREE)).tolist()


def _free(file: BinaryIO, count: int) -> None:
    for start in range(0, count, BLOCK_ROWS):
        numpy.full(min(BLOCK_ROWS, count - start), FREE).tofile(file)
