"""What a loss that its ops do not tell predicts with: what all of the model goes through before the
labels do.

1. Of a sum of numbers the term counts that depends on whatever the others depend on, and more: the
   others are regularisation.
2. On the way to that term some nodes cut the graph: all that depends on what is fed and on
   variables, and every variable, goes through them.
3. The prediction is the last of them that depends on no more of what is fed than the first does:
   the labels come after it. Of a loss without labels, or of several tasks, nothing can be told.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Optional, Sequence

from migrate.graph.attributes import output_shape
from migrate.graph.interface.feeds import Feed
from migrate.graph.interface.walks import Walks
from migrate.graph.lookups import PASS, VARIABLES
from migrate.graph.metagraph import Edge, Node
from semisync.common.walks import along, in_order

_SUMS = {"Add", "AddN", "AddV2", *PASS}
_SCALES = {"Mul", "RealDiv"}

Fed = Dict[str, FrozenSet[Edge]]  # what is fed that a node depends on


def prediction(walks: Walks, feeds: Sequence[Feed], loss: Edge) -> Optional[Edge]:
    """The tensor that a loss predicts with; None where it cannot be told."""
    if loss[0] not in walks.nodes:
        return None
    reached = [(e, walks.downstream_of_values([e])) for feed in feeds for e in feed.edges]
    fed = {name: frozenset(e for e, nodes in reached if name in nodes) for name in walks.nodes}
    term = _term(walks, walks.nodes[loss[0]], fed)
    cuts = [] if term is None else _cuts(walks, _in_order(walks, term, fed))
    free = [node for node in cuts if fed[node.name] == fed[cuts[0].name]]
    if term is None or not free or fed[free[-1].name] == fed[term.name]:
        return None
    return free[-1].inputs[0] if free[-1].op == "Neg" else (free[-1].name, 0)


def _term(walks: Walks, node: Node, fed: Fed) -> Optional[Node]:
    """The term of a sum that depends on all that the others do; None where several do."""

    def largest(name: str) -> Optional[str]:
        whole = _whole_terms(walks, walks.nodes[name], fed)
        return whole[0] if whole is not None and len(whole) == 1 else None

    *_, last = along(node.name, largest, walks.graph.path)
    return walks.nodes[last] if _whole_terms(walks, walks.nodes[last], fed) is None else None


def _whole_terms(walks: Walks, node: Node, fed: Fed) -> Optional[List[str]]:
    """The terms of a sum of numbers that depend on all that the others do; None of what is none."""
    if node.op not in _SUMS | _SCALES or output_shape(walks.graph, node, 0) != ():
        return None
    terms = [name for name in dict.fromkeys(_sources(walks, node)) if fed[name]]
    if node.op in _SCALES and len(terms) > 1:
        return None
    every = frozenset().union(*(fed[name] for name in terms))
    return [name for name in terms if fed[name] >= every]


def _cuts(walks: Walks, order: Sequence[Node]) -> List[Node]:
    """The nodes that everything goes through, in their order."""
    places = {node.name: place for place, node in enumerate(order)}
    read: Dict[str, int] = {}  # where last
    joined = 0  # where the last variable is
    for place, node in enumerate(order):
        for name in _sources(walks, node):
            if name in places:
                read[name] = place
            elif name in walks.trained or walks.nodes[name].op in VARIABLES:
                joined = place
    found: List[Node] = []
    open_until = joined
    for place, node in enumerate(order):
        if place >= open_until:
            found.append(node)
        open_until = max(open_until, read.get(node.name, place))
    return found


def _in_order(walks: Walks, term: Node, fed: Fed) -> List[Node]:
    """The nodes up to `term` that depend on variables and on what is fed, each after its inputs."""

    def before(name: str) -> List[str]:
        inputs = _sources(walks, walks.nodes[name])
        return [one for one in inputs if fed[one] and one in walks.trained]

    return [walks.nodes[name] for name in in_order([term.name], before)]


def _sources(walks: Walks, node: Node) -> List[str]:
    """The nodes of the model's half that a node reads, but for a loop's round before."""
    names = [name for name, _ in node.inputs if name in walks.nodes]
    return [name for name in names if walks.nodes[name].op != "NextIteration"]
