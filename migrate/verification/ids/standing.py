"""Does every id stand where the target will look for it, and are the rows without one empty?

rows, mch    the ids ascend, and the free rows are behind them
mpzch        an id is found from its home row on within max_probe rows, none of them free
dynamicemb   the order does not matter
"""

from __future__ import annotations

from typing import Callable, List, Optional, Set

import numpy

from migrate.ids.hashing import home_rows
from migrate.manifest.manifest import TableSummary
from migrate.verification.ids.sides import BothSides


class Standing:
    """Checks the ids of a table of the target, block by block; `differs` gets the differences."""

    def __init__(self, table: TableSummary, differs: Callable[[str], None]) -> None:
        assert table.ids is not None
        self._table, self._ids, self._differs = table, table.ids, differs
        self._count = 0
        self._last: Optional[int] = None  # the last id, where they ascend
        self._free = -1  # the last free row
        self._round: Optional[int] = None  # in this bucket, the first home of ids that went round

    def check(self, first: int, ids: numpy.ndarray, there: numpy.ndarray) -> None:
        """Checks the ids [n] of the rows from `first` on; `there` is the mask of rows with one."""
        self._count += int(there.sum())
        if self._ids.mode in ("rows", "mch"):
            self._check_order(ids)
        elif self._ids.mode == "mpzch":
            size = self._table.rows // self._ids.buckets
            begin = first
            while begin < first + len(ids):
                bucket = begin // size
                end = min((bucket + 1) * size, first + len(ids))
                part = slice(begin - first, end - first)
                self._check_bucket(bucket * size, size, begin, ids[part], there[part])
                begin = end

    def end(self) -> None:
        """Checks the number of ids, after the last block."""
        if self._count != self._ids.count:
            self._say(f"has {self._count} ids, the manifest says {self._ids.count}")

    def _check_order(self, ids: numpy.ndarray) -> None:
        """Free rows have the largest number, so that ids before it ascend and it repeats."""
        if not len(ids):
            return
        down = ids[1:] < ids[:-1] if self._ids.mode == "mch" else ids[1:] <= ids[:-1]
        if down.any() or (self._last is not None and ids[0] < self._last):
            self._say("has ids that do not ascend")
        self._last = int(ids[-1])

    def _check_bucket(
        self, bucket: int, size: int, first: int, ids: numpy.ndarray, there: numpy.ndarray
    ) -> None:
        """Some rows of the bucket that begins at row `bucket`."""
        if first == bucket:
            self._free, self._round = bucket - 1, None
        rows = numpy.arange(first, first + len(ids))
        free = numpy.maximum(numpy.maximum.accumulate(numpy.where(there, -1, rows)), self._free)
        home = home_rows(ids, self._table.rows, self._ids.buckets)
        around = there & (home > rows)
        # A search ends at a free row: there must be none from the home row on, or, once round the
        # end, from the bucket's first row on. Free rows up to its end are checked below, when it is
        # known.
        gap = there & numpy.where(around, free >= bucket, free >= home)
        probes = (rows - home) % size + 1
        wrong = gap | (there & ((home // size != bucket // size) | (probes > self._ids.max_probe)))
        if wrong.any():
            row = int(wrong.argmax())
            self._say(f"has id {ids[row]} in row {first + row}, where its module does not find it")
        self._free = int(free[-1])
        if around.any():
            began = int(home[around].min())
            self._round = began if self._round is None else min(began, self._round)
        ends = first + len(ids) == bucket + size
        if ends and self._round is not None and self._free >= self._round:
            self._say("has ids that went round the end of a bucket past a free row")

    def _say(self, what: str) -> None:
        self._differs(f"table {self._table.name!r} {what}")


class FreeRows:
    """Checks the rows of the target that have no id, block by block; names the first wrong one of
    each column.

    Attributes:
        differing: how many there are.
    """

    def __init__(self, sides: BothSides, differs: Callable[[str], None]) -> None:
        self._sides, self._differs = sides, differs
        self._named: Set[str] = set()
        self.differing = 0

    def check(self, first: int, there: numpy.ndarray, rows: List[numpy.ndarray]) -> None:
        """Checks the free rows of each column from row `first` on; `there` masks the others."""
        differing = numpy.zeros(len(there), bool)
        for column, values in zip(self._sides.columns, rows):
            wrong = ~there & (values != column.free).any(axis=1)
            differing |= wrong
            if wrong.any() and column.name not in self._named:
                self._named.add(column.name)
                self._differs(
                    f"table {self._sides.table.name!r}: row {first + int(wrong.argmax())} has no "
                    f"id, but {column.name} that a free row does not have"
                )
        self.differing += int(differing.sum())

    def check_behind(self) -> None:
        """Checks the rows behind the last id, where the target has only a list of the ids."""
        for first, rows in self._sides.behind():
            self.check(first, numpy.zeros(len(rows[0]), bool), rows)
