"""Batches of a data set, as both sides take them."""

from __future__ import annotations

import itertools
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np
import pyarrow as pa

from migrate.behaviour.setting import Setting
from migrate.scoring.model import Feature, Input
from migrate.scoring.run import batches
from semisync.common.errors import BadInput


class Rows(NamedTuple):
    """Some rows of one file.

    Attributes:
        file, skipped: where they are from, and how many rows of the file are before them.
        rows: how many there are.
        read: their features.
        fixed: rows that the graph takes at a time; 0: any number.
    """

    file: str
    skipped: int
    rows: int
    read: List[Feature]
    fixed: int

    @property
    def size(self) -> int:
        """The rows that both sides are given: where they are too few, the last one again."""
        return max(self.rows, self.fixed)

    @property
    def features(self) -> List[Feature]:
        """The features, padded to `size` rows."""
        return [one.padded(self.size - self.rows) for one in self.read]

    def first(self, count: int) -> Rows:
        """At most `count` of them."""
        return self if count >= self.rows else self.part(0, count)

    def part(self, start: int, stop: int) -> Rows:
        """Those from one number to another."""
        read = [one.part(start, stop) for one in self.read]
        return self._replace(skipped=self.skipped + start, rows=stop - start, read=read)


def read_rows(
    data: str, inputs: Sequence[Input], setting: Setting, fixed: Optional[int]
) -> Iterator[Rows]:
    """The rows of a data set in order.

    Args:
        fixed: the only number of rows that the graph takes.

    Raises:
        BadInput: as `migrate.scoring.run.batches`.
    """
    told = setting.reading
    lists = [*told.lists, *(one.column for one in inputs if one.several)]
    reading = told._replace(size=min(told.size, fixed or sys.maxsize), lists=lists)
    for batch, features in batches(data, inputs, reading=reading):
        yield Rows(batch.file, batch.skipped, batch.table.num_rows, features, fixed or 0)


def read_full(
    data: str, inputs: Sequence[Input], setting: Setting, fixed: Optional[int]
) -> Iterator[List[Feature]]:
    """The features of batches of one size, in order and without end: after the last row comes the
    first again.

    A smaller batch would be another training step than the job's.

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
    """What tells how large the lists of a row of a dense feature are."""
    values = feature.values
    return values.shape[1:] if isinstance(values, np.ndarray) else values.type
