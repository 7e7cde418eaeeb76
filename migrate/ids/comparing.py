"""Does the target hold every id of a hash table, with its row and its slots? Both sides read anew.

The rows of source and target have different orders, and neither fits into memory, so that they are
compared in three steps that sort nothing and so share nothing with the conversion:

1. Each side is streamed once. Every (id, row) is hashed to 64 bits with weights drawn at random,
   and the hashes are added up in 2^16 classes of ids. Where the sums of a class agree, so do its
   rows: a single wrong row stays unseen with a probability below 2^-32. Rows that hold the initial
   value of their slot count for nothing, for an id without the state begins with it.
2. The ids of classes that differ are read from both sides and compared one by one: that names the
   id, and settles what is meant to differ, duplicates that lost and state without an id.
3. Every id must stand where the target will look for it (`migrate.ids.standing`), and every row
   without an id must be zero, or what a state begins with: it is what an id that is not there gets,
   and what a new one begins from.
"""

from __future__ import annotations

import random
import secrets
from itertools import chain
from typing import Callable, Iterator, List, NamedTuple, Optional, Set, Tuple

import numpy
import torch

from migrate.ids.columns import filler
from migrate.ids.modes import MODES
from migrate.ids.standing import Standing
from migrate.manifest import Ids, Manifest, TableSummary, Written
from migrate.quantization import HEAD, quantized
from migrate.sources.dtypes import BFLOAT16, BY_NAME
from migrate.sources.hashed import HashTable, Rows
from migrate.targets.reading import Reader
from migrate.transforms import cast
from semisync.errors import BadInput

_CLASSES = 1 << 16
_BLOCK_BYTES = 16 << 20  # of a column
_TOGETHER = 1 << 20  # rows that are compared one by one in one go
_MULTIPLIER = 0x9E3779B97F4A7C15  # spreads ids over the classes

Differs = Callable[[str], None]
Open = Callable[[Written], Reader]
Chosen = Callable[[numpy.ndarray], numpy.ndarray]  # ids -> a mask


class Column(NamedTuple):
    """A tensor of the target, or some columns of it, and what of the source must stand there.

    name         for messages
    table        the source's, or one of its slots; column: "values", "freqs" or "versions" of it
    fill         bytes of the row of an id that the source lacks; None where it has all ids
    free         bytes of a row of the target that has no id
    start, stop  its bytes in a row of the tensor
    """

    name: str
    written: Written
    table: HashTable
    column: str
    fill: Optional[numpy.ndarray]
    free: numpy.ndarray
    start: int
    stop: int


class Side(NamedTuple):
    """Rows of the source: ids [n], rows as bytes [n, bytes], partitions [n], versions [n]."""

    ids: numpy.ndarray
    rows: numpy.ndarray
    parts: numpy.ndarray
    versions: numpy.ndarray

    def only(self, kept: numpy.ndarray) -> Side:
        """The rows that the mask `kept` selects."""
        return Side(*(one[kept] for one in self))


class Compared(NamedTuple):
    """rows of so many tensors: compared; differing: ids that differ."""

    rows: int
    tensors: int
    differing: int


def compare_table(
    source: HashTable,
    table: TableSummary,
    manifest: Manifest,
    open_: Open,
    differs: Differs,
    sample: Optional[int] = None,
) -> Compared:
    """Compares one table of the manifest that has ids.

    open_: a reader for a tensor of the manifest. differs: gets each difference as a sentence.
    sample: compare that many ids of the target alone, drawn at random.
    """
    assert table.ids is not None
    sides = _Sides(source, table, table.ids, manifest, open_)
    if sample is not None:
        wanted = sides.draw(sample)
        differing = _one_by_one(sides, differs, lambda ids: numpy.isin(ids, wanted))
        return Compared(len(wanted) * len(sides.columns), len(sides.columns), differing)
    standing, free = Standing(table, differs), _FreeRows(sides, differs)
    sums = [_Sums(column) for column in sides.columns]
    count = numpy.zeros(_CLASSES, numpy.int64)
    for first, ids, there, rows in sides.target():
        standing.check(first, ids, there)
        free.check(first, there, rows)
        count += numpy.bincount(_classes(ids[there]), minlength=_CLASSES)
        for of_column, values in zip(sums, rows):
            of_column.add(ids[there], values[there], +1)
    standing.end()
    free.check_behind()
    for of_column in sums:
        for ids, values in sides.source(of_column.column):
            of_column.add(ids, values, -1)
    wrong = numpy.zeros(_CLASSES, bool)
    for of_column in sums:
        wrong |= of_column.sums != 0
    differing = 0
    for group in _groups(wrong, count):
        differing += _one_by_one(sides, differs, _in_classes(group))
        if differing:
            break  # one group of wrong ids names enough of them
    return Compared(int(count.sum()) * len(sums), len(sums), differing + free.differing)


class _FreeRows:
    """Goes over the rows of the target that have no id, block by block; names the first of each
    column that is not as it must be. differing: how many there are."""

    def __init__(self, sides: _Sides, differs: Differs) -> None:
        self._sides, self._differs = sides, differs
        self._named: Set[str] = set()
        self.differing = 0

    def check(self, first: int, there: numpy.ndarray, rows: List[numpy.ndarray]) -> None:
        """rows: of each column, from row `first` on; there: which of them have an id."""
        found = numpy.zeros(len(there), bool)
        for column, values in zip(self._sides.columns, rows):
            wrong = ~there & (values != column.free).any(axis=1)
            found |= wrong
            if wrong.any() and column.name not in self._named:
                self._named.add(column.name)
                self._differs(
                    f"table {self._sides.table.name!r}: row {first + int(wrong.argmax())} has no "
                    f"id, but {column.name} that a free row does not have"
                )
        self.differing += int(found.sum())

    def check_behind(self) -> None:
        """The rows behind the last id, where the target has a list of the ids alone."""
        for first, rows in self._sides.behind():
            self.check(first, numpy.zeros(len(rows[0]), bool), rows)


class _Sums:
    """The hashes of a column's rows, added up by class of their ids."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.sums = numpy.zeros(_CLASSES, numpy.uint64)
        self._seed = numpy.uint64(secrets.randbits(64))
        self._weights: Optional[numpy.ndarray] = None

    def add(self, ids: numpy.ndarray, rows: numpy.ndarray, sign: int) -> None:
        """Takes rows [n, bytes] in, or with sign -1 away."""
        if self.column.fill is not None:
            kept = (rows != self.column.fill).any(axis=1)
            ids, rows = ids[kept], rows[kept]
        words: numpy.ndarray = rows.view(numpy.uint32 if rows.shape[1] % 4 == 0 else numpy.uint8)
        if self._weights is None:
            drawn = [secrets.randbits(64) | 1 for _ in range(words.shape[1])]
            self._weights = numpy.array(drawn, numpy.uint64)
        with numpy.errstate(over="ignore"):
            hashes = numpy.einsum("ij,j->i", words, self._weights)  # twice as fast as @
            hashes = _mixed(hashes + _mixed(ids.view(numpy.uint64) ^ self._seed))
            (numpy.add if sign > 0 else numpy.subtract).at(self.sums, _classes(ids), hashes)


def _mixed(values: numpy.ndarray) -> numpy.ndarray:
    values = (values ^ (values >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    mixed: numpy.ndarray = values ^ (values >> numpy.uint64(31))
    return mixed


def _classes(ids: numpy.ndarray) -> numpy.ndarray:
    with numpy.errstate(over="ignore"):
        spread = ids.view(numpy.uint64) * numpy.uint64(_MULTIPLIER)
    return (spread >> numpy.uint64(48)).astype(numpy.uint16)


def _in_classes(group: numpy.ndarray) -> Chosen:
    return lambda ids: group[_classes(ids)]


def _groups(wrong: numpy.ndarray, count: numpy.ndarray) -> Iterator[numpy.ndarray]:
    """Masks over the classes that are wrong, as many at a time as memory allows."""
    (classes,) = numpy.nonzero(wrong)
    group = numpy.zeros(_CLASSES, bool)
    rows = 0
    for one in classes.tolist():
        if rows + int(count[one]) > _TOGETHER and rows:
            yield group
            group, rows = numpy.zeros(_CLASSES, bool), 0
        group[one] = True
        rows += int(count[one])
    if group.any():
        yield group


class _Sides:
    """The table on both sides, as streams of ids and of rows as bytes."""

    def __init__(
        self, source: HashTable, table: TableSummary, ids: Ids, manifest: Manifest, open_: Open
    ) -> None:
        self.table, self.ids, self._source = table, ids, source
        written = {one.fqn: one for one in manifest.tensors}
        absent = [fqn for fqn in ids.columns if fqn not in written]
        slots = {f"slot {one}" for one in ids.fill if ids.slots.get(one) in source.slots}
        known = {"ids", "values", "freqs", "versions"} | slots
        absent += set(chain.from_iterable(ids.columns.values())) - known
        if absent or ids.mode not in MODES or ["ids"] not in ids.columns.values():
            raise BadInput(f"the manifest does not tell where the ids of {table.name!r} are")
        fqn = next(fqn for fqn, columns in ids.columns.items() if columns == ["ids"])
        self._ids = written[fqn]
        self.columns = [column for fqn in ids.columns for column in self._columns(written[fqn])]
        self._readers = {fqn: open_(written[fqn]) for fqn in ids.columns}

    def target(self) -> Iterator[Tuple[int, numpy.ndarray, numpy.ndarray, List[numpy.ndarray]]]:
        """(first row, ids, which rows have one, rows of each column as bytes), block by block."""
        widest = max(column.stop for column in self.columns)
        step = max(_BLOCK_BYTES // widest, 1)
        for first in range(0, self._ids.shape[0], step):
            count = min(step, self._ids.shape[0] - first)
            ids = self._ids_of(first, count)
            rows = [self._rows(column, first, count) for column in self.columns]
            yield first, ids, self._there(ids), rows

    def behind(self) -> Iterator[Tuple[int, List[numpy.ndarray]]]:
        """(first row, rows of each column as bytes) of the rows behind those that `target` has."""
        if self.ids.mode != "rows":
            return
        step = max(_BLOCK_BYTES // max(column.stop for column in self.columns), 1)
        for first in range(self._ids.shape[0], self.table.rows, step):
            count = min(step, self.table.rows - first)
            yield first, [self._rows(column, first, count) for column in self.columns]

    def source(self, column: Column) -> Iterator[Tuple[numpy.ndarray, numpy.ndarray]]:
        """(ids, rows as the target should have them, as bytes), in the order of the source."""
        for _, rows in self._numbered(column):
            yield rows.keys.astype(numpy.int64), _expected(rows, column)

    def of_source(self, column: Column, chosen: Chosen) -> Side:
        """The chosen ids of the source, sorted by id, partition and version."""
        found = []
        for part, rows in self._numbered(column):
            ids = rows.keys.astype(numpy.int64)
            kept = chosen(ids)
            versions = (
                numpy.zeros(len(ids), numpy.int64) if rows.versions is None else rows.versions
            )
            parts = numpy.full(len(ids), part)
            found.append([one[kept] for one in (ids, _expected(rows, column), parts, versions)])
        if not found:
            empty = numpy.empty(0, numpy.int64)
            return Side(
                empty, numpy.empty((0, column.stop - column.start), numpy.uint8), empty, empty
            )
        return Side(*(numpy.concatenate(one) for one in zip(*found)))

    def draw(self, count: int) -> numpy.ndarray:
        """Up to `count` ids of the target, at random; fewer where most rows are free."""
        rows = self._ids.shape[0]
        drawn = random.SystemRandom().sample(range(rows), min(2 * count, rows))
        ids = [self._ids_of(row, 1) for row in drawn]
        found = numpy.concatenate(ids) if ids else numpy.empty(0, numpy.int64)
        return found[self._there(found)][:count]

    def _numbered(self, column: Column) -> Iterator[Tuple[int, Rows]]:
        rows_per_chunk = max(_BLOCK_BYTES // (column.stop - column.start), 1)
        for number, part in enumerate(column.table.parts):
            for rows in part.chunks(rows_per_chunk):
                yield number, rows

    def _columns(self, written: Written) -> Iterator[Column]:
        """What stands side by side in one tensor."""
        start = 0
        for name in self.ids.columns[written.fqn]:
            if name == "ids":
                continue
            slot = name.partition("slot ")[2]
            table = self._source.slots[self.ids.slots[slot]] if slot else self._source
            column = "values" if slot else name
            shape = table.value_shape if column == "values" else ()
            array = BY_NAME[written.dtype].array
            assert array is not None
            width = int(numpy.prod(shape, dtype=numpy.int64))
            width += HEAD if written.transform == "int8" else 0
            stop = start + width * array.itemsize
            fill = None
            if slot:
                one = numpy.broadcast_to(filler(self.ids.fill[slot], array), (width,))
                fill = numpy.ascontiguousarray(one).view(numpy.uint8)
            free = _free(written, stop - start) if fill is None else fill
            yield Column(slot or name, written, table, column, fill, free, start, stop)
            start = stop

    def _ids_of(self, first: int, count: int) -> numpy.ndarray:
        ids: numpy.ndarray = self._readers[self._ids.fqn].rows(self._ids.fqn, first, count).numpy()
        return ids.reshape(-1)

    def _there(self, ids: numpy.ndarray) -> numpy.ndarray:
        """Which rows have an id."""
        if self.ids.mode in ("mch", "mpzch"):
            there: numpy.ndarray = ids != MODES[self.ids.mode].reserved[0]
            return there
        return numpy.ones(len(ids), bool)

    def _rows(self, column: Column, first: int, count: int) -> numpy.ndarray:
        fqn = column.written.fqn
        rows = as_bytes(self._readers[fqn].rows(fqn, first, count))
        return numpy.ascontiguousarray(rows[:, column.start : column.stop])


def _free(written: Written, size: int) -> numpy.ndarray:
    """Bytes [size] of a row that has no id, of what is no state of the optimizer."""
    if written.transform == "int8":
        return quantized(numpy.zeros((1, size - HEAD), numpy.float32))[0]
    # Times of Monolith have a mark for none; counts, steps and numbers are zero.
    return numpy.full(size, 0xFF if written.transform == "hours" else 0, numpy.uint8)


def _expected(rows: Rows, column: Column) -> numpy.ndarray:
    """The rows as the target should have them, as bytes [n, bytes a row]."""
    values = getattr(rows, column.column)
    if column.written.transform == "int8":
        return quantized(cast(values, "float32"))
    if values.dtype == BFLOAT16:
        tensor = torch.from_numpy(values.view(numpy.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(numpy.ascontiguousarray(values))
    if column.written.transform == "hours":
        tensor = torch.div(tensor, 3600, rounding_mode="floor")
    return as_bytes(tensor.to(getattr(torch, column.written.dtype)))


def as_bytes(rows: torch.Tensor) -> numpy.ndarray:
    """[rows, bytes a row]"""
    flat = rows.contiguous().reshape(len(rows), -1)
    if not flat.numel():
        return numpy.empty((len(rows), 0), numpy.uint8)
    found: numpy.ndarray = flat.view(torch.uint8).numpy()
    return found


def _one_by_one(sides: _Sides, differs: Differs, chosen: Chosen) -> int:
    """Compares the chosen ids; returns how many differ, and names the first of each column."""
    blocks = []
    for _, ids, there, rows in sides.target():
        kept = there.copy()
        kept[there] = chosen(ids[there])
        blocks.append([ids[kept], *(one[kept] for one in rows)])
    columns = [numpy.concatenate(one) for one in zip(*blocks)]
    ids, of_target = columns[0], columns[1:]
    order = numpy.argsort(ids, kind="stable")
    ids = ids[order]
    winners: Optional[Side] = None
    wrong: Set[int] = set()
    for column, found_rows in zip(sides.columns, of_target):
        side = sides.of_source(column, chosen)
        if winners is None:  # the table's own rows come first
            last = numpy.lexsort((side.versions, side.ids))
            side = Side(*(one[last] for one in side))
            winners = side.only(_last_of(side.ids))
        found = _different(ids, found_rows[order], side.only(_kept(side, winners)), column)
        if found:
            differs(
                f"table {sides.table.name!r}: {len(found)} ids have another {column.name} than in "
                f"{sides.ids.table!r}, or are on one side alone, the first is id {min(found)}"
            )
        wrong |= found
    return len(wrong)


def _last_of(ids: numpy.ndarray) -> numpy.ndarray:
    """A mask of the last of equal neighbours."""
    return numpy.append(ids[1:] != ids[:-1], numpy.ones(min(len(ids), 1), bool))


def _kept(side: Side, winners: Side) -> numpy.ndarray:
    """Which rows count: of an id that comes twice, that of the partition whose version won."""
    if not len(winners.ids):
        return numpy.zeros(len(side.ids), bool)
    at = numpy.searchsorted(winners.ids, side.ids).clip(max=len(winners.ids) - 1)
    _, first, times = numpy.unique(side.ids, return_inverse=True, return_counts=True)
    same_part = winners.parts[at] == side.parts
    kept: numpy.ndarray = (winners.ids[at] == side.ids) & (same_part | (times[first] == 1))
    return kept


def _different(ids: numpy.ndarray, rows: numpy.ndarray, side: Side, column: Column) -> Set[int]:
    """The ids whose rows differ; ids are sorted, those of the side are not."""
    wrong = set(ids[1:][ids[1:] == ids[:-1]].tolist())
    order = numpy.argsort(side.ids, kind="stable")
    of_source, expected = side.ids[order], side.rows[order]
    common, in_target, in_source = numpy.intersect1d(ids, of_source, return_indices=True)
    wrong.update(common[(rows[in_target] != expected[in_source]).any(axis=1)].tolist())
    wrong.update(of_source[~numpy.isin(of_source, common)].tolist())
    alone = ~numpy.isin(ids, common)
    if column.fill is not None:
        alone &= (rows != column.fill).any(axis=1)
    wrong.update(ids[alone].tolist())
    return wrong
