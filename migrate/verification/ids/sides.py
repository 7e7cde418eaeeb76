"""A hash table in source and target, as streams of ids and of rows as bytes."""

from __future__ import annotations

import random
from itertools import chain
from typing import Callable, Iterator, List, NamedTuple, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.manifest.id_modes import MANAGED, MODES
from migrate.manifest.manifest import Ids, Manifest, TableSummary, Written
from migrate.targets.reading import Reader
from migrate.verification.expected import as_bytes
from migrate.verification.ids.columns import Column, columns_of, expected_column
from semisync.common.errors import BadInput

_BLOCK_BYTES = 16 << 20  # of a column

Open = Callable[[Written], Reader]
Chosen = Callable[[numpy.ndarray], numpy.ndarray]  # ids [n] -> a mask [n]
Block = Tuple[int, numpy.ndarray, numpy.ndarray, List[numpy.ndarray]]


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
        BadInput: the manifest does not tell which tensors the table is made of.
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
        """Which rows have an id."""
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
