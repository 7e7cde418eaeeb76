"""Batches of a data set, in the form that both sides take."""

from __future__ import annotations

import itertools
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np
import pyarrow as pa

from migrate.behaviour.setting import Setting
from migrate.scoring.model import Feature, Input
from migrate.scoring.run import Reading, batches
from semisync.common.errors import BadInput


class Rows(NamedTuple):
    """Some rows of one file.

    Attributes:
        file, numbers: their file, and the number of each in that file, from 0.
        read: their features.
        fixed: rows that the graph takes at a time; 0: any number.
    """

    file: str
    numbers: np.ndarray
    read: List[Feature]
    fixed: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.numbers)

    @property
    def size(self) -> int:
        """The number of rows for both sides; if there are too few, the last one is repeated."""
        return max(self.rows, self.fixed)

    @property
    def features(self) -> List[Feature]:
        """The features, padded to `size` rows."""
        return [one.padded(self.size - self.rows) for one in self.read]

    def part(self, start: int, stop: int) -> Rows:
        """The rows from one position to another."""
        read = [one.part(start, stop) for one in self.read]
        return self._replace(numbers=self.numbers[start:stop], read=read)

    def take(self, places: np.ndarray) -> Rows:
        """The rows at some positions, (n,)."""
        read = [one.take(places) for one in self.read]
        return self._replace(numbers=self.numbers[places], read=read)


def read_rows(
    data: str,
    inputs: Sequence[Input],
    setting: Setting,
    fixed: Optional[int],
    chosen: Optional[np.ndarray] = None,
) -> Iterator[Rows]:
    """The rows of a data set in order.

    Args:
        fixed: the only number of rows that the graph takes.
        chosen: those to read, counted over the whole data set from 0, ascending; None: all.

    Raises:
        BadInput: as `migrate.scoring.run.batches`.
    """
    size = min(setting.reading.size, fixed or sys.maxsize)
    found = _read(data, inputs, reading_of(setting, inputs, size), fixed)
    return found if chosen is None else _together(_only(found, chosen), inputs, size)


def reading_of(setting: Setting, inputs: Sequence[Input], size: int) -> Reading:
    """How the rows for both sides are read, `size` at a time."""
    lists = [*setting.reading.lists, *(one.column for one in inputs if one.several)]
    return setting.reading._replace(size=size, lists=lists)


def _read(
    data: str, inputs: Sequence[Input], reading: Reading, fixed: Optional[int]
) -> Iterator[Rows]:
    for batch, features in batches(data, inputs, reading=reading):
        numbers = batch.skipped + np.arange(batch.table.num_rows)
        yield Rows(batch.file, numbers, features, fixed or 0)


def _only(found: Iterator[Rows], chosen: np.ndarray) -> Iterator[Rows]:
    """The chosen ones of each batch, up to the last."""
    before = 0
    for rows in found:
        first, last = np.searchsorted(chosen, [before, before + rows.rows])
        if last > first:
            yield rows.take(chosen[first:last] - before)
        # No chosen row is left: the rest of the data set is not read.
        if last == len(chosen):
            return
        before += rows.rows


def _together(found: Iterator[Rows], inputs: Sequence[Input], size: int) -> Iterator[Rows]:
    """The same rows in fewer batches, each of one file and with lists of one length."""
    waiting: List[Rows] = []

    def joined() -> Rows:
        numbers = np.concatenate([one.numbers for one in waiting])
        return waiting[0]._replace(numbers=numbers, read=_joined(waiting, inputs))

    for rows in found:
        if waiting and (
            sum(one.rows for one in waiting) + rows.rows > size
            # A batch has one file, whose row numbers a report names, and one length of dense lists.
            or (rows.file, _shape(rows)) != (waiting[0].file, _shape(waiting[0]))
        ):
            yield joined()
            waiting = []
        waiting.append(rows)
    if waiting:
        yield joined()


def _shape(rows: Rows) -> List[Any]:
    return [_sizes(feature) for feature in rows.read]


def read_full(
    data: str, inputs: Sequence[Input], setting: Setting, fixed: Optional[int]
) -> Iterator[List[Feature]]:
    """The features of batches of one size, in order and without end: the first row follows the
    last.

    A smaller batch would not be the job's training step.

    Raises:
        BadInput: as `read_rows`.
    """
    size = fixed or setting.reading.size
    waiting: List[Rows] = []
    count = 0
    for rows in itertools.chain.from_iterable(
        read_rows(data, inputs, setting, fixed) for _ in itertools.count()
    ):
        start = 0
        while count + rows.rows - start >= size:
            stop = start + size - count
            yield _joined([*waiting, rows.part(start, stop)], inputs)
            waiting, count, start = [], 0, stop
        if start < rows.rows:
            waiting.append(rows.part(start, rows.rows))
            count += rows.rows - start


def _joined(parts: Sequence[Rows], inputs: Sequence[Input]) -> List[Feature]:
    found = []
    for one, *features in zip(inputs, *(part.read for part in parts)):
        if len({_sizes(feature) for feature in features}) > 1:
            raise BadInput(
                f"{parts[0].file}: column {one.column!r} has lists of several lengths; the dense "
                f"input {one.name!r} takes one"
            )
        values = [feature.values for feature in features]
        together = np.concatenate if isinstance(values[0], np.ndarray) else pa.concat_arrays
        lengths = [feature.lengths for feature in features if feature.lengths is not None]
        found.append(Feature(together(values), np.concatenate(lengths) if lengths else None))
    return found


def _sizes(feature: Feature) -> Any:
    """The size of a row's lists in a dense feature."""
    values = feature.values
    return values.shape[1:] if isinstance(values, np.ndarray) else values.type
