"""Which features are numbers of a table's rows, as the graph has them, and how many rows it has."""

from __future__ import annotations

from typing import Dict, List, NamedTuple

from migrate.model.load import Written


class TableRows(NamedTuple):
    """What the values of a feature may be: numbers from 0, or `least`, to below `rows`."""

    table: str
    rows: int
    least: int


def table_rows(written: Written) -> Dict[str, List[TableRows]]:
    """By the name of the feature. Tables by raw id have any id, and ids that the graph computes any
    feature."""
    sizes: Dict[str, int] = {}
    for one in written.parameters:
        if not one.grows:
            size = one.rows[1] if one.rows else one.size[0] if one.size else 0
            sizes[one.variable] = max(size, sizes.get(one.variable, 0))
    found: Dict[str, List[TableRows]] = {}
    for lookup in written.features["lookups"]:
        rows, ids = sizes.get(lookup["table"]), lookup["ids"]
        if rows and [step["op"] for step in ids] == ["input"]:
            least = -(1 << 63) if "ids >= 0" in lookup.get("keep", []) else 0
            found.setdefault(ids[0]["name"], []).append(TableRows(lookup["table"], rows, least))
    return found
