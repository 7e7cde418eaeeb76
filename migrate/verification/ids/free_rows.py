"""Are the rows of the target that have no id as they must be?"""

from __future__ import annotations

from typing import Callable, List, Set

import numpy

from migrate.verification.ids.sides import BothSides


class FreeRows:
    """Goes over the rows of the target that have no id, block by block; names the first of each
    column that is not as it must be. differing: how many there are."""

    def __init__(self, sides: BothSides, differs: Callable[[str], None]) -> None:
        self._sides, self._differs = sides, differs
        self._named: Set[str] = set()
        self.differing = 0

    def check(self, first: int, there: numpy.ndarray, rows: List[numpy.ndarray]) -> None:
        """rows: of each column, from row `first` on; there: which of them have an id."""
        found = numpy.zeros(len(there), bool)
        for column, values in zip(self._sides.columns, rows):
            wrong = ~there & (values != column.free).any(axis=1)
            found |= wrong
            if wrong.any() and column.name not in self._named:
                self._named.add(column.name)
                self._differs(
                    f"table {self._sides.table.name!r}: row {first + int(wrong.argmax())} has no "
                    f"id, but {column.name} that a free row does not have"
                )
        self.differing += int(found.sum())

    def check_behind(self) -> None:
        """The rows behind the last id, where the target has a list of the ids alone."""
        for first, rows in self._sides.behind():
            self.check(first, numpy.zeros(len(rows[0]), bool), rows)
