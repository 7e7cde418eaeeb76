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

from typing import Dict, FrozenSet, List, Optional, Sequence, Set

from migrate.graph.attributes import output_shape
from migrate.graph.interface.feeds import Feed
from migrate.graph.interface.walks import Walks
from migrate.graph.lookups import PASS, VARIABLES
from migrate.graph.metagraph import Edge, Node

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
    while node.op in _SUMS | _SCALES and output_shape(walks.graph, node, 0) == ():
        terms = [walks.nodes[name] for name in dict.fromkeys(_sources(walks, node)) if fed[name]]
        whole = [one for one in terms if all(fed[one.name] >= fed[two.name] for two in terms)]
        if node.op in _SCALES and len(terms) > 1:
            break
        if len(whole) != 1:
            return None
        node = whole[0]
    return node


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
    found: List[Node] = []
    seen: Set[str] = set()
    pending = [(term.name, False)]
    while pending:
        name, ready = pending.pop()
        if ready:
            found.append(walks.nodes[name])
        elif name not in seen:
            seen.add(name)
            pending.append((name, True))
            inputs = _sources(walks, walks.nodes[name])
            pending += [(one, False) for one in inputs if fed[one] and one in walks.trained]
    return found


def _sources(walks: Walks, node: Node) -> List[str]:
    """The nodes of the model's half that a node reads, but for a loop's round before."""
    names = [name for name, _ in node.inputs if name in walks.nodes]
    return [name for name in names if walks.nodes[name].op != "NextIteration"]
