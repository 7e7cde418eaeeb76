"""The updates of moving averages, as of BatchNorm's statistics."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from graph_rewrite.graph.ops import ASSIGN, WHOLE
from graph_rewrite.patterns.language import match
from graph_rewrite.patterns.moving_average import MOVING_AVERAGE, ZERO_DEBIASED
from migrate.graph.changes import changed_variable
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import VIEWS, Subject, asked_once
from semisync.common.tensor_names import of_edge, split
from semisync.common.walks import reachable


class Move(NamedTuple):
    """moving += (value - moving) * rate, or / rate if `divides`; `node` is the op that does it."""

    value: Edge
    rate: Edge
    divides: bool
    node: str


@asked_once  # called for every BatchNorm of a graph
def find_moves(subject: Subject) -> Dict[str, List[Move]]:
    """The moves of a graph by their variable nodes."""
    moves: Dict[str, List[Move]] = {}
    for node in subject.nodes.of_type(WHOLE.__contains__):
        found = match(MOVING_AVERAGE, subject.nodes, of_edge((node.name, 0)))
        if found is not None:
            divisor = found.get("divisor")
            value, rate = split(found["source"]), split(divisor or found["rate"])
            moving, _ = split(found["variable"])
            moves.setdefault(moving, []).append(Move(value, rate, bool(divisor), node.name))
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


def read_late(subject: Subject) -> List[str]:
    """The variables that a needed node reads after the graph has changed them."""
    nodes, late = subject.graph.nodes, set()

    def groups(name: str) -> Tuple[str, ...]:
        node = nodes.get(name)
        return node.controls if node is not None and node.op == "NoOp" else ()

    for node in nodes.values():
        variable = subject.variable((node.name, 0)) if node.controls else None
        if variable is not None and subject.used(node):
            # A tf.group is a NoOp: what it waits for was done before the read, too.
            before = reachable(node.controls, groups)
            there = nodes.keys() & before
            changed = {changed_variable(subject.graph, nodes[name]) for name in there}
            late.update(changed & {variable.name})
    return sorted(filter(None, late))


@asked_once
def _biased(subject: Subject) -> Set[str]:
    """The sums from which averages are made that are corrected for their start at zero."""
    nodes = subject.nodes
    found = (
        match(ZERO_DEBIASED, nodes, of_edge((node.name, 0)))
        for node in nodes.of_type(WHOLE.__contains__)
    )
    return {split(one["biased"])[0] for one in found if one is not None}


def averaged(subject: Subject, edge: Edge) -> Optional[Node]:
    """The variable into which `edge` is averaged."""
    for name, moves in find_moves(subject).items():
        if name not in _biased(subject) and any(
            _views(subject, move.value, edge) for move in moves
        ):
            return subject.graph.nodes[name]
    return None


def _views(subject: Subject, edge: Edge, source: Edge) -> bool:
    """Whether `edge` is `source`, possibly reshaped, or chosen by a cond that has it."""

    def viewed(one: Edge) -> Tuple[Edge, ...]:
        node = subject.graph.nodes[one[0]]
        return node.inputs if node.op == "Merge" else node.inputs[: node.op in VIEWS]

    return source in reachable([edge], viewed)
