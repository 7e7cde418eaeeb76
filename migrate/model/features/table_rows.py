"""The features whose values are row numbers of a table, unchanged, and the table's size."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

import numpy as np

from migrate.model.parameters import Parameter
from semisync.common.errors import BadInput


class TableRows(NamedTuple):
    """The valid values of a feature: numbers from 0, or `least`, to below `rows`."""

    table: str
    rows: int
    least: int

    def strays(self, values: np.ndarray) -> np.ndarray:
        """The positions of the values, integers (n,), that are no row."""
        return np.flatnonzero((values < self.least) | (values >= self.rows))

    def refusal(self, place: str, value: int, more: str = "") -> BadInput:
        """The error for a value that is no row; more: text behind the range of rows."""
        return BadInput(
            f"{place} is {value}, no row of the table {self.table!r}, which has the rows 0 to "
            f"{self.rows - 1:,}{more}: TensorFlow ends there; leave those rows out, or give the "
            "data that the job reads"
        )


def table_rows(
    parameters: Iterable[Parameter], features: Mapping[str, Any]
) -> Dict[str, List[TableRows]]:
    """The rows by the name of the feature; without tables by raw id, which take any id, and without
    features from which the graph computes ids.

    Args:
        features: in the form of `migrate.model.features.description`.
    """
    sizes: Dict[str, int] = {}
    for one in parameters:
        if not one.grows:
            # The largest end of a row range over all partitions is the size of the whole table.
            size = one.rows[1] if one.rows else one.size[0] if one.size else 0
            sizes[one.variable] = max(size, sizes.get(one.variable, 0))
    found: Dict[str, List[TableRows]] = {}
    for lookup in features["lookups"]:
        rows, ids = sizes.get(lookup["table"]), lookup["ids"]
        if rows and [step["op"] for step in ids] == ["input"]:
            # A look-up that leaves negative ids out takes every negative number.
            least = -(1 << 63) if "ids >= 0" in lookup.get("keep", []) else 0
            found.setdefault(ids[0]["name"], []).append(TableRows(lookup["table"], rows, least))
    return found
