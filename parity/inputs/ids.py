"""A column of ids, with which an embedding table is looked up: one per row, or several (a bag)."""

from typing import Any, NamedTuple, Optional

import numpy as np

from parity.inputs.checks import Column
from semisync.common.errors import BadInput


class Ids(NamedTuple):
    """`values` of all rows, one row after the other; `lengths` says how many each row has."""

    values: np.ndarray  # int64 or str (ids,)
    lengths: Optional[np.ndarray] = None  # int64 (n,); None for one per row
    table: Optional[str] = None  # the table that they look up; None for one of the column's name

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.values) if self.lengths is None else len(self.lengths)

    def row_numbers(self) -> np.ndarray:
        """int64 (ids,): the row of each id."""
        if self.lengths is None:
            return np.arange(len(self.values))
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def take(self, rows: np.ndarray) -> "Ids":
        """The given rows alone, in that order; row numbers or bool (n,)."""
        if self.lengths is None:
            return self._replace(values=self.values[rows])
        lengths = self.lengths[rows]
        starts = (np.cumsum(self.lengths) - self.lengths)[rows]
        first = np.cumsum(lengths) - lengths
        # From each id's place among those taken to its place among all.
        places = np.arange(int(lengths.sum())) + np.repeat(starts - first, lengths)
        return self._replace(values=self.values[places], lengths=lengths)

    def rows_with(self, chosen: np.ndarray) -> np.ndarray:
        """bool (n,): rows that have one of the chosen ids; chosen is bool (ids,)."""
        if self.lengths is None:
            return chosen
        return np.bincount(self.row_numbers()[chosen], minlength=self.rows) > 0


def to_ids(values: Any, column: Column) -> Ids:
    """Ids from one value per row, or from a sequence of ids; raises BadInput for anything else."""
    if isinstance(values, Ids):
        return values
    try:
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind in "iuUS":
            return Ids(array)
    except ValueError:  # bags of several lengths
        pass
    try:
        lengths = np.array([len(bag) for bag in values], np.int64)
    except TypeError as error:
        raise BadInput(f"{column} has neither an id nor a list of ids in each row") from error
    bags = [np.asarray(bag) for bag in values if len(bag)]
    flat = np.concatenate(bags) if bags else np.zeros(0, np.int64)
    if flat.ndim != 1 or flat.dtype.kind not in "iuUS":
        raise BadInput(f"{column} holds {flat.dtype}; ids are whole numbers or words")
    return Ids(flat, lengths)
