"""The columns of a hash table in source and target, as streams of ids and of rows as bytes."""

from __future__ import annotations

import math
import random
from itertools import chain
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.manifest.id_modes import MANAGED, MODES
from migrate.manifest.manifest import Ids, Manifest, TableSummary, Written
from migrate.manifest.transforms import filler, named
from migrate.targets.reading import Reader
from migrate.verification.expected import as_bytes, expected
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import number_type

_BLOCK_BYTES = 16 << 20  # of a column
Open = Callable[[Written], Reader]
Chosen = Callable[[numpy.ndarray], numpy.ndarray]  # ids [n] -> a mask [n]
Block = Tuple[int, numpy.ndarray, numpy.ndarray, List[numpy.ndarray]]


class Column(NamedTuple):
    """A tensor of the target, or some columns of it, and its source.

    Attributes:
        name: for messages.
        table: the source's, or one of its slots.
        column: "values", "freqs" or "versions" of it.
        fill: bytes of the row of an id that the source lacks; None where it has all ids.
        free: bytes of a row of the target that has no id.
        start, stop: its bytes in a row of the tensor.
    """

    name: str
    written: Written
    table: HashTable
    column: str
    fill: Optional[numpy.ndarray]
    free: numpy.ndarray
    start: int
    stop: int


def columns_of(written: Written, ids: Ids, source: HashTable) -> Iterator[Column]:
    """The columns side by side in the tensor `written`, but for the ids themselves."""
    start = 0
    for name in ids.columns[written.fqn]:
        if name == "ids":
            continue
        slot = name.partition("slot ")[2]
        table = source.slots[ids.slots[slot]] if slot else source
        column = "values" if slot else name
        shape = table.value_shape if column == "values" else ()
        array = number_type(written.dtype)
        width = math.prod(named(written.transform).shape((1, math.prod(shape))))
        stop = start + width * array.itemsize
        fill = None
        if slot:
            row = numpy.broadcast_to(filler(ids.fill[slot], array), (width,))
            fill = numpy.ascontiguousarray(row).view(numpy.uint8)
        free = _free_row(written, table, column) if fill is None else fill
        yield Column(
            name=slot or name,
            written=written,
            table=table,
            column=column,
            fill=fill,
            free=free,
            start=start,
            stop=stop,
        )
        start = stop


def _free_row(written: Written, table: HashTable, column: str) -> numpy.ndarray:
    """Bytes of a row that has no id, but for the optimizer's states."""
    if column == "values":
        values = numpy.zeros((1, *table.value_shape), number_type(table.dtype))
    else:  # Monolith's times have a mark for none; counts and steps are zero
        values = numpy.full(1, -1 if written.transform == "hours" else 0)
    row: numpy.ndarray = as_bytes(expected(values, written))[0]
    return row


def expected_column(rows: Rows, column: Column) -> numpy.ndarray:
    """`rows` of the source as `column` of the target should have them, uint8 [n, bytes per row]."""
    values = getattr(rows, column.column)
    if column.column != "values":
        values = values.astype(numpy.int64, copy=False)
    return as_bytes(expected(values, column.written))


class SourceRows(NamedTuple):
    """Rows of the source: ids [n], rows as bytes [n, bytes], partitions [n], versions [n]."""

    ids: numpy.ndarray
    rows: numpy.ndarray
    parts: numpy.ndarray
    versions: numpy.ndarray

    def only(self, chosen: numpy.ndarray) -> SourceRows:
        """The rows that a mask or an order chooses."""
        return SourceRows(*(column[chosen] for column in self))


class BothSides:
    """One table of the manifest and its source.

    Args:
        open_: a reader for a tensor of the manifest.

    Raises:
        BadInput: the manifest does not say which tensors the table is made of.
    """

    def __init__(
        self, source: HashTable, table: TableSummary, ids: Ids, manifest: Manifest, open_: Open
    ) -> None:
        self.table, self.ids = table, ids
        written = {tensor.fqn: tensor for tensor in manifest.tensors}
        absent = [fqn for fqn in ids.columns if fqn not in written]
        slots = {f"slot {name}" for name in ids.fill if ids.slots.get(name) in source.slots}
        known = {"ids", "values", "freqs", "versions"} | slots
        absent += set(chain.from_iterable(ids.columns.values())) - known
        if absent or ids.mode not in MODES or ["ids"] not in ids.columns.values():
            raise BadInput(f"the manifest does not tell where the ids of {table.name!r} are")
        self._ids = written[next(fqn for fqn, names in ids.columns.items() if names == ["ids"])]
        self.columns = [
            column for fqn in ids.columns for column in columns_of(written[fqn], ids, source)
        ]
        self._readers = {fqn: open_(written[fqn]) for fqn in ids.columns}

    def target(self) -> Iterator[Block]:
        """(first row, ids, which rows have one, rows of each column as bytes), block by block."""
        for first, count in self._blocks(0, self._ids.shape[0]):
            ids = self._ids_of(first, count)
            yield first, ids, self._there(ids), self._rows_of(first, count)

    def behind(self) -> Iterator[Tuple[int, List[numpy.ndarray]]]:
        """(first row, rows of each column as bytes) of the rows behind those that `target` has."""
        if self.ids.mode == "rows":
            for first, count in self._blocks(self._ids.shape[0], self.table.rows):
                yield first, self._rows_of(first, count)

    def source(self, column: Column) -> Iterator[Tuple[numpy.ndarray, numpy.ndarray]]:
        """(ids, rows as the target should have them, as bytes), in the order of the source."""
        for _, rows in _numbered(column):
            yield rows.keys.astype(numpy.int64), expected_column(rows, column)

    def of_source(self, column: Column, chosen: Chosen) -> SourceRows:
        """The chosen ids of the source, in its order."""
        chunks = []
        for part, rows in _numbered(column):
            ids = rows.keys.astype(numpy.int64)
            versions = numpy.zeros_like(ids) if rows.versions is None else rows.versions
            parts = numpy.full(len(ids), part)
            every = SourceRows(ids, expected_column(rows, column), parts, versions)
            chunks.append(every.only(chosen(ids)))
        if not chunks:
            none = numpy.empty(0, numpy.int64)
            row = numpy.empty((0, column.stop - column.start), numpy.uint8)
            return SourceRows(none, row, none, none)
        return SourceRows(*map(numpy.concatenate, zip(*chunks)))

    def draw(self, count: int) -> numpy.ndarray:
        """Up to `count` ids of the target, at random; fewer where most rows are free."""
        rows = self._ids.shape[0]
        # Twice as many as are wanted: some rows are free.
        drawn = random.SystemRandom().sample(range(rows), min(2 * count, rows))
        ids = [self._ids_of(row, 1) for row in drawn]
        drawn_ids = numpy.concatenate(ids) if ids else numpy.empty(0, numpy.int64)
        return drawn_ids[self._there(drawn_ids)][:count]

    def _blocks(self, begin: int, end: int) -> Iterator[Tuple[int, int]]:
        """(first row, rows) of each block of the target's rows begin..end."""
        step = max(_BLOCK_BYTES // max(column.stop for column in self.columns), 1)
        for first in range(begin, end, step):
            yield first, min(step, end - first)

    def _ids_of(self, first: int, count: int) -> numpy.ndarray:
        ids: numpy.ndarray = self._readers[self._ids.fqn].rows(self._ids.fqn, first, count).numpy()
        return ids.reshape(-1)

    def _there(self, ids: numpy.ndarray) -> numpy.ndarray:
        """The mask of the rows that have an id."""
        if self.ids.mode in MANAGED:
            there: numpy.ndarray = ids != MODES[self.ids.mode].reserved[0]
            return there
        return numpy.ones(len(ids), bool)

    def _rows_of(self, first: int, count: int) -> List[numpy.ndarray]:
        """Rows first..first+count of each column, as bytes."""
        of_columns = []
        for column in self.columns:
            fqn = column.written.fqn
            rows = as_bytes(self._readers[fqn].rows(fqn, first, count))
            of_columns.append(numpy.ascontiguousarray(rows[:, column.start : column.stop]))
        return of_columns


def _numbered(column: Column) -> Iterator[Tuple[int, Rows]]:
    """(number of the partition, some of its rows), all rows of the source in turn."""
    rows_per_chunk = max(_BLOCK_BYTES // (column.stop - column.start), 1)
    for number, part in enumerate(column.table.parts):
        for rows in part.chunks(rows_per_chunk):
            yield number, rows
