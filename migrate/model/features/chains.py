"""The steps from a raw feature to ids, read from a graph.

A feature is a list of values per row: for a dense one all of the row's, for a sparse one those that
are present. Steps change each value, or leave some out; the positions of the values in their
tensors (indices, shapes) follow from that, and are not recorded. docs/model/features.md lists the
steps.

    GatherNd(x, Where(x != v))                  drop v, which a dense column takes for missing
    Gather(x, Where(ids >= 0)), (weights > 0)   keep those: safe_embedding_lookup_sparse
    Select(found != default, found, hash + n)   a vocabulary with out-of-vocabulary buckets
    Select(x < 0 or x >= n, default, x)         an identity column's default
    x + n * Tile(Range(k))                      a bucketized column of k values

Source: tensorflow/python/feature_column/feature_column_v2.py, ops/embedding_ops.py
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy

from graph_rewrite.graph.ops import GATHER, PLUS, SHAPE
from migrate.graph.attributes import dtypes, flag, float32s, integer, integers
from migrate.graph.interface.inputs import Inputs
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import Subject
from migrate.model.layers.vocabulary import vocabulary
from migrate.model.lookup_tables import Tables
from migrate.model.ops.values import as_data

Step = Dict[str, Any]
Steps = List[Step]

FINGERPRINT, SIPHASH = "fingerprint64", "siphash"
_FINDS = {"LookupTableFind", "LookupTableFindV2"}
_SELECTS = {"Select", "SelectV2"}
_VALUES = {"SparseFillEmptyRows", "SparseReorder"}  # input 1, the values, becomes output 1
_INTEGERS = ("int32", "int64")
_DEEPEST = 64  # ops between a feature and its ids; `steps` recurs once per op
_MOST_STEPS = 4096  # including those of crossed and joined columns


class Unknown(Exception):
    """A tensor is computed by an op that is not one of the steps."""


class Chains:
    """The chains of steps of one graph.

    Attributes:
        visited: the tensors that are the values of steps.
        conditions: the nodes that only determine which values are left out or replaced.
    """

    def __init__(self, subject: Subject, inputs: Inputs, tables: Tables) -> None:
        self._subject, self._inputs, self._tables = subject, inputs, tables
        self._graph = subject.graph
        self._known: Dict[Edge, Steps] = {}
        self._deep = 0  # the stack of tensors whose steps are being read
        self.visited: Set[Edge] = set()
        self.conditions: Set[str] = set()
        self._by_op: Dict[str, Callable[[Node], Steps]] = {
            "AsString": self._as_string,
            "Bucketize": self._bucketize,
            "Cast": self._cast,
            "GatherNd": self._dropped,
            "SparseToDense": lambda node: self.steps(node.inputs[2]),
            "StringToHashBucketFast": self._hashed,
            "StringToHashBucketStrong": self._hashed,
            "Concat": lambda node: self._joined(node, node.inputs[0], node.inputs[1:]),
            "ConcatV2": lambda node: self._joined(node, node.inputs[-1], node.inputs[:-1]),
            **dict.fromkeys(PLUS, self._added),
            **dict.fromkeys(_FINDS, self._found),
            **dict.fromkeys(GATHER, self._kept),
            **dict.fromkeys(_SELECTS, self._selected),
            **dict.fromkeys(SHAPE, lambda node: self.steps(node.inputs[0])),
        }

    def steps(self, edge: Edge) -> Steps:
        """The steps from the input to the values of `edge`; raises Unknown."""
        edge = self._subject.beyond(edge)
        if edge not in self._known:
            self._deep += 1
            if self._deep > _DEEPEST:
                raise Unknown(edge[0])
            try:
                found = self._steps(edge)
            finally:
                self._deep -= 1
            if _count(found) > _MOST_STEPS:
                raise Unknown(edge[0])
            self._known[edge] = found
        return self._known[edge]

    def _steps(self, edge: Edge) -> Steps:
        node = self._graph.nodes[edge[0]]
        feature = self._inputs.of(edge)
        if feature is not None and feature.part in (None, 1) and not feature.optional:
            return [{"op": "input", "name": feature.name}]
        if node.op in _VALUES and edge[1] == 1:
            found = self.steps(node.inputs[1])
        elif node.op == "SparseCross" and edge[1] == 1:
            found = self._crossed(node)
        elif node.op == "Unique" and edge[1] == 0:
            found = [*self.steps(node.inputs[0]), {"op": "unique"}]
        elif edge[1] == 0 and node.op in self._by_op:
            found = self._by_op[node.op](node)
        else:
            raise Unknown(node.name)
        self.visited.add(edge)
        return found

    def _as_string(self, node: Node) -> Steps:
        if dtypes(self._graph, node, "T")[0] not in _INTEGERS:
            raise Unknown(node.name)  # a number may be printed in several ways
        return [*self.steps(node.inputs[0]), {"op": "as_string"}]

    def _bucketize(self, node: Node) -> Steps:
        boundaries = float32s(self._graph, node, "boundaries")
        return [*self.steps(node.inputs[0]), {"op": "bucketize", "boundaries": boundaries}]

    def _cast(self, node: Node) -> Steps:
        before = self.steps(node.inputs[0])
        source, target = (dtypes(self._graph, node, name)[0] for name in ("SrcT", "DstT"))
        # No value changes, and the steps count with int64.
        if source in _INTEGERS and target == "int64":
            return before
        return [*before, {"op": "cast", "dtype": target}]

    def _hashed(self, node: Node) -> Steps:
        step: Step = {"op": "hash_bucket", "hash": FINGERPRINT}
        step["buckets"] = integer(self._graph, node, "num_buckets")
        if node.op == "StringToHashBucketStrong":
            step.update(hash=SIPHASH, key=integers(self._graph, node, "key"))
        return [*self.steps(node.inputs[0]), step]

    def _found(self, node: Node) -> Steps:
        content = self._tables.described(self._subject.node(node.inputs[0]))
        if not content:
            raise Unknown(node.name)
        step = {"op": "vocabulary", **content, "default": self._scalar(node.inputs[2])}
        return [*self.steps(node.inputs[1]), step]

    def _selected(self, node: Node) -> Steps:
        """A vocabulary with out-of-vocabulary buckets, or the default of an identity column."""
        # A vocabulary with out-of-vocabulary buckets is a Select, too.
        words = vocabulary(self._subject, node)
        if words is not None:
            self.conditions.update(words.inside)
            *before, step = self.steps((words.found.name, 0))
            return [*before, {**step, "oov_buckets": words.buckets}]
        condition = self._subject.node(node.inputs[0])
        kept = self.steps(node.inputs[2])
        limit = self._limit(condition, kept)
        filled = self._subject.node(node.inputs[1])
        default = self._scalar(filled.inputs[1] if filled.op == "Fill" else node.inputs[1])
        self.conditions.update((condition.name, filled.name))
        return [*kept, {"op": "default", "buckets": limit, "default": default}]

    def _limit(self, condition: Node, kept: Steps) -> int:
        """n of x < 0 or x >= n."""
        sides = {side.op: side for side in map(self._subject.node, condition.inputs)}
        if condition.op != "LogicalOr" or set(sides) != {"Less", "GreaterEqual"}:
            raise Unknown(condition.name)
        of_kept = all(self.steps(side.inputs[0]) == kept for side in sides.values())
        if not of_kept or self._scalar(sides["Less"].inputs[1]) != 0:
            raise Unknown(condition.name)
        self.conditions.update(side.name for side in sides.values())
        return int(self._scalar(sides["GreaterEqual"].inputs[1]))

    def _dropped(self, node: Node) -> Steps:
        before = self.steps(node.inputs[0])
        where, differs = self._where(node.inputs[1])
        if differs.op != "NotEqual" or self.steps(differs.inputs[0]) != before:
            raise Unknown(node.name)
        self.conditions.update((where.name, differs.name))
        return [*before, {"op": "drop", "value": self._scalar(differs.inputs[1])}]

    def _kept(self, node: Node) -> Steps:
        """The steps of a Gather that leaves values out as safe_embedding_lookup_sparse does. `of`
        in the step is the operand of the condition: `description` checks that it is the
        look-up's own ids or weights."""
        where, condition = self._where(node.inputs[1])
        names = {where.name, condition.name}
        if condition.op == "LogicalAnd":  # with weights: ANDed with a True per weight
            both = [self._subject.node(edge) for edge in condition.inputs]
            if not any(self._is_true(one) for one in both):
                raise Unknown(node.name)
            condition = next((one for one in both if one.op == "GreaterEqual"), condition)
            names |= {one.name for one in both}
        kept = {"GreaterEqual": "ids >= 0", "Greater": "weights > 0"}.get(condition.op)
        if kept is None or self._scalar(condition.inputs[1]) != 0:
            raise Unknown(node.name)
        step = {"op": "keep", "where": kept, "of": self.steps(condition.inputs[0])}
        found = [*self.steps(node.inputs[0]), step]
        self.conditions |= names
        return found

    def _is_true(self, node: Node) -> bool:
        """Whether it is a True per value of another tensor."""
        return node.op == "OnesLike" or (node.op == "Fill" and self._scalar(node.inputs[1]) is True)

    def _where(self, edge: Edge) -> Tuple[Node, Node]:
        """A Where, and its condition."""
        where = self._graph.nodes[self._subject.viewed(edge)[0]]
        if where.op != "Where":
            raise Unknown(where.name)
        return where, self._subject.node(where.inputs[0])

    def _joined(self, node: Node, axis: Edge, parts: Sequence[Edge]) -> Steps:
        """The values of several columns of dense features, side by side."""
        if self._scalar(axis) not in (1, -1):
            raise Unknown(node.name)
        return [{"op": "concat", "columns": [self.steps(edge) for edge in parts]}]

    def _added(self, node: Node) -> Steps:
        for values, number in (node.inputs, node.inputs[::-1]):
            if self._subject.constant(number) is not None:
                return [*self.steps(values), {"op": "add", "value": self._scalar(number)}]
        return self._by_column(node)

    def _by_column(self, node: Node) -> Steps:
        for values, more in (node.inputs, node.inputs[::-1]):
            product = self._subject.node(more)
            factors = product.inputs if product.op == "Mul" else ()
            for edge, other in zip(factors, factors[::-1]):
                tile = self._subject.node(edge)
                if tile.op == "Tile":
                    columns = self._constant(tile.inputs[0]).reshape(-1).tolist()
                    if columns != list(range(len(columns))):
                        raise Unknown(node.name)
                    step = {"op": "by_column", "columns": len(columns)}
                    step["step"] = int(self._scalar(other))
                    return [*self.steps(values), *([step] if len(columns) > 1 else [])]
        raise Unknown(node.name)

    def _crossed(self, node: Node) -> Steps:
        count = integer(self._graph, node, "N")
        if not flag(self._graph, node, "hashed_output"):
            raise Unknown(node.name)
        sparse = node.inputs[count : 2 * count]
        dense = node.inputs[3 * count :]
        return [
            {
                "op": "cross",
                "columns": [self.steps(edge) for edge in (*sparse, *dense)],
                "buckets": integer(self._graph, node, "num_buckets"),
                "hash_key": integer(self._graph, node, "hash_key"),
            }
        ]

    def _scalar(self, edge: Edge) -> Any:
        """A constant of one value, as data."""
        value = self._constant(edge)
        if value.size != 1:
            raise Unknown(edge[0])
        return as_data(value.reshape(()))

    def _constant(self, edge: Edge) -> numpy.ndarray:
        value: Optional[numpy.ndarray] = self._subject.constant(edge)
        if value is None:
            raise Unknown(edge[0])
        return value


def _count(steps: Steps) -> int:
    """The number of steps, including those of columns and conditions. The count stops beyond
    _MOST_STEPS, since columns may be joined over and over."""
    count, pending = 0, [steps]
    while pending and count <= _MOST_STEPS:
        for step in pending.pop():
            count += 1
            columns = step.get("columns")
            pending += columns if isinstance(columns, list) else []
            pending += [step["of"]] if "of" in step else []
    return count
