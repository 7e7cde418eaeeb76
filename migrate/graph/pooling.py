"""How a graph pools the vectors that it looks up: the combiner of each table.

    SparseSegmentSum, -Mean, -SqrtN      embedding_lookup_sparse without weights; in TensorFlow 2.x
                                         they read the variable itself
    Mul, SegmentSum, then nothing, a     the same with weights: sum(w e), sum(w e) / sum(w) and
    division by a SegmentSum or a Sqrt   sum(w e) / sqrt(sum(w^2))
    SegmentSum, SegmentMean              by hand
    Sum, Mean over the middle axis       of vectors [batch, ids, dim]
    SparseTensorDenseMatMul              sum(w e), of a row's ids with their values
    anything else                        the vectors are used one by one: "none"

1. The vectors are followed from the gather, through nodes that only pass them on, reorder or repeat
   them, to those that compute with them. Gradients, shapes and summaries do not count.
2. A table may be looked up in several places. If they do not agree, nothing is chosen.
3. A sum whose axis or rank is not in the graph is "unknown".

Source: tensorflow/python/ops/embedding_ops.py of 1.15 and 2.21.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from graph_rewrite.graph.ops import CAST, MERGE, PASS
from migrate.graph.attributes import output_shape
from migrate.graph.constants import constant_integers
from migrate.graph.index import index_of
from migrate.graph.interface.walks import GRADIENTS
from migrate.graph.lookups import SEGMENTS, SPARSE_PRODUCT, Saved, gathers
from migrate.graph.metagraph import Graph, Node

_THROUGH = PASS | CAST | MERGE | {"DynamicStitch", "ParallelDynamicStitch", "Reshape"}
_IGNORED = re.compile(r"Shape(N|_\d+)?|Rank|Size|\w*Summary(V2)?")
_SEGMENT_SUMS = {"SegmentSum", "UnsortedSegmentSum"}
_DIVISIONS = {"Div", "DivNoNan", "RealDiv"}

_BY_WEIGHTS = (
    "set pooling: sum and weighted: true, and give the weights that "
    "migrate.torchrec.combiner_weights makes for each bag"
)
_SQRTN = f"TorchRec has no pooling sqrtn, sum(w e) / sqrt(sum(w^2)): {_BY_WEIGHTS}"
_WEIGHTED_MEAN = (
    "TensorFlow's mean with weights is sum(w e) / sum(w); FBGEMM divides by the number of ids, or "
    f"not at all: {_BY_WEIGHTS}"
)


class Use(NamedTuple):
    """How the vectors of a variable are pooled.

    Attributes:
        combiner: "sum", "mean", "sqrtn", "none" or "unknown".
        weighted: each id has a weight.
        node: name of the node that computes it.
    """

    combiner: str
    weighted: bool
    node: str

    def __str__(self) -> str:
        weights = " with weights" if self.weighted else ""
        return f"{self.combiner}{weights} ({self.node})"


def without_kernel(pooling: Optional[str], weighted: bool) -> Optional[str]:
    """Advice on a pooling of TensorFlow that TorchRec lacks; None for the others."""
    if pooling == "sqrtn":
        return _SQRTN
    return _WEIGHTED_MEAN if pooling == "mean" and weighted else None


def find_poolings(graph: Graph, saved: Dict[str, Saved]) -> Dict[str, List[Use]]:
    """How the vectors of each variable are pooled, by its name in the checkpoint: one Use per
    combiner, in the order of the graph. Variables that are not looked up have none."""
    poolings: Dict[str, Dict[Tuple[str, bool], Use]] = {}
    for node, where in saved.items():
        for gather in gathers(graph, node):
            uses = poolings.setdefault(where.name, {})
            for use in _uses(graph, gather):
                uses.setdefault(use[:2], use)
    return {name: list(uses.values()) for name, uses in poolings.items()}


def _uses(graph: Graph, gather: Node) -> Iterator[Use]:
    if gather.op in SEGMENTS:
        yield Use(SEGMENTS[gather.op], False, gather.name)
        return
    if gather.op == SPARSE_PRODUCT:
        yield Use("sum", True, gather.name)
        return
    pending, seen = [gather.name], {gather.name}
    while pending:
        for user, position in _users(graph, pending.pop()):
            repeats = user.op == "GatherV2" and position == 0  # distinct ids to all ids
            if user.op in _THROUGH or repeats:
                if user.name not in seen:
                    seen.add(user.name)
                    pending.append(user.name)
            else:
                yield _use(graph, user, position)


def _users(graph: Graph, name: str) -> List[Tuple[Node, int]]:
    """The nodes that compute with the output of `name`."""
    return [
        (user, position)
        for user, position, _ in index_of(graph).uses(name)
        if not _IGNORED.fullmatch(user.op) and not GRADIENTS.search(user.name)
    ]


def _use(graph: Graph, user: Node, position: int) -> Use:
    """How `user` pools the vectors, which are its input number `position`."""
    if position == 0 and user.op in SEGMENTS:
        return Use(SEGMENTS[user.op], False, user.name)
    if position == 0 and user.op == "SegmentMean":
        return Use("mean", False, user.name)
    if position == 0 and user.op in _SEGMENT_SUMS:
        return Use(_divided(graph, user), False, user.name)
    # Rows times weights, each product pooled by a sum.
    if user.op == "Mul":
        sums = _users(graph, user.name)
        if sums and all(node.op in _SEGMENT_SUMS and at == 0 for node, at in sums):
            return Use(_divided(graph, sums[0][0]), True, sums[0][0].name)
    if position == 0 and user.op in ("Mean", "Sum"):
        return Use(_reduced(graph, user), False, user.name)
    return Use("none", False, user.name)


def _divided(graph: Graph, segments: Node) -> str:
    """The combiner of a sum by segments, by its divisor."""
    kinds: Set[str] = set()
    for user, position in _users(graph, segments.name):
        divisor = _divisor(graph, user) if user.op in _DIVISIONS and position == 0 else None
        if divisor is not None and divisor.op in _SEGMENT_SUMS:
            kinds.add("mean")
        elif divisor is not None and divisor.op == "Sqrt":
            kinds.add("sqrtn")
        else:
            kinds.add("sum")
    # A sum that nothing reads, such as an output, is a sum.
    return kinds.pop() if len(kinds) == 1 else "unknown" if kinds else "sum"


def _divisor(graph: Graph, division: Node) -> Optional[Node]:
    if len(division.inputs) != 2:
        return None
    return graph.nodes.get(graph.beyond(division.inputs[1], PASS)[0])


def _reduced(graph: Graph, reduction: Node) -> str:
    """The combiner of a Sum or Mean: over the ids of vectors [batch, ids, dim], or over others."""
    if len(reduction.inputs) != 2:
        return "unknown"
    (vectors, output), (axes, _) = reduction.inputs
    node = graph.nodes.get(vectors)
    shape = None if node is None else output_shape(graph, node, output)
    axis = constant_integers(graph, axes)
    if shape is None or axis is None:
        return "unknown"
    if len(shape) == 3 and axis in ([1], [-2]):
        return reduction.op.lower()
    return "none"
