"""A hash table on disk, sorted piece by piece: the first pass over it.

1. The rows of a partition are read in pieces of RUN_BYTES at most, small enough that most of what
   is put in order lies in the CPU's cache. Threads sort each piece by the place that the target
   gives its ids, and write it, one file per column: ids, values, and where the source has them
   freqs and versions. Such a piece is a run; none has rows of two partitions. Rows have the numbers
   that they would have if they had been written as they came.
2. `Reader.until` then goes through all runs together, from the first place to the last: it is what
   a merge reads. Of every STEP-th row its place is kept in memory, 8 bytes each, so that little is
   read of a run before its turn.

Memory: two pieces of RUN_BYTES more than threads, 8 bytes for STEP rows, and STEP ids per run.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Callable, Dict, Generator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.stream.columns import BLOCK_BYTES, Column, describe, open_column, taken
from migrate.stream.sorting import argsort
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import number_type
from semisync.storage.files import write_at
from semisync.storage.threads import in_threads

RUN_BYTES = 32 << 20
_RUN_ROWS = 1 << 19  # at most: sorting takes some times their 8 bytes each
_LEAST_ROWS = 1 << 15  # per run, where there are as many: fewer are sorted more slowly
_RUNS = 64  # at least: memory that is touched for the first time is expensive
STEP = 256
_THREADS = 4  # at most: more would wait for the reader

Places = Callable[[numpy.ndarray], numpy.ndarray]  # ids [n] int64 -> places in the target [n]
_Piece = Tuple[int, int, Rows]  # number of its first row, number of its partition, rows


class Run(NamedTuple):
    """Rows first..end of the columns, all of one partition `part` and sorted by their places.

    Attributes:
        marks: the places of every STEP-th row.
        newest: the largest version, 0 where there are none.
    """

    first: int
    end: int
    part: int
    marks: numpy.ndarray
    newest: int


class Batch(NamedTuple):
    """Rows from any of the runs: their places, ids, and row numbers in the columns, [n] int64."""

    places: numpy.ndarray
    ids: numpy.ndarray
    rows: numpy.ndarray

    def only(self, chosen: numpy.ndarray) -> Batch:
        """The rows that a mask or an order chooses."""
        return Batch(*(column[chosen] for column in self))


@dataclass
class Runs:
    """One table: its runs, in the order of their rows, and the names of its columns."""

    directory: str
    stem: str
    places: Places
    runs: List[Run]
    columns: Tuple[str, ...]

    @property
    def newest(self) -> int:
        """The largest version, 0 where the source has none."""
        return max((run.newest for run in self.runs), default=0)

    def column(self, name: str) -> Column:
        """One of its columns."""
        return open_column(self.directory, f"{self.stem}.{name}")

    def parts(self, rows: numpy.ndarray) -> numpy.ndarray:
        """The partition [n] of each of `rows` [n]."""
        firsts = [run.first for run in self.runs]
        of_runs = numpy.array([run.part for run in self.runs])
        of_rows: numpy.ndarray = of_runs[numpy.searchsorted(firsts, rows, side="right") - 1]
        return of_rows


class Reader:
    """All runs of a table from the first place to the last."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._ids = runs.column("ids")
        self._next = [run.first for run in runs.runs]
        empty = numpy.empty(0, numpy.int64)
        self._early = Batch(empty, empty, empty)  # read before their turn

    def close(self) -> None:
        """Closes the file."""
        self._ids.close()

    def until(self, place: Optional[int]) -> Batch:
        """The rows before `place` that were not given yet, in no order; None: all that remain."""
        batches = [self._early]
        for number, run in enumerate(self._runs.runs):
            begin, end = self._next[number], run.end
            if place is not None:
                # Up to the first marked row that is not due: fewer than STEP rows come too early.
                marks = int(numpy.searchsorted(run.marks, place))
                end = min(run.first + marks * STEP, end)
            if end > begin:
                ids = self._ids.rows(begin, end - begin)
                batches.append(Batch(self._runs.places(ids), ids, numpy.arange(begin, end)))
                self._next[number] = end
        batch = Batch(*map(numpy.concatenate, zip(*batches)))
        if place is None:
            return batch
        due = batch.places < place
        self._early = batch.only(~due)
        return batch.only(due)


def write_runs(table: HashTable, places: Places, directory: str, stem: str, workers: int) -> Runs:
    """Reads all of `table` once and writes its runs; raises BadInput if it is damaged.

    Args:
        workers: threads that sort and write, _THREADS at most.
    """
    columns = _columns(table)
    row_bytes = sum(
        math.prod(shape) * number_type(dtype).itemsize for dtype, shape in columns.values()
    )
    with contextlib.ExitStack() as stack:
        files = {
            name: stack.enter_context(
                # Threads write by the descriptor alone, each at its own offset.
                open(os.path.join(directory, f"{stem}.{name}"), "wb", buffering=0)
            ).fileno()
            for name in columns
        }
        pieces = _pieces(table, _rows_per_run(table.stored, row_bytes))
        stack.enter_context(contextlib.closing(pieces))
        threads = min(workers, _THREADS)
        written = in_threads(partial(_write_run, files, places), pieces, threads, threads + 1)
        runs = sorted(chain.from_iterable(written), key=lambda run: run.first)
    describe(directory, stem, columns)
    return Runs(directory, stem, places, runs, tuple(columns))


def _rows_per_run(stored: int, row_bytes: int) -> int:
    return max(min(RUN_BYTES // row_bytes, _RUN_ROWS, max(stored // _RUNS, _LEAST_ROWS)), 1)


def _pieces(table: HashTable, rows_per_run: int) -> Generator[_Piece, None, None]:
    first = 0
    for number, part in enumerate(table.parts):
        for rows in part.chunks(rows_per_run):
            if rows.values is None or rows.values.shape[1:] != table.value_shape:
                raise BadInput(f"hash table {table.name!r} has rows of different sizes")
            yield first, number, rows
            first += len(rows.keys)


def _write_run(files: Dict[str, int], places: Places, piece: _Piece) -> Run:
    """Sorts a piece and writes those of its columns that have one of the `files`."""
    first, part, rows = piece
    ids = rows.keys.astype(numpy.int64, copy=False)
    of_ids = places(ids)
    order = argsort(of_ids)
    columns = {"ids": ids, "values": rows.values, "freqs": rows.freqs, "versions": rows.versions}
    newest = 0
    for name, values in columns.items():
        if name in files:
            assert values is not None  # every partition with rows has the column
            if name in ("freqs", "versions"):
                values = values.astype(numpy.int64, copy=False)
            _write(files[name], first, values, order)
    if rows.versions is not None:
        newest = int(rows.versions.max())
    return Run(first, first + len(order), part, of_ids[order[::STEP]], newest)


def _write(file: int, first: int, values: numpy.ndarray, order: numpy.ndarray) -> None:
    """Writes values[order] as the rows of `file` from `first` on, in blocks that fit the cache."""
    rows = numpy.ascontiguousarray(values).reshape(len(values), -1).view(numpy.uint8)
    step = max(BLOCK_BYTES // rows.shape[1], 1)
    block = numpy.empty((min(step, len(order)), rows.shape[1]), numpy.uint8)
    for start in range(0, len(order), step):
        some = order[start : start + step]
        data = taken(rows, some, block).reshape(-1).data
        write_at(file, (first + start) * rows.shape[1], data)


def _columns(table: HashTable) -> Dict[str, Tuple[str, List[int]]]:
    """Data type and row shape of each column, the same in every partition that has rows."""
    columns: Dict[str, Tuple[str, List[int]]] = {
        "ids": ("int64", []),
        "values": (table.dtype, list(table.value_shape)),
    }
    parts = [part for part in table.parts if part.stored]
    for name in ("freqs", "versions"):
        if parts and all(part.has(name) for part in parts):
            columns[name] = ("int64", [])
    return columns
