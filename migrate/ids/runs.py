"""A hash table on the disk, sorted piece by piece: the first pass over it.

1. The rows of a partition are read in pieces of RUN_BYTES, sorted by the place that the target
   gives their ids, and appended to one file a column: ids, values, and where the source has them
   freqs and versions. Such a piece is a run; none has rows of two partitions.
2. `Runs.until` then goes through all runs together, from the first place to the last: it is what a
   merge reads. Of every STEP-th row its place is kept in memory, 8 bytes each, so that no run is
   read further than asked for.

Memory: some pieces of RUN_BYTES, and 8 bytes for STEP rows.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import BinaryIO, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.ids.ahead import one_ahead
from migrate.ids.columns import BLOCK_BYTES, Column, describe, open_column
from migrate.sources.dtypes import BY_NAME
from migrate.sources.hashed import HashTable, Rows
from semisync.errors import BadInput

RUN_BYTES = 96 << 20
STEP = 4096

Places = Callable[[numpy.ndarray], numpy.ndarray]  # ids [n] int64 -> places in the target [n]


class Batch(NamedTuple):
    """Some rows of all runs: their ids, row numbers in the columns, and partitions, [n] each."""

    ids: numpy.ndarray
    rows: numpy.ndarray
    parts: numpy.ndarray


@dataclass
class Runs:
    """The runs of one table.

    starts    first row of each run, and the end
    parts     the partition that each run is of
    marks     the place of every STEP-th row of each run
    columns   names of the columns
    newest    the largest version, where the source has versions
    """

    directory: str
    stem: str
    places: Places
    starts: List[int]
    parts: List[int]
    marks: List[numpy.ndarray]
    columns: Tuple[str, ...]
    newest: int = 0

    @property
    def stored(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    def column(self, name: str) -> Column:
        """One of its columns."""
        return open_column(self.directory, f"{self.stem}.{name}")

    def reader(self) -> Reader:
        """Goes through the runs from their beginning."""
        return Reader(self)


class Reader:
    """All runs of a table from the first place to the last."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._ids = runs.column("ids")
        self._next = list(runs.starts[:-1])

    def close(self) -> None:
        """Closes the file."""
        self._ids.close()

    def until(self, place: Optional[int]) -> Batch:
        """The rows before `place` that were not given yet, run after run; None: all that remain."""
        found: List[Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]] = []
        for run, begin in enumerate(self._next):
            end = self._runs.starts[run + 1] if place is None else self._end(run, place)
            if end > begin:
                rows = numpy.arange(begin, end)
                part = numpy.full(end - begin, self._runs.parts[run], numpy.int32)
                found.append((self._ids.rows(begin, end - begin), rows, part))
                self._next[run] = end
        if not found:
            empty = numpy.empty(0, numpy.int64)
            return Batch(empty, empty, empty.astype(numpy.int32))
        return Batch(*(numpy.concatenate(one) for one in zip(*found)))

    def _end(self, run: int, place: int) -> int:
        """The first row of `run` that is not before `place`."""
        start, end = self._runs.starts[run], self._runs.starts[run + 1]
        mark = int(numpy.searchsorted(self._runs.marks[run], place))
        if not mark:
            return start
        first = start + (mark - 1) * STEP  # the last marked row before the place
        count = min(STEP, end - first)
        places = self._runs.places(self._ids.rows(first, count))
        return first + int(numpy.searchsorted(places, place))


def write_runs(table: HashTable, places: Places, directory: str, stem: str) -> Runs:
    """Reads all of `table` once and writes its runs; BadInput where it is damaged."""
    columns = _columns(table)
    row_bytes = sum(_row_bytes(*one) for one in columns.values())
    runs = Runs(directory, stem, places, [0], [], [], tuple(columns))
    with contextlib.ExitStack() as stack:
        files = {
            name: stack.enter_context(open(os.path.join(directory, f"{stem}.{name}"), "wb"))
            for name in columns
        }
        for part, rows, order in one_ahead(_sorted(table, places, max(RUN_BYTES // row_bytes, 1))):
            for name, values in _arrays(rows).items():
                if name in files:
                    _write(files[name], values, order)
            runs.starts.append(runs.starts[-1] + len(order))
            runs.parts.append(part)
            runs.marks.append(places(rows.keys[order[::STEP]]))
            if rows.versions is not None:
                runs.newest = max(runs.newest, int(rows.versions.max()))
    describe(directory, stem, columns)
    return runs


def _write(file: BinaryIO, values: numpy.ndarray, order: numpy.ndarray) -> None:
    """Appends `values` [n, ...] in `order` [n], in blocks that stay in the processor's cache."""
    values = numpy.ascontiguousarray(values)  # once, else each `take` would copy all of it
    step = max(BLOCK_BYTES // values[:1].nbytes, 1)
    for start in range(0, len(order), step):
        file.write(values.take(order[start : start + step], axis=0).data)


def _sorted(
    table: HashTable, places: Places, rows_per_run: int
) -> Iterator[Tuple[int, Rows, numpy.ndarray]]:
    """(partition, rows, the order [n] of their places), one run after the other."""
    for number, part in enumerate(table.parts):
        for rows in one_ahead(part.chunks(rows_per_run)):
            ids = rows.keys.astype(numpy.int64, copy=False)
            if rows.values is None or rows.values.shape[1:] != table.value_shape:
                raise BadInput(f"hash table {table.name!r} has rows of different sizes")
            rows = Rows(
                ids,
                rows.values,
                None if rows.freqs is None else rows.freqs.astype(numpy.int64, copy=False),
                None if rows.versions is None else rows.versions.astype(numpy.int64, copy=False),
            )
            yield number, rows, argsort(places(ids))


def argsort(keys: numpy.ndarray) -> numpy.ndarray:
    """The order [n] that sorts `keys` [n] int64, equal ones as they stand.

    torch sorts them three times as fast as numpy, and with one thread faster than with two that
    wait for each other. For one caller at a time: torch has one number of threads for all.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        order: numpy.ndarray = torch.sort(torch.from_numpy(keys), stable=True).indices.numpy()
    finally:
        torch.set_num_threads(threads)
    return order


def _columns(table: HashTable) -> Dict[str, Tuple[str, List[int]]]:
    """Data type and sizes of a row of each column that every partition has."""
    found: Dict[str, Tuple[str, List[int]]] = {
        "ids": ("int64", []),
        "values": (table.dtype, list(table.value_shape)),
    }
    for name in ("freqs", "versions"):
        if table.parts and all(part.has(name) for part in table.parts):
            found[name] = ("int64", [])
    return found


def _arrays(rows: Rows) -> Dict[str, numpy.ndarray]:
    found = {"ids": rows.keys, "values": rows.values}
    found.update(freqs=rows.freqs, versions=rows.versions)
    return {name: values for name, values in found.items() if values is not None}


def _row_bytes(dtype: str, shape: List[int]) -> int:
    array = BY_NAME[dtype].array
    assert array is not None  # tables of numbers alone are converted
    return int(numpy.prod(shape, dtype=numpy.int64)) * array.itemsize
