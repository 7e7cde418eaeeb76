"""Rows of sorted pieces, fetched in the order in which the target wants them.

A column is a file of rows of one size, run after run (`migrate.ids.runs`). A map is a file of
int64: for each row of the target the row of the column that goes there, or -1 where none does. The
rows that a range of the target wants lie close together in each run, since runs are sorted as the
target is: about one read per run fetches them. They are put in order a block at a time, which stays
in the CPU's cache until it is written.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from migrate.manifest.transforms import filler
from migrate.stream.sorting import sort
from semisync.common import json_text
from semisync.encoding.dtypes import number_type

FOLDER = "ids"  # of the columns and maps, in the directory of the conversion
FREE = -1  # in a map: no row of the source comes here
BLOCK_BYTES = 1 << 20  # put in order at a time
FETCH_ROWS = 1 << 19  # fetched together at most: sorting takes some times their 8 bytes each
_GAP_BYTES = 4 << 10  # gaps up to this are read: another call costs more


class Origin(NamedTuple):
    """A source of the target's values.

    Attributes:
        map: name of the map; "" takes the column's rows one by one.
        column: name of the column; "" is the row's own number.
        fill: the value of the rows that the map leaves free.
    """

    map: str
    column: str
    fill: float = 0


class Column:
    """One column of a table in runs."""

    def __init__(self, path: str, dtype: str, shape: Sequence[int]) -> None:
        self.dtype, self.shape = number_type(dtype), tuple(shape)
        self.row_bytes = math.prod(self.shape) * self.dtype.itemsize
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
        fetched, places = self.fetch(wanted)
        rows: numpy.ndarray = fetched.take(places, axis=0)
        return rows

    def fetch(self, wanted: numpy.ndarray, fill: float = 0) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """Reads the rows numbered `wanted` int64 [n], or FREE, with those between them.

        Returns:
            The rows and the place [n] of each in them; FREE has a row of `fill`.
        """
        gap = max(_GAP_BYTES // self.row_bytes, 1)
        ordered, order = sort(wanted)
        free = int(numpy.searchsorted(ordered, 0))  # FREE is -1
        ordered, order = ordered[free:], order[free:]
        # A read begins at each row behind a wide gap, and at the first, whose gap is made up.
        (firsts,) = numpy.nonzero(numpy.diff(ordered, prepend=ordered[:1] - gap - 1) > gap)
        counts = numpy.diff(firsts, append=len(ordered))  # wanted ones of each read
        lows, ends = ordered[firsts], ordered[firsts + counts - 1] + 1
        begins = 1 + numpy.cumsum(ends - lows) - (ends - lows)  # row 0 is the filler
        buffer = numpy.empty((1 + int((ends - lows).sum()), *self.shape), self.dtype)
        buffer[0] = filler(fill, self.dtype)
        for low, end, begin in zip(lows.tolist(), ends.tolist(), begins.tolist()):
            self._read(buffer[begin : begin + end - low], low)
        # Zero, the filler's row, stays for FREE.
        places = numpy.zeros(len(wanted), numpy.int64)
        places[order] = ordered + numpy.repeat(begins - lows, counts)
        return buffer, places

    def _read(self, out: numpy.ndarray, first: int) -> None:
        left = out.reshape(-1).view(numpy.uint8).data
        offset = first * self.row_bytes
        while len(left):
            size = os.preadv(self._file, [left], offset)
            if not size:
                raise OSError(f"a file of the conversion ends before byte {offset + len(left)}")
            left, offset = left[size:], offset + size


class Columns:
    """The columns and maps that stand in `directory`."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._columns: Dict[str, Column] = {}

    def close(self) -> None:
        """Closes the files."""
        while self._columns:
            self._columns.popitem()[1].close()

    def blocks(
        self, origins: Sequence[Origin], first: int, count: int
    ) -> Iterator[Tuple[int, numpy.ndarray]]:
        """Yields rows [first, first + count) of the target in blocks: (row after `first`, rows).

        Several origins stand side by side. A block is valid until the next one.
        """
        for begin in range(0, count, FETCH_ROWS):
            some = min(FETCH_ROWS, count - begin)
            for start, rows in self._blocks(origins, first + begin, some):
                yield begin + start, rows

    def _blocks(
        self, origins: Sequence[Origin], first: int, count: int
    ) -> Iterator[Tuple[int, numpy.ndarray]]:
        """As `blocks`, of rows that are fetched together."""
        fetched = [self._fetched(origin, first, count) for origin in origins]
        step = max(BLOCK_BYTES // (sum(rows[:1].nbytes for rows, _ in fetched) or 1), 1)
        blocks = [
            numpy.empty((min(step, count), *rows.shape[1:]), rows.dtype) for rows, _ in fetched
        ]
        for start in range(0, count, step):
            block = slice(start, min(start + step, count))
            columns = [
                rows[block] if places is None else taken(rows, places[block], out)
                for (rows, places), out in zip(fetched, blocks)
            ]
            yield start, columns[0] if len(columns) == 1 else numpy.hstack(columns)

    def _fetched(
        self, origin: Origin, first: int, count: int
    ) -> Tuple[numpy.ndarray, Optional[numpy.ndarray]]:
        """Rows, and the places in them of rows first..first+count; None if these are the rows."""
        if not origin.column:
            return numpy.arange(first, first + count), None
        column = self._column(origin.column)
        if not origin.map:
            return column.rows(first, count), None
        return column.fetch(self._column(origin.map).rows(first, count), origin.fill)

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = open_column(self._directory, name)
        return self._columns[name]


def taken(rows: numpy.ndarray, order: numpy.ndarray, out: numpy.ndarray) -> numpy.ndarray:
    """The rows numbered `order` [n], in that order, in the first rows of `out`.

    `out` is reused: the kernel clears each page of a new array. With the default mode numpy would
    make a copy first; the numbers are right, so nothing is clipped.
    """
    return rows.take(order, axis=0, out=out[: len(order)], mode="clip")


def open_column(directory: str, name: str) -> Column:
    """The column or map `name` of `directory`: TABLE.COLUMN, described in TABLE.json."""
    stem, _, leaf = name.rpartition(".")
    described = json_text.read(os.path.join(directory, stem + ".json"))
    dtype, shape = described["columns"][leaf]
    return Column(os.path.join(directory, name), dtype, shape)


def describe(directory: str, stem: str, columns: Dict[str, Tuple[str, List[int]]]) -> None:
    """Writes STEM.json: the data type and the sizes of a row of each column."""
    data: Dict[str, Any] = {"columns": columns}
    with open(os.path.join(directory, stem + ".json"), "w", encoding="utf-8") as file:
        json.dump(data, file)
