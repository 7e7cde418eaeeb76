"""The look-ups of a graph that a TorchRec collection can compute.

    rows   Gather(table, ids); of a table in parts, the DynamicStitch of a Gather from each part
    bags   SparseSegmentSum, -Mean or -SqrtN of a table, as of 2.x, or of rows that were looked up
           once each, (rows of Unique(ids), index, segments); the same with weights:
           SegmentSum(rows[index] * weights), which a mean divides by SegmentSum(weights), and
           sqrtn by Sqrt(SegmentSum(weights ** 2))

A table goes into a collection if look-ups are all that the model does with it, none of them in a
branch or a loop, all by one rule, and it is a table of floats with two axes. Other look-ups stay as
they are in the graph. Source: tensorflow/python/ops/embedding_ops.py
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from graph_rewrite.graph.ops import GATHER
from migrate.graph.constants import constant_integer
from migrate.graph.lookups import dealt, partition_strategy
from migrate.graph.metagraph import Edge, Node
from migrate.model.embeddings.safe_lookups import SparseIds
from migrate.model.layers.clip import Clip, clip
from migrate.model.layers.layer import Subject
from semisync.common.walks import along

_COLUMNS = {"ExpandDims", "Reshape"}
_DIVISIONS = {"DivNoNan", "RealDiv"}
_STITCHES = {"DynamicStitch", "ParallelDynamicStitch"}
_COMBINERS = {
    "SparseSegmentMean": "mean",
    "SparseSegmentSqrtN": "sqrtn",
    "SparseSegmentSum": "sum",
}


class Lookup(NamedTuple):
    """One look-up.

    Attributes:
        node: the one whose output is the look-up.
        parts: the variable nodes of the table.
        dealt: the number of parts, to which ids go by id % dealt; 1 if rows are in id order.
        ids: the ids.
        combiner: of bags; None: rows.
        segments: of bags: the bag of each id, ascending.
        weights: of bags: a weight per id.
        division: the op that divides weighted sums for `combiner`.
        max_norm: the clipping of rows before they are pooled, if there is any.
        by_rows: of bags: whether rows are looked up, each distinct one once, and pooled after it.
        gathers: the nodes that read the parts of a table of several.
        sparse: the source of ids and segments in safe_embedding_lookup_sparse.
    """

    node: str
    parts: Tuple[Node, ...]
    dealt: int
    ids: Edge
    combiner: Optional[str] = None
    segments: Optional[Edge] = None
    weights: Optional[Edge] = None
    division: Optional[str] = None
    max_norm: Optional[Clip] = None
    by_rows: bool = False
    gathers: Tuple[str, ...] = ()
    sparse: Optional[SparseIds] = None

    @property
    def inputs(self) -> Tuple[Edge, ...]:
        """The tensors that it reads."""
        if self.sparse is not None:
            return self.sparse.inputs
        return tuple(edge for edge in (self.ids, self.segments, self.weights) if edge is not None)

    @property
    def given(self) -> Edge:
        """The ids, before one is added for each row without any."""
        return self.ids if self.sparse is None else self.sparse.ids


def find_rows(subject: Subject, node: Node) -> Optional[Lookup]:
    """The look-up of rows that ends at `node`."""
    if node.op in GATHER:
        table = subject.variable(node.inputs[0])
        if table is None or not _along_rows(subject, node):
            return None
        return Lookup(node.name, (table,), 1, node.inputs[1])
    return _stitched(subject, node) if node.op in _STITCHES else None


def find_bags(subject: Subject, node: Node, rows: Dict[str, Lookup]) -> Optional[Lookup]:
    """The look-up of bags that ends at `node`, given the look-ups of rows, by node."""
    if node.op in _COMBINERS:
        data, index, segments = node.inputs[:3]
        combiner = _COMBINERS[node.op]
        table = subject.variable(data)
        if table is not None:
            return Lookup(node.name, (table,), 1, index, combiner, segments)
        found = _of_unique(subject, data, index, rows)
        return found and found._replace(node=node.name, combiner=combiner, segments=segments)
    if node.op != "SegmentSum":
        return None
    product = subject.node(node.inputs[0])
    # If anything else reads the products, the rows are needed one by one.
    if product.op != "Mul" or not subject.sole(product):
        return None
    for data, weights in (product.inputs, product.inputs[::-1]):
        gathered = subject.node(data)
        view = subject.node(weights)
        if gathered.op not in GATHER or view.op not in _COLUMNS:
            continue
        found = _of_unique(subject, gathered.inputs[0], gathered.inputs[1], rows)
        if found is not None and subject.sole(gathered):
            whole = found._replace(
                node=node.name,
                combiner="sum",
                segments=node.inputs[1],
                weights=view.inputs[0],
            )
            return _divided(subject, node, whole)
    return None


def _divided(subject: Subject, total: Node, bags: Lookup) -> Lookup:
    """Weighted sums with the division that turns them into means or sqrtn, if there is one."""
    (end,) = subject.users(total) if subject.sole(total) else (total,)
    if end.op not in _DIVISIONS or subject.beyond(end.inputs[0]) != (total.name, 0):
        return bags
    divisor, combiner = subject.node(end.inputs[1]), "mean"
    if divisor.op == "Sqrt":
        divisor, combiner = subject.node(divisor.inputs[0]), "sqrtn"
    if divisor.op != "SegmentSum" or not _same(subject, divisor.inputs[1], total.inputs[1]):
        return bags
    weights = subject.node(divisor.inputs[0])
    if combiner == "sqrtn":
        power = subject.constant(weights.inputs[1]) if weights.op == "Pow" else None
        if power is None or power.ndim or power != 2:
            return bags
        weights = subject.node(weights.inputs[0])
    if weights.op not in _COLUMNS or bags.weights is None:
        return bags
    if not _same(subject, weights.inputs[0], bags.weights):
        return bags
    return bags._replace(node=end.name, combiner=combiner, division=end.op)


def _same(subject: Subject, one: Edge, other: Edge) -> bool:
    return subject.beyond(one) == subject.beyond(other)


def _of_unique(
    subject: Subject, data: Edge, index: Edge, rows: Dict[str, Lookup]
) -> Optional[Lookup]:
    """The look-up of all ids, given `data` of the distinct ones, which `index` picks."""
    node = subject.node(data)
    max_norm = clip(subject, node)
    if max_norm is not None:
        # A norm over another axis than the last is not that of a row.
        if max_norm.axes != [1]:
            return None
        node = subject.node(max_norm.x)

    def reshaped(name: str) -> Optional[str]:
        one = subject.graph.nodes[name]
        shaped = one.op == "Reshape" and name not in rows
        return subject.beyond(one.inputs[0])[0] if shaped else None

    *_, source = along(node.name, reshaped, subject.graph.path)
    found = rows.get(source)
    if found is None:
        return None
    # The distinct ids are output 0 of Unique; output 1 brings each row back to its id's place.
    unique = subject.past(found.ids, "Reshape")
    which = subject.beyond(index)
    if subject.graph.nodes[unique[0]].op != "Unique" or unique[1] != 0 or which != (unique[0], 1):
        return None
    return found._replace(ids=subject.graph.nodes[unique[0]].inputs[0], max_norm=max_norm)


def _along_rows(subject: Subject, gather: Node) -> bool:
    axis = gather.inputs[2][0] if len(gather.inputs) > 2 else None
    return axis is None or constant_integer(subject.graph, axis) == 0


def _stitched(subject: Subject, stitch: Node) -> Optional[Lookup]:
    """The look-up in a table of several parts, to each of which a DynamicPartition deals ids."""
    data = [subject.graph.nodes[edge[0]] for edge in stitch.inputs[len(stitch.inputs) // 2 :]]
    gathers = [_gather(subject, node) for node in data]
    parts: List[Node] = []
    deals: List[Node] = []
    for number, gather in enumerate(gathers):
        table = None if gather is None else subject.variable(gather.inputs[0])
        found = None if gather is None else dealt(subject.graph, gather)
        if table is None or found is None or found[1] != number:
            return None
        parts.append(table)
        deals.append(found[0])
    # Parts that different DynamicPartitions deal to are not one table.
    if len({deal.name for deal in deals}) != 1:
        return None
    strategy = partition_strategy(subject.graph, deals[0], len(parts))
    ids = _ids(subject, deals[0])
    if strategy not in ("mod", "div") or ids is None:
        return None
    names = tuple(gather.name for gather in gathers if gather is not None)
    # "div" deals ranges of ids: joined in order, the parts have the rows in the order of ids.
    dealt_to = len(parts) if strategy == "mod" else 1
    return Lookup(stitch.name, tuple(parts), dealt_to, ids, gathers=names)


def _gather(subject: Subject, node: Node) -> Optional[Node]:
    node = subject.graph.nodes[subject.graph.beyond((node.name, 0), {"Identity", "Reshape"})[0]]
    return node if node.op in GATHER and _along_rows(subject, node) else None


def _ids(subject: Subject, deal: Node) -> Optional[Edge]:
    """The ids that a DynamicPartition deals: the dividend in the computation of their parts."""
    node = _arithmetic(subject, deal.inputs[1])
    # "div": max(ids // (n + 1), (ids - extras) // n), whose first term divides the ids themselves.
    if node.op == "Maximum":
        node = _arithmetic(subject, node.inputs[0])
    return node.inputs[0] if node.op in ("FloorDiv", "FloorMod") else None


def _arithmetic(subject: Subject, edge: Edge) -> Node:
    return subject.graph.nodes[subject.past(edge, "Cast")[0]]
