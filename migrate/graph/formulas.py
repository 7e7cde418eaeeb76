"""Finding a formula in a graph: which tensors stand where it has names.

A formula (`migrate.optimizers.record`) is a name, or a tuple of an op and its operands. The
operands of Add and Mul stand in any order. The name "any" stands for tensors that do not matter.
"""

from __future__ import annotations

import itertools
from typing import Dict, Iterator, Sequence

from migrate.graph.metagraph import Edge, Graph
from migrate.optimizers.record import Formula

_SPELLINGS = {"AddV2": "Add"}
_COMMUTE = ("Add", "Mul")

Matched = Dict[str, Edge]  # name in the formula -> the tensor


def matches(graph: Graph, edge: Edge, formula: Formula) -> Iterator[Matched]:
    """Each way in which `edge` is computed by `formula`."""
    if isinstance(formula, str):
        yield {formula: edge}
        return
    op, *operands = formula
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
            yield {**first, **others}
