"""Finding a formula in a graph, and the tensors that its names stand for.

A formula (`migrate.optimizers.record`) is a name, or a tuple of an op and its operands. The
operands of Add and Mul may be in any order. A name matches the same tensor wherever it occurs;
"any" matches tensors that do not matter. ("either", formula, formula) is one of both.
"""

from __future__ import annotations

import itertools
from typing import Dict, Iterator, List, Sequence, Tuple

from migrate.graph.metagraph import Edge, Graph
from migrate.optimizers.record import Formula
from semisync.common.walks import reachable

_SPELLINGS = {"AddV2": "Add"}
_COMMUTE = ("Add", "Mul")

Matched = Dict[str, Edge]  # name in the formula -> the tensor
_Pair = Tuple[Edge, Edge, int]  # two tensors, and how many levels of inputs remain


def matches(graph: Graph, edge: Edge, formula: Formula) -> Iterator[Matched]:
    """Each way in which `edge` is computed by `formula`."""
    if isinstance(formula, str):
        yield {formula: edge}
        return
    op, *operands = formula
    if op == "either":
        for operand in operands:
            yield from matches(graph, edge, operand)
        return
    node = graph.nodes.get(edge[0])
    if node is None or _SPELLINGS.get(node.op, node.op) != op:
        return
    if len(node.inputs) != len(operands):
        return
    orders = itertools.permutations(operands) if op in _COMMUTE else [operands]
    for order in orders:
        yield from _all_match(graph, node.inputs, order)


def _all_match(
    graph: Graph, edges: Sequence[Edge], formulas: Sequence[Formula]
) -> Iterator[Matched]:
    """Each way in which all of `edges` are computed by `formulas`."""
    if not edges:
        yield {}
        return
    for first in matches(graph, edges[0], formulas[0]):
        for others in _all_match(graph, edges[1:], formulas[1:]):
            both = (first.keys() & others.keys()) - {"any"}
            if all(_is_same(graph, first[name], others[name]) for name in both):
                yield {**first, **others}


def _is_same(graph: Graph, one: Edge, other: Edge, depth: int = 4) -> bool:
    """Whether two tensors are one, or the same computation of the same inputs.

    TensorFlow converts IndexedSlices to a tensor anew wherever one is needed.
    """

    def before(pair: _Pair) -> List[_Pair]:
        edge, twin, steps = pair
        if edge == twin:
            return []
        inputs = zip(graph.nodes[edge[0]].inputs, graph.nodes[twin[0]].inputs)
        return [(*both, steps - 1) for both in inputs]

    return all(_are_alike(graph, *pair) for pair in reachable([(one, other, depth)], before))


def _are_alike(graph: Graph, one: Edge, other: Edge, steps: int) -> bool:
    """Whether the nodes of two tensors do the same computation, given equal inputs."""
    node, twin = graph.nodes[one[0]], graph.nodes[other[0]]
    alike = (one[1], node.op, node.attrs) == (other[1], twin.op, twin.attrs)
    alike = alike and len(node.inputs) == len(twin.inputs)
    return one == other or (alike and (node.op == "Const" or bool(steps and node.inputs)))
