"""The updates of moving averages, as of BatchNorm's statistics, in the forms that people write.

    assign_sub(moving, (moving - value) * rate)
    assign_add(moving, (value - moving) * rate)
    assign(moving, moving * decay + value * rate)       where decay + rate is 1
    assign(moving, moving - (moving - value) * rate)
    assign(moving, moving + (value - moving) * rate)

or `/ count` instead of `* rate`. The first is what tf.layers, contrib and ExponentialMovingAverage
write. They are the forms of `graph_rewrite.patterns.moving_average`, too.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from graph_rewrite.graph.folding import make_one
from graph_rewrite.graph.ops import ADD, ASSIGN, PLUS, SUBTRACT, VARIABLES
from migrate.graph.metagraph import Edge, Node
from migrate.graph.writes import changed_variable
from migrate.model.layers.layer import VIEWS, Subject, asked_once
from semisync.common.walks import reachable

_DIVIDES = {"Div", "DivNoNan", "RealDiv"}


class Move(NamedTuple):
    """moving += (value - moving) * rate, or / rate where it `divides`, by the op `node`."""

    value: Edge
    rate: Edge
    divides: bool
    node: str


_Step = Tuple[Edge, Edge, bool]  # value, rate, divides


@asked_once  # called for every BatchNorm of a graph
def find_moves(subject: Subject) -> Dict[str, List[Move]]:
    """The moves of a graph by their variable nodes."""
    moves: Dict[str, List[Move]] = {}
    for node in subject.graph.nodes.values():
        if len(node.inputs) < 2 or node.op not in {*ASSIGN, *ADD, *SUBTRACT}:
            continue
        moving, step = subject.node(node.inputs[0]), subject.node(node.inputs[1])
        if node.op in ASSIGN:
            found = _set(subject, moving, step)
        else:
            found = _step(subject, moving, step, node.op in ADD)
        if found is not None:
            moves.setdefault(moving.name, []).append(Move(*found, node.name))
    return moves


def is_moved(subject: Subject, variable: Node) -> bool:
    """Whether anything in the graph changes a variable, other than setting it to a constant or to a
    fed value, as a job does that loads its values itself."""
    for node in subject.graph.nodes.values():
        if changed_variable(subject.graph, node) == variable.name:
            value = node.inputs[1]
            fed = subject.node(value).op.startswith("Placeholder")
            if node.op not in ASSIGN or not (fed or subject.constant(value) is not None):
                return True
    return False


def averaged(subject: Subject, edge: Edge) -> Optional[Node]:
    """The variable into which `edge` is averaged."""
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


def _set(subject: Subject, moving: Node, step: Node) -> Optional[_Step]:
    """A move to a new value."""
    if step.op == "Sub" and _is(subject, step.inputs[0], moving):
        return _step(subject, moving, subject.node(step.inputs[1]), False)
    if step.op not in PLUS or len(step.inputs) != 2:
        return None
    for old, added in _both_ways(step):
        if _is(subject, old, moving):
            return _step(subject, moving, subject.node(added), True)
    products = [subject.node(edge) for edge in step.inputs]
    if any(product.op != "Mul" for product in products):
        return None
    for kept, taken in (products, products[::-1]):
        decays = [other for one, other in _both_ways(kept) if _is(subject, one, moving)]
        for value, rate in _both_ways(taken):
            if decays and _make_one(subject, decays[0], rate):
                return value, rate, False
    return None


def _step(subject: Subject, moving: Node, step: Node, added: bool) -> Optional[_Step]:
    """A move by adding or subtracting a difference times its rate."""
    ways = _both_ways(step) if step.op == "Mul" else [step.inputs[:2]] * (step.op in _DIVIDES)
    for edge, rate in ways:
        difference = subject.node(edge)
        if difference.op == "Sub":
            value, old = difference.inputs if added else difference.inputs[::-1]
            if _is(subject, old, moving):
                return value, rate, step.op in _DIVIDES
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
