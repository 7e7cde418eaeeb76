"""The sentinels of MutableDenseHashTables, read from the graph that saved them.

A Saver stores such a table through LookupTableExport; the table's own node takes its empty_key and
deleted_key as constants.
"""

from __future__ import annotations

from typing import Dict, Optional

from migrate.graph.constants import constant_integer, constant_strings
from migrate.graph.lookups import saved_tensors
from migrate.graph.metagraph import Graph, Node
from migrate.hash_tables.lookup import Key, Sentinels
from semisync.common.errors import BadInput

_EXPORTS = {"LookupTableExport", "LookupTableExportV2"}
_DENSE = {"MutableDenseHashTable", "MutableDenseHashTableV2"}


def find_sentinels(graph: Graph) -> Dict[str, Sentinels]:
    """By the name of the table, which is that of its keys without `-keys`."""
    sentinels = {}
    for save in graph.nodes.values():
        if save.op != "SaveV2":
            continue
        for edge, name, _ in saved_tensors(graph, save):
            export = graph.nodes.get(edge[0])
            if name.endswith("-keys") and export is not None and export.op in _EXPORTS:
                table = graph.nodes.get(export.inputs[0][0]) if export.inputs else None
                if table is not None and table.op in _DENSE:
                    sentinels[name[: -len("-keys")]] = _sentinels(graph, table)
    return sentinels


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
