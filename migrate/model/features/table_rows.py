"""Which features are numbers of a table's rows, as the graph has them, and how many rows it has."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

import numpy as np

from migrate.model.parameters import Parameter
from semisync.common.errors import BadInput


class TableRows(NamedTuple):
    """What the values of a feature may be: numbers from 0, or `least`, to below `rows`."""

    table: str
    rows: int
    least: int

    def strays(self, values: np.ndarray) -> np.ndarray:
        """The places of the values, whole numbers (n,), that are no row."""
        return np.flatnonzero((values < self.least) | (values >= self.rows))

    def refusal(self, place: str, value: int, more: str = "") -> BadInput:
        """The error of a value that is no row; more: behind the rows that there are."""
        return BadInput(
            f"{place} is {value}, no row of the table {self.table!r}, which has the rows 0 to "
            f"{self.rows - 1:,}{more}: TensorFlow ends there; leave those rows out, or give the "
            "data that the job reads"
        )


def table_rows(
    parameters: Iterable[Parameter], features: Mapping[str, Any]
) -> Dict[str, List[TableRows]]:
    """By the name of the feature. Tables by raw id have any id, and ids that the graph computes any
    feature.

    Args:
        features: as `migrate.model.features.description` has them.
    """
    sizes: Dict[str, int] = {}
    for one in parameters:
        if not one.grows:
            size = one.rows[1] if one.rows else one.size[0] if one.size else 0
            sizes[one.variable] = max(size, sizes.get(one.variable, 0))
    found: Dict[str, List[TableRows]] = {}
    for lookup in features["lookups"]:
        rows, ids = sizes.get(lookup["table"]), lookup["ids"]
        if rows and [step["op"] for step in ids] == ["input"]:
            least = -(1 << 63) if "ids >= 0" in lookup.get("keep", []) else 0
            found.setdefault(ids[0]["name"], []).append(TableRows(lookup["table"], rows, least))
    return found
