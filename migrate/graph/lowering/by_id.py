"""Tables by raw id: hash tables of vectors, as variables whose rows ids find, and their training.

They are contrib's MutableHashTable, of one part, which no optimizer trains, or TFRA's. TFRA deals
ids to shards, finds the rows of each, stitches them together and keeps them in a local variable,
the look-up's wrapper, which the model reads. A training op changes the wrappers of the look-up and
of the slots, whose rows are then put back. Here that becomes

    TABLE                      VarHandleOp, a variable of the model with a row per id
    FindRows(TABLE, ids, default)
                               the rows of ids; for those that TABLE does not have the default, one
                               for all, [dim] or [1, dim], or one for each, [n, dim]
    ById<Apply...>(TABLE, SLOTS..., ids)
                               the training op of the wrappers, with the ids whose rows it changes.
                               The shards of a table, into which a job that semisync wraps
                               deals the gradients of all look-ups, are one
    SLOT/Assign                the initial value of a new id's slot
    ResourceScatterUpdate(TABLE, ids, rows)
                               an insertion of rows into a table that no optimizer trains

The nodes keep the names of those that they replace, and tables have the names under which the Saver
stores them. Any other use of a table stays as it is, and the emitter refuses its ops as unknown.

Source: dynamic_embedding_variable.py, dynamic_embedding_ops.py, dynamic_embedding_optimizer.py of
TFRA 0.6.0
"""

from __future__ import annotations

import math
import re
from typing import AbstractSet, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from graph_rewrite.graph.ops import ASSIGN
from migrate.graph.attributes import shapes
from migrate.graph.lookups import EXPORTS, SAVES, saved_tables, saved_tensors
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.hash_tables import tfra
from migrate.hash_tables.tensors import Stem
from semisync.common.walks import along

FIND = "FindRows"
BY_ID = "ById"

_TABLE = re.compile(r"TFRA>\w+TableOfTensors|MutableHashTableOfTensors(V2)?")
_FIND = re.compile(r"TFRA>\w+TableFind|LookupTableFind(V2)?")
_WRITES = re.compile(r"TFRA>\w+Table(Accum|Insert|Remove)|LookupTable(Insert|Remove)(V2)?")
_APPLY = re.compile(r"ResourceApply[A-Z]\w*")
_READ = "ReadVariableOp"
_SUM = "UnsortedSegmentSum"


class Shards(NamedTuple):
    """The nodes of a table by id.

    Attributes:
        nodes: of its parts, in their order.
        exports: for each part a node that exports its keys and values, if every part has one.
    """

    nodes: Tuple[str, ...]
    exports: Tuple[str, ...]


def tables_by_id(graph: Graph) -> Dict[str, Shards]:
    """The tables by id of a graph, by their names in the checkpoint."""
    stems: Dict[str, List[Tuple[Stem, str]]] = {}
    names = {table.name: name for table, name in saved_tables(graph)}
    beside = _in_files(graph)
    for node in graph.nodes.values():
        if _TABLE.fullmatch(node.op):
            leaf = node.name.rpartition("/")[2]
            name = names.get(node.name, leaf if leaf in beside else node.name)
            stem = tfra.stem_of(name) or Stem(name, name)
            stems.setdefault(stem.table, []).append((stem, node.name))
    exports = {
        node.inputs[0][0]: node.name for node in graph.nodes.values() if EXPORTS.fullmatch(node.op)
    }
    found = {}
    for table, parts in stems.items():
        nodes = tuple(node for _, node in sorted(parts))
        # A graph with some of a table's shards alone cannot look ids up.
        if [stem.number for stem, _ in sorted(parts)] == list(range(parts[0][0].parts or 1)):
            all_export = all(node in exports for node in nodes)
            found[table] = Shards(nodes, tuple(exports[n] for n in nodes) if all_export else ())
    return found


def _in_files(graph: Graph) -> Set[str]:
    """The parts of tables that FileSystemSaver writes, which drops their scopes."""
    saves = [node for node in graph.nodes.values() if node.op in SAVES]
    stored = {name for save in saves for _, name, _ in saved_tensors(graph, save)}
    return {name[: -len(tfra.BESIDE)] for name in stored if name.endswith(tfra.BESIDE)}


def with_tables_by_id(graph: Graph) -> Graph:
    """The graph with its tables by id as variables; itself if it has none."""
    tables = tables_by_id(graph)
    return _Rewriting(graph, tables).done() if tables else graph


def dealing(graph: Graph) -> Dict[str, FrozenSet[str]]:
    """By table in several shards, the ops that compute an id's shard number."""
    shards = {node: name for name, of in tables_by_id(graph).items() for node in of.nodes}
    found: Dict[str, FrozenSet[str]] = {}
    for node in graph.nodes.values():
        deal = graph.nodes[node.inputs[1][0]] if _FIND.fullmatch(node.op) else node
        if deal.op != "DynamicPartition" or node.inputs[0][0] not in shards:
            continue

        def before(edge: Edge, end: Edge = deal.inputs[0]) -> Optional[Edge]:
            return None if edge == end else next(iter(graph.nodes[edge[0]].inputs), None)

        way = along(deal.inputs[1], before, graph.path)
        ops = frozenset(graph.nodes[edge[0]].op for edge in way if edge != deal.inputs[0])
        found[shards[node.inputs[0][0]]] = ops
    return found


def rows_written(graph: Graph, nodes: AbstractSet[str]) -> Set[str]:
    """The nodes of a step, in TensorFlow's graph, that write rows of tables."""
    return {name for name in nodes & graph.nodes.keys() if _WRITES.fullmatch(graph.nodes[name].op)}


def defaults(graph: Graph) -> Dict[Edge, int]:
    """The default of each look-up in TensorFlow, with the number of values in a row."""
    found = {}
    for node in graph.nodes.values():
        table = graph.nodes.get(node.inputs[0][0]) if _FIND.fullmatch(node.op) else None
        if table is not None and _TABLE.fullmatch(table.op):
            sizes = [size for shape in shapes(graph, table, "value_shape") for size in shape or ()]
            found[node.inputs[2]] = math.prod(size or 1 for size in sizes)
    return found


class _Found(NamedTuple):
    """A look-up.

    Attributes:
        node: the one whose output is the look-up.
        default, dealt: of the first shard, which takes a default for each id that is dealt to it.
        dealt: None where there is one shard.
    """

    node: str
    table: str
    ids: Edge
    default: Edge
    dealt: Optional[Edge] = None


class _Dealt(NamedTuple):
    """The rows that the update of one shard of a table takes.

    Attributes:
        rows, ids: of all shards.
        place: the gradient's position among the inputs.
        what: the update without the rows.
        number: the shard's.
    """

    rows: Edge
    ids: Edge
    place: int
    what: Tuple[object, ...]
    number: int


class _Rewriting:
    def __init__(self, graph: Graph, tables: Dict[str, Shards]) -> None:
        self._graph, self._nodes = graph, dict(graph.nodes)
        self._shards = {
            node: (table, number, len(shards.nodes))
            for table, shards in tables.items()
            for number, node in enumerate(shards.nodes)
        }
        self._wrappers: Dict[str, _Found] = {}

    def done(self) -> Graph:
        """The graph, rewritten."""
        found = [one for one in map(self._look_up, self._graph.nodes.values()) if one is not None]
        by_node = {one.node: one for one in found}
        self._wrappers = self._wrapped(by_node)
        instead: Dict[Edge, Edge] = {}
        for one in found:
            self._nodes[one.table] = Node(one.table, "VarHandleOp", (), self._attributes(one))
            inputs = ((one.table, 0), one.ids, one.default)
            self._nodes[one.node] = Node(one.node, FIND, inputs, {})
            if one.dealt is not None:
                # The default is computed per id of the first shard; here it is computed for all
                # ids.
                instead[one.dealt] = one.ids
        # A wrapper holds the rows that were looked up, so that to read it is to look up.
        for wrapper, one in self._wrappers.items():
            for node in self._graph.nodes.values():
                if node.op == _READ and node.inputs[0][0] == wrapper:
                    self._nodes[node.name] = Node(node.name, "Identity", ((one.node, 0),), {})
        updates: Dict[str, List[Node]] = {}
        for node in self._graph.nodes.values():
            if _APPLY.fullmatch(node.op) and node.inputs[0][0] in self._wrappers:
                update = self._update(node)
                updates.setdefault(update.inputs[0][0], []).append(update)
        for of_table in updates.values():
            self._join(of_table)
        # Trained tables get their rows from the optimizer; of the others the job's writes stay.
        kept = {one.table for one in found} - {one.table for one in self._wrappers.values()}
        for node in self._graph.nodes.values():
            place = self._shards.get(node.inputs[0][0]) if _WRITES.fullmatch(node.op) else None
            if place is not None and place[0] in kept:
                self._nodes[node.name] = node._replace(
                    op="ResourceScatterUpdate", inputs=((place[0], 0), *node.inputs[1:])
                )
        trained = self._graph.trainable
        if trained is not None:
            tables = {self._wrappers[name].table for name in trained & set(self._wrappers)}
            trained = frozenset(trained - set(self._wrappers) | tables)
        nodes = {name: _reading(node, instead) for name, node in self._nodes.items()}
        return self._graph.replace(nodes=nodes, trainable=trained)

    def _attributes(self, one: _Found) -> Dict[str, bytes]:
        (shard,) = (node for node, told in self._shards.items() if told[:2] == (one.table, 0))
        attributes = self._graph.nodes[shard].attrs
        return {"dtype": attributes["value_dtype"]} if "value_dtype" in attributes else {}

    def _look_up(self, node: Node) -> Optional[_Found]:
        if _FIND.fullmatch(node.op):
            place = self._shards.get(node.inputs[0][0])
            if place is None or place[2] != 1:
                return None
            return _Found(node.name, place[0], node.inputs[1], node.inputs[2])
        if node.op not in ("DynamicStitch", "ParallelDynamicStitch"):
            return None
        count = len(node.inputs) // 2
        finds = [self._graph.nodes[edge[0]] for edge in node.inputs[count:]]
        if not all(_FIND.fullmatch(find.op) for find in finds):
            return None
        places = [self._shards.get(find.inputs[0][0]) for find in finds]
        dealt = [find.inputs[1] for find in finds]
        where = [self._graph.nodes[name] for name, _ in node.inputs[:count]]
        deal = self._graph.nodes[dealt[0][0]]
        # Ids and positions must be dealt by the same shard numbers, in the order of the shards.
        whole = (
            places[0] is not None
            and places == [(places[0][0], number, count) for number in range(count)]
            and deal.op == "DynamicPartition"
            and dealt == [(deal.name, number) for number in range(count)]
            and all(one.op == "DynamicPartition" for one in where)
            and {_uncast(self._graph, one.inputs[1]) for one in where}
            == {_uncast(self._graph, deal.inputs[1])}
        )
        if not whole or places[0] is None:
            return None
        return _Found(node.name, places[0][0], deal.inputs[0], finds[0].inputs[2], dealt[0])

    def _wrapped(self, found: Dict[str, _Found]) -> Dict[str, _Found]:
        """The variables to which look-ups, and nothing else, are assigned."""
        given: Dict[str, List[Edge]] = {}
        for node in self._graph.nodes.values():
            # A variable's own initializer is not counted.
            if node.op in ASSIGN and node.name != f"{node.inputs[0][0]}/Assign":
                given.setdefault(node.inputs[0][0], []).append(node.inputs[1])
        return {
            name: found[edges[0][0]]
            for name, edges in given.items()
            if len(set(edges)) == 1 and edges[0][0] in found
        }

    def _update(self, node: Node) -> Node:
        """A training op of wrappers, as one of rows."""
        one = self._wrappers[node.inputs[0][0]]
        inputs = []
        for edge in node.inputs:
            slot = self._wrappers.get(edge[0])
            if slot is not None and slot is not one:
                # A new id's slot begins with the default of the slot's look-up.
                first = f"{slot.table}/Assign"
                given = ((slot.table, 0), slot.default)
                self._nodes[first] = Node(first, "AssignVariableOp", given, {})
            inputs.append(self._given(edge) if slot is None else (slot.table, 0))
        op = BY_ID + node.op[len("Resource") :]
        update = node._replace(op=op, inputs=(*inputs, self._given(one.ids)))
        self._nodes[node.name] = update
        return update

    def _given(self, edge: Edge) -> Edge:
        """The source of a tensor, past the ops that only pass it on."""
        return self._graph.beyond(edge, {"Identity"})

    def _join(self, updates: List[Node]) -> None:
        """Joins the updates of a table's shards, if together they take all rows of one deal."""
        dealt = [self._dealt(update) for update in updates]
        first, begun = updates[0], dealt[0]
        if begun is None or len(updates) != self._count(first.inputs[0][0]):
            return
        if {one and one._replace(number=0) for one in dealt} != {begun._replace(number=0)}:
            return
        if {one.number for one in dealt if one} != set(range(len(updates))):
            return
        unique, total = f"{first.name}/unique", f"{first.name}/sum"
        self._nodes[unique] = Node(unique, "Unique", (begun.ids,), {})
        self._nodes[total] = Node(total, "UnsortedSegmentSum", (begun.rows, (unique, 1)), {})
        inputs = list(first.inputs)
        inputs[begun.place], inputs[-1] = (total, 0), (unique, 0)
        self._nodes[first.name] = first._replace(inputs=tuple(inputs))
        # The other shards' updates are part of the first one: nodes that wait for them wait for it.
        for other in updates[1:]:
            self._nodes[other.name] = Node(other.name, "NoOp", (), {}, (first.name,))

    def _dealt(self, update: Node) -> Optional[_Dealt]:
        """The shard's part of dealt gradients, if its update sums them by id; else None."""
        tables = {name for name, _, _ in self._shards.values()}
        own = [edge if edge[0] in tables else _uncast(self._graph, edge) for edge in update.inputs]
        for place, edge in enumerate(own[:-1]):
            total = self._nodes[edge[0]]
            if total.op != _SUM or own[-1] != (total.inputs[1][0], 0):
                continue
            unique, rows = self._nodes[own[-1][0]], total.inputs[0]
            if unique.op not in ("Unique", "UniqueV2"):
                continue
            ids = unique.inputs[0]
            deal, of_ids = self._nodes[rows[0]], self._nodes[ids[0]]
            alike = deal.op == of_ids.op == "DynamicPartition" and rows[1] == ids[1]
            if alike and deal.inputs[1] == of_ids.inputs[1]:
                others = (*own[:place], *own[place + 1 : -1])
                what = (update.op, tuple(sorted(update.attrs.items())), others)
                return _Dealt(deal.inputs[0], of_ids.inputs[0], place, what, rows[1])
        return None

    def _count(self, table: str) -> int:
        return next(count for name, _, count in self._shards.values() if name == table)


def _uncast(graph: Graph, edge: Edge) -> Edge:
    return graph.beyond(edge, {"Cast", "Identity", _READ})


def _reading(node: Node, instead: Dict[Edge, Edge]) -> Node:
    if not any(edge in instead for edge in node.inputs):
        return node
    return node._replace(inputs=tuple(instead.get(edge, edge) for edge in node.inputs))
