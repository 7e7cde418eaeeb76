"""The steps of moving averages: what moves BatchNorm's statistics, in the forms that people write.

    assign_sub(moving, (moving - value) * rate)
    assign(moving, moving * decay + value * rate)       where decay + rate is 1
    assign(moving, moving - (moving - value) * rate)

The first is what tf.layers, contrib and ExponentialMovingAverage write.
"""

from __future__ import annotations

import functools
from typing import Dict, List, NamedTuple, Optional, Tuple

from migrate.graph.constants import make_one
from migrate.graph.lookups import ADDS, VARIABLES
from migrate.graph.metagraph import Edge, Node
from migrate.graph.writes import SETS, SUBTRACTS, changed_variable
from migrate.model.layers.layer import VIEWS, Subject
from semisync.common.walks import reachable


class Move(NamedTuple):
    """moving += (value - moving) * rate, by the op `node`."""

    value: Edge
    rate: Edge
    node: str


@functools.lru_cache(maxsize=1)  # every BatchNorm of a graph asks
def find_moves(subject: Subject) -> Dict[str, List[Move]]:
    """The moves of a graph by their variable nodes."""
    moves: Dict[str, List[Move]] = {}
    for node in subject.graph.nodes.values():
        if len(node.inputs) < 2 or node.op not in {*SETS, *SUBTRACTS}:
            continue
        moving, step = subject.node(node.inputs[0]), subject.node(node.inputs[1])
        if node.op in SETS:
            found = _set(subject, moving, step)
        else:
            found = _subtracted(subject, moving, step)
        if found is not None:
            moves.setdefault(moving.name, []).append(Move(*found, node.name))
    return moves


def is_moved(subject: Subject, variable: Node) -> bool:
    """Whether anything in the graph changes a variable, but for setting it to what is constant or
    fed, as a job does that loads its values itself."""
    for node in subject.graph.nodes.values():
        if changed_variable(subject.graph, node) == variable.name:
            value = node.inputs[1]
            fed = subject.node(value).op.startswith("Placeholder")
            if node.op not in SETS or not (fed or subject.constant(value) is not None):
                return True
    return False


def averaged(subject: Subject, edge: Edge) -> Optional[Node]:
    """The variable that `edge` is averaged into."""
    for name, moves in find_moves(subject).items():
        if any(_views(subject, move.value, edge) for move in moves):
            return subject.graph.nodes[name]
    return None


def _views(subject: Subject, edge: Edge, source: Edge) -> bool:
    """Whether `edge` is `source`, possibly reshaped, or chosen by a cond that has it."""

    def viewed(one: Edge) -> Tuple[Edge, ...]:
        node = subject.graph.nodes[one[0]]
        return node.inputs if node.op == "Merge" else node.inputs[: node.op in VIEWS]

    return source in reachable([edge], viewed)


def _set(subject: Subject, moving: Node, step: Node) -> Optional[Tuple[Edge, Edge]]:
    """The value and the rate of a move to a new value."""
    if step.op == "Sub" and _is(subject, step.inputs[0], moving):
        return _subtracted(subject, moving, subject.node(step.inputs[1]))
    products = [subject.node(edge) for edge in step.inputs] if step.op in ADDS else []
    if not products or any(product.op != "Mul" for product in products):
        return None
    for kept, taken in (products, products[::-1]):
        decays = [other for one, other in _both_ways(kept) if _is(subject, one, moving)]
        for value, rate in _both_ways(taken):
            if decays and _make_one(subject, decays[0], rate):
                return value, rate
    return None


def _subtracted(subject: Subject, moving: Node, step: Node) -> Optional[Tuple[Edge, Edge]]:
    """The value and the rate of a move by what is subtracted, a product."""
    for edge, rate in _both_ways(step) if step.op == "Mul" else ():
        difference = subject.node(edge)
        if difference.op == "Sub" and _is(subject, difference.inputs[0], moving):
            return difference.inputs[1], rate
    return None


def _both_ways(node: Node) -> Tuple[Tuple[Edge, ...], ...]:
    return (node.inputs, node.inputs[::-1])


def _is(subject: Subject, edge: Edge, moving: Node) -> bool:
    return moving.op in VARIABLES and subject.graph.nodes[subject.viewed(edge)[0]] is moving


def _make_one(subject: Subject, decay: Edge, rate: Edge) -> bool:
    """Whether two constants add up to 1."""
    values = [subject.constant(edge) for edge in (decay, rate)]
    scalars = [None if value is None or value.ndim else float(value) for value in values]
    return make_one(*scalars)
