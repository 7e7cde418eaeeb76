"""The largest difference of one output, over batches."""

from __future__ import annotations

from typing import Callable, Optional

import numpy as np

from migrate.behaviour.difference import apart, place, plain
from migrate.behaviour.report import OutputDifference, Place
from migrate.behaviour.rows import Rows


class Largest:
    """The largest difference so far: `take` adds a batch, `told` returns it."""

    def __init__(self, output: str, leg: str) -> None:
        self._found = OutputDifference(output, leg, 0.0, None, 0.0, None, 0)

    def take(
        self,
        batch: Rows,
        theirs: np.ndarray,
        ours: np.ndarray,
        rounding: Optional[Callable[[], np.ndarray]] = None,
    ) -> bool:
        """Adds one batch; returns whether one of its rows is too far from TensorFlow's.

        Args:
            rounding: returns that of TensorFlow's values; called only if one is far from it.
        """
        theirs, ours = of_rows(batch, theirs), of_rows(batch, ours)
        if theirs.shape != ours.shape:
            told = (str(list(array.shape)) for array in (theirs, ours))
            at = Place(batch.file, None, (), *(f"the shape {shape}" for shape in told))
            self._found = self._found._replace(absolute=float("inf"), absolute_at=at)
            self._count(batch.rows)
            return True
        if not theirs.size:
            return False
        found = apart(theirs, ours)
        if rounding is not None and found.beyond.any() and theirs.dtype.kind == "f":
            found = apart(theirs, ours, rounding=of_rows(batch, rounding()))
        absolute, relative = float(found.absolute.max()), float(found.relative.max())
        if absolute > self._found.absolute:
            at = at_largest(batch, found.absolute, theirs, ours)
            self._found = self._found._replace(absolute=absolute, absolute_at=at)
        if relative > self._found.relative:
            at = at_largest(batch, found.relative, theirs, ours)
            self._found = self._found._replace(relative=relative, relative_at=at)
        rows = found.beyond.reshape(len(theirs), -1) if theirs.ndim else found.beyond.reshape(1, 1)
        self._count(int(rows.any(1).sum()))
        return bool(found.beyond.any())

    def _count(self, rows: int) -> None:
        self._found = self._found._replace(beyond=self._found.beyond + rows)

    def told(self) -> OutputDifference:
        """The largest difference so far."""
        return self._found


def at_largest(batch: Rows, sizes: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> Place:
    """The place of the largest of `sizes`."""
    index = place(int(np.argmax(sizes)), sizes.shape)
    row: Optional[int] = None
    # A value without a row per row of the batch, such as a loss, has no row number.
    if index and len(theirs) == batch.rows:
        row = int(batch.numbers[index[0]]) + 1
    return Place(batch.file, row, index, plain(theirs[index]), plain(ours[index]))


def of_rows(batch: Rows, value: np.ndarray) -> np.ndarray:
    """`value` without the results of repeated rows."""
    return value[: batch.rows] if value.shape[:1] == (batch.size,) else value
