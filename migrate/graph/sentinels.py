"""The sentinels of MutableDenseHashTables, read from the graph that saved them.

A Saver stores such a table through LookupTableExport; the table's own node takes its empty_key and
deleted_key as constants.
"""

from __future__ import annotations

from typing import Dict, Optional

from migrate.graph.constants import constant_integer, constant_strings
from migrate.graph.lookups import saved_tables
from migrate.graph.metagraph import Graph, Node
from migrate.hash_tables.lookup import Key, Sentinels
from semisync.common.errors import BadInput

_DENSE = {"MutableDenseHashTable", "MutableDenseHashTableV2"}


def find_sentinels(graph: Graph) -> Dict[str, Sentinels]:
    """The sentinels by the name of the table, that is the name of its keys without `-keys`."""
    return {
        name: _sentinels(graph, table) for table, name in saved_tables(graph) if table.op in _DENSE
    }


def _sentinels(graph: Graph, table: Node) -> Sentinels:
    keys = [_constant(graph, node) for node, _ in table.inputs[:2]]
    if not keys or keys[0] is None:
        raise BadInput(f"{graph.path}: the empty_key of table {table.name!r} is not a constant")
    if len(keys) == 2 and keys[1] is None:
        raise BadInput(f"{graph.path}: the deleted_key of table {table.name!r} is not a constant")
    return Sentinels(keys[0], keys[1] if len(keys) == 2 else None)


def _constant(graph: Graph, name: str) -> Optional[Key]:
    text = constant_strings(graph, name, 1)
    return text[0].encode() if text else constant_integer(graph, name)
