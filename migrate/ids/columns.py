"""Rows of sorted pieces, fetched in the order in which the target wants them.

A column is a file of rows of one size, run after run (`migrate.ids.runs`). A map is a file of
int64: for each row of the target the row of the column that goes there, or -1 where none does. The
rows that a range of the target wants lie close together in each run, since runs are sorted as the
target is: one read a run fetches them.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy

from migrate.sources.dtypes import BY_NAME

FREE = -1  # in a map: no row of the source comes here


class Origin(NamedTuple):
    """Where values of the target come from.

    map     name of the map; "" takes the column's rows one by one
    column  name of the column; "" is the row's own number
    fill    the value of the rows that the map leaves free
    """

    map: str
    column: str
    fill: float = 0


class Column:
    """One column of a table in runs. starts: first row of each run, and the end [runs + 1]."""

    def __init__(self, path: str, starts: Sequence[int], dtype: str, shape: Sequence[int]) -> None:
        array = BY_NAME[dtype].array
        assert array is not None  # numbers alone are staged
        self.dtype, self.shape = array, tuple(shape)
        self.row_bytes = int(numpy.prod(self.shape, dtype=numpy.int64)) * array.itemsize
        self._starts = numpy.asarray(starts, numpy.int64)
        self._file = os.open(path, os.O_RDONLY)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def rows(self, first: int, count: int) -> numpy.ndarray:
        """Rows first..first+count as they stand."""
        out = numpy.empty((count, *self.shape), self.dtype)
        self._read(out, first)
        return out

    def take(self, wanted: numpy.ndarray) -> numpy.ndarray:
        """The rows with the numbers `wanted` [n] int64, in that order."""
        if not len(wanted):
            return self.rows(0, 0)
        run = numpy.searchsorted(self._starts, wanted, side="right")
        small = numpy.uint16 if len(self._starts) < 1 << 16 else numpy.int64  # is sorted faster
        grouped = numpy.argsort(run.astype(small), kind="stable")
        runs, heads = numpy.unique(run[grouped], return_index=True)
        lows = numpy.minimum.reduceat(wanted[grouped], heads)
        spans = numpy.maximum.reduceat(wanted[grouped], heads) + 1 - lows
        buffer = numpy.empty((int(spans.sum()), *self.shape), self.dtype)
        begins = numpy.cumsum(spans) - spans
        for low, span, begin in zip(lows.tolist(), spans.tolist(), begins.tolist()):
            self._read(buffer[begin : begin + span], low)
        shift = numpy.empty(int(runs[-1]) + 1, numpy.int64)
        shift[runs] = begins - lows
        found: numpy.ndarray = buffer.take(wanted + shift[run], axis=0)
        return found

    def _read(self, out: numpy.ndarray, first: int) -> None:
        left = out.reshape(-1).view(numpy.uint8).data
        offset = first * self.row_bytes
        while len(left):
            size = os.preadv(self._file, [left], offset)
            if not size:
                raise OSError(f"a file of the conversion ends before byte {offset + len(left)}")
            left, offset = left[size:], offset + size


class Staged:
    """What `migrate.ids.staging` left in `directory`."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._columns: Dict[str, Column] = {}

    def close(self) -> None:
        """Closes the files."""
        while self._columns:
            self._columns.popitem()[1].close()

    def rows(self, origins: Sequence[Origin], first: int, count: int) -> numpy.ndarray:
        """Rows first..first+count of the target; several origins stand side by side."""
        found = [self._rows(origin, first, count) for origin in origins]
        return found[0] if len(found) == 1 else numpy.hstack(found)

    def _rows(self, origin: Origin, first: int, count: int) -> numpy.ndarray:
        if not origin.column:
            return numpy.arange(first, first + count)
        column = self._column(origin.column)
        if not origin.map:
            return column.rows(first, count)
        wanted = self._column(origin.map).rows(first, count)
        there = wanted != FREE
        if there.all():
            return column.take(wanted)
        out = numpy.empty((count, *column.shape), column.dtype)
        out[~there] = filler(origin.fill, column.dtype)
        out[there] = column.take(wanted[there])
        return out

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = open_column(self._directory, name)
        return self._columns[name]


def filler(value: float, dtype: numpy.dtype) -> numpy.ndarray:
    """`value` as one number of `dtype`, which may be bfloat16."""
    if dtype.names is None:
        return numpy.array(value, dtype)
    bits = numpy.array(value, numpy.float32).view(numpy.uint32) >> 16
    return bits.astype(numpy.uint16).view(dtype)


def open_column(directory: str, name: str) -> Column:
    """The column or map `name` of `directory`: TABLE.COLUMN, described in TABLE.json."""
    stem, _, leaf = name.rpartition(".")
    with open(os.path.join(directory, stem + ".json"), encoding="utf-8") as file:
        described = json.load(file)
    dtype, shape = described["columns"][leaf]
    return Column(os.path.join(directory, name), described["starts"], dtype, shape)


def describe(
    directory: str, stem: str, starts: Sequence[int], columns: Dict[str, Tuple[str, List[int]]]
) -> None:
    """Writes STEM.json: the runs, and the data type and sizes of a row of each column."""
    data: Dict[str, Any] = {"starts": list(starts), "columns": columns}
    with open(os.path.join(directory, stem + ".json"), "w", encoding="utf-8") as file:
        json.dump(data, file)
