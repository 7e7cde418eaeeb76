"""The embedding tables among a graph's variables, and the partitioning of their rows.

1. The Saver's ops hold the name of each stored variable node, and the rows of a partition.
2. A variable is looked up if a gather along its rows reads it, or a sum by segments that gathers
   itself, which is how TensorFlow 2.x looks up a plain variable for embedding_lookup_sparse, or if
   a sparse matrix of ids is multiplied by it.
3. The gather of a partition takes its row numbers from one output of a DynamicPartition, whose
   second input assigns each id to a partition: `id % P` is strategy "mod"; the maximum of two
   quotients is strategy "div" (embedding_ops._embedding_lookup_and_transform).

Anything that does not look like this is reported as unknown, never guessed.
"""

from __future__ import annotations

import re
from typing import AbstractSet, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from graph_rewrite.graph.index import Use
from graph_rewrite.graph.ops import CALLS, CAST, GATHER, PASS, VARIABLES
from migrate.graph.attributes import flag
from migrate.graph.constants import constant_integer, constant_strings
from migrate.graph.index import index_of
from migrate.graph.metagraph import Edge, Graph, Node
from semisync.common.errors import BadInput
from semisync.common.walks import reachable

SAVES = {"SaveSlices", "SaveV2"}  # of the formats V1 and V2, whose inputs have the same order
EXPORTS = re.compile(r"TFRA>\w+TableExport|LookupTableExport(V2)?")  # of a table's keys and values
SEGMENTS = {  # ops that gather and pool, and their combiner
    "SparseSegmentMean": "mean",
    "SparseSegmentSqrtN": "sqrtn",
    "SparseSegmentSum": "sum",
}
SPARSE_PRODUCT = "SparseTensorDenseMatMul"  # of indices [row, id], values, a shape and a table
_REMAKES = {"ConcatV2", "Mul", "Pad", "PadV2", "Slice", "StridedSlice"}  # new rows
_RESHAPED = PASS | CAST | {"Reshape"}


class Saved(NamedTuple):
    """The place of a variable node in the checkpoint: a tensor's name, and its part's first row."""

    name: str
    row: int


class Lookup(NamedTuple):
    """How a variable of the checkpoint is gathered.

    Attributes:
        strategy: "mod", "div", None if ids are row numbers (no partitions), "unknown" otherwise.
        shared: the gather takes its ids from a DynamicPartition though the variable has one part:
            it is one of several variables that together make a table.
    """

    strategy: Optional[str]
    shared: bool


_RULES = {
    Lookup("mod", False): "by 'mod'",
    Lookup("div", False): "by 'div'",
    Lookup("unknown", False): "by a rule that is not known",
    Lookup(None, False): "by the number of a row",
    Lookup(None, True): "as one of several tables that share their ids",
}


def saved_variables(graph: Graph) -> Dict[str, Saved]:
    """Variable nodes by name, with where the graph's Saver stores them."""
    saves = [node for node in graph.nodes.values() if node.op in SAVES]
    # A job may have several Savers; the MetaGraph names the one that wrote it.
    own = [node for node in saves if node.name.startswith(graph.saver_scope or "")]
    variables: Dict[str, Saved] = {}
    for save in own or saves:
        for edge, name, spec in saved_tensors(graph, save):
            node = origin(graph, edge)
            if node is None:
                continue
            saved = Saved(name, _first_row(spec, graph))
            if variables.setdefault(node, saved) != saved:
                raise BadInput(
                    f"{graph.path}: variable {node!r} is saved both as {saved.name!r} and as "
                    f"{variables[node].name!r}; give the .meta of the Saver that wrote the data"
                )
    return variables


def find_lookups(graph: Graph, saved: Dict[str, Saved]) -> Dict[str, Lookup]:
    """The variables that are looked up, by their name in the checkpoint."""
    rows: Dict[str, Set[int]] = {}
    for where in saved.values():
        rows.setdefault(where.name, set()).add(where.row)
    found: Dict[str, Tuple[Lookup, str]] = {}
    for node, where in saved.items():
        parts = sorted(rows[where.name])
        for gather in gathers(graph, node):
            lookup = _lookup(graph, gather, parts.index(where.row), len(parts))
            first = found.setdefault(where.name, (lookup, gather.name))
            _check_one_rule(graph, where.name, first, (lookup, gather.name))
    for name, reader in _read_whole(graph, saved):
        # Concatenated partitions have the rows in stored order, which is not that of "mod" ids.
        if name in found and found[name][0].strategy == "mod":
            _check_one_rule(graph, name, found[name], (Lookup(None, False), reader))
    return {name: lookup for name, (lookup, _) in found.items()}


def _check_one_rule(
    graph: Graph, table: str, first: Tuple[Lookup, str], other: Tuple[Lookup, str]
) -> None:
    if first[0] != other[0]:
        ways = " and ".join(f"{_RULES[lookup]} in {node!r}" for lookup, node in (first, other))
        raise BadInput(
            f"{graph.path}: table {table!r} is looked up by two rules, {ways}; a converted table "
            "has its rows in one order: look it up by one rule"
        )


def _read_whole(graph: Graph, saved: Dict[str, Saved]) -> Iterator[Tuple[str, str]]:
    """(name in the checkpoint, node) of each partitioned variable whose partitions a node reads
    concatenated, that is in the order in which the rows are stored."""
    for node in graph.nodes.values():
        if node.op != "ConcatV2":
            continue
        parts = [origin(graph, edge) for edge in node.inputs[:-1]]
        names = {saved[part].name if part in saved else None for part in parts}
        name = names.pop() if len(names) == 1 else None
        if name is not None:
            products = (use.node for use in reached(graph, node.name) if use.node.op == "MatMul")
            for user in (*gathers(graph, node.name), *products):
                yield name, user.name


def remade_lookups(graph: Graph, saved: Dict[str, Saved]) -> List[str]:
    """Names in the checkpoint of variables that are looked up as part of another tensor, such as a
    concatenation with a row of zeros for the id 0."""
    found = set()

    def remakes(name: str) -> List[str]:
        return [use.node.name for use in reached(graph, name) if use.node.op in _REMAKES]

    for node, where in saved.items():
        made = set(reachable([node], remakes)) - {node}
        if any(True for name in made for _ in gathers(graph, name)):
            found.add(where.name)
    return sorted(found)


def hidden_uses(graph: Graph, saved: Dict[str, Saved]) -> List[str]:
    """Names in the checkpoint of variables that functions use: their look-ups are not seen."""
    return sorted(
        {
            where.name
            for node, where in saved.items()
            if any(use.node.op in CALLS for use in reached(graph, node))
        }
    )


def saved_tensors(graph: Graph, save: Node) -> Iterator[Tuple[Edge, str, str]]:
    """(input, name in the checkpoint, slice) of each tensor that an op of the Saver stores."""
    if len(save.inputs) < 3:  # prefix, tensor_names, shape_and_slices, then the tensors
        return
    count = len(save.inputs) - 3
    names = constant_strings(graph, save.inputs[1][0], count)
    specs = constant_strings(graph, save.inputs[2][0], count)
    if names is not None and specs is not None:
        yield from zip(save.inputs[3:], names, specs)


def saved_tables(graph: Graph) -> Iterator[Tuple[Node, str]]:
    """Nodes of hash tables, with the name before `-keys` under which a Saver stores each."""
    for save in graph.nodes.values():
        for edge, name, _ in saved_tensors(graph, save) if save.op in SAVES else ():
            export = graph.nodes.get(edge[0])
            if name.endswith("-keys") and export is not None and EXPORTS.fullmatch(export.op):
                table = graph.nodes.get(export.inputs[0][0]) if export.inputs else None
                if table is not None:
                    yield table, name[: -len("-keys")]


def _first_row(spec: str, graph: Graph) -> int:
    """0 for an undivided variable; else from "31 4 11,10:0,4": shape, then start,length pairs."""
    if not spec:
        return 0
    first = spec.split(" ")[-1].split(":")[0].split(",")[0]
    if first == "-":  # the whole axis
        return 0
    if not first.isdecimal():
        raise BadInput(f"{graph.path}: {spec!r} is not the slice of a variable")
    return int(first)


def origin(graph: Graph, edge: Edge, through: AbstractSet[str] = PASS) -> Optional[str]:
    """The variable node that `edge` comes from through ops in `through` only, if any."""
    node = _source(graph, edge, through)
    return node.name if node is not None and node.op in VARIABLES else None


def _source(graph: Graph, edge: Edge, through: AbstractSet[str]) -> Optional[Node]:
    """The node that `edge` comes from, beyond nodes whose op is in `through`."""
    return graph.nodes.get(graph.beyond(edge, through)[0])


def readers_of(nodes: Iterable[Node]) -> Dict[str, List[Node]]:
    """The nodes that read each node, by its name; one that reads it twice is listed twice."""
    readers: Dict[str, List[Node]] = {}
    for node in nodes:
        for name, _ in node.inputs:
            readers.setdefault(name, []).append(node)
    return readers


def reached(graph: Graph, start: str, through: AbstractSet[str] = PASS) -> Iterator[Use]:
    """Every use of the value of `start`, directly or through nodes whose op is in `through`."""
    index = index_of(graph)

    def passing(name: str) -> List[str]:
        first = (use.node for use in index.uses(name) if use.input == 0)
        return [node.name for node in first if node.op in through]

    for name in reachable([start], passing):
        yield from index.uses(name)


def gathers(graph: Graph, start: str) -> Iterator[Node]:
    """The nodes that look up rows of the variable node `start`."""
    for user, position, _ in reached(graph, start):
        # Transposed, the product sums over the rows of one id, or takes the table's columns.
        adjoint = any(flag(graph, user, name) for name in ("adjoint_a", "adjoint_b"))
        if user.op == SPARSE_PRODUCT and position == 3 and not adjoint:
            yield user
        if position != 0 or len(user.inputs) < 2:
            continue
        if user.op in SEGMENTS:
            yield user
        elif user.op in GATHER:
            axis = user.inputs[2][0] if len(user.inputs) > 2 else None
            if axis is None or constant_integer(graph, axis) == 0:
                yield user


def _lookup(graph: Graph, gather: Node, part: int, parts: int) -> Lookup:
    deal = dealt(graph, gather)
    if parts == 1:
        # One part that takes dealt ids: a table of several variables, see `Lookup.shared`.
        return Lookup(None, deal is not None)
    # Part k must take output k, or its rows belong to other ids than the strategy says.
    if deal is None or deal[1] != part:
        return Lookup("unknown", False)
    return Lookup(partition_strategy(graph, deal[0], parts), False)


def dealt(graph: Graph, gather: Node) -> Optional[Tuple[Node, int]]:
    """The DynamicPartition, and which of its outputs, that `gather` takes row numbers from; or
    None."""
    edge = graph.beyond(gather.inputs[1], _RESHAPED)
    node = graph.nodes.get(edge[0])
    if node is None or node.op != "DynamicPartition" or len(node.inputs) != 2:
        return None
    return node, edge[1]


def partition_strategy(graph: Graph, deal: Node, parts: int) -> str:
    """ "mod" or "div", read from how `deal` assigns ids to its `parts` outputs."""
    assigned = _source(graph, deal.inputs[1], _RESHAPED)
    rows = _source(graph, deal.inputs[0], _RESHAPED)
    if assigned is None or rows is None:
        return "unknown"
    if assigned.op in ("FloorMod", "Mod") and rows.op in ("FloorDiv", "Div"):
        divisors = [_divisor(graph, node) for node in (assigned, rows)]
        return "mod" if divisors == [parts, parts] else "unknown"
    if assigned.op == "Maximum":
        # The first partitions have a row more than the others: an id's number is the larger one
        # of its quotients by both sizes.
        terms = [_source(graph, edge, _RESHAPED) for edge in assigned.inputs]
        if all(term is not None and term.op in ("FloorDiv", "Div") for term in terms):
            return "div"
    return "unknown"


def _divisor(graph: Graph, node: Node) -> Optional[int]:
    if len(node.inputs) != 2:
        return None
    constant = _source(graph, node.inputs[1], _RESHAPED)
    return None if constant is None else constant_integer(graph, constant.name)
