"""The prediction in a loss of unknown form: the tensor that all of the model passes through before
the labels join.

1. In a sum of numbers only the term counts that depends on all that the other terms depend on, and
   more: the others are regularisation.
2. Between the inputs and that term some nodes cut the graph: every path from a feed or a variable
   passes through them.
3. The prediction is the last of these cuts that depends on the same feeds as the first: the labels
   come after it. A loss without labels, or of several tasks, has no prediction of this kind.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Optional, Sequence

from graph_rewrite.graph.ops import PASS, PLUS, VARIABLES
from migrate.graph.attributes import output_shape
from migrate.graph.interface.feeds import Feed
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Edge, Node
from semisync.common.walks import along, in_order

_SUMS = PASS | PLUS | {"AddN"}
_SCALES = {"Mul", "RealDiv"}

Fed = Dict[str, FrozenSet[Edge]]  # by node, the feeds that it depends on


def prediction(walks: Walks, feeds: Sequence[Feed], loss: Edge) -> Optional[Edge]:
    """The tensor that a loss predicts with; None where it cannot be determined."""
    if loss[0] not in walks.nodes:
        return None
    reached = [(e, walks.downstream_of_values([e])) for feed in feeds for e in feed.edges]
    fed = {name: frozenset(e for e, nodes in reached if name in nodes) for name in walks.nodes}
    term = _term(walks, walks.nodes[loss[0]], fed)
    cuts = [] if term is None else _cuts(walks, _in_order(walks, term, fed))
    # A cut that depends on more feeds than the first one lies behind the labels.
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
    """The terms of a sum of numbers that depend on all that the others do; None if it is no sum."""
    if node.op not in _SUMS | _SCALES or output_shape(walks.graph, node, 0) != ():
        return None
    terms = [name for name in dict.fromkeys(_sources(walks, node)) if fed[name]]
    if node.op in _SCALES and len(terms) > 1:
        return None
    every = frozenset().union(*(fed[name] for name in terms))
    return [name for name in terms if fed[name] >= every]


def _cuts(walks: Walks, order: Sequence[Node]) -> List[Node]:
    """The nodes that every path passes through, in their order."""
    places = {node.name: place for place, node in enumerate(order)}
    read: Dict[str, int] = {}  # the last reader of each node
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
        # No node before this one is read by a later one: all paths pass through it.
        if place >= open_until:
            found.append(node)
        open_until = max(open_until, read.get(node.name, place))
    return found


def _in_order(walks: Walks, term: Node, fed: Fed) -> List[Node]:
    """The nodes up to `term` that depend on variables and on feeds, each after its inputs."""

    def before(name: str) -> List[str]:
        inputs = _sources(walks, walks.nodes[name])
        return [one for one in inputs if fed[one] and one in walks.trained]

    return [walks.nodes[name] for name in in_order([term.name], before)]


def _sources(walks: Walks, node: Node) -> List[str]:
    """The nodes of the model's half that a node reads, but for a loop's previous iteration."""
    names = [name for name, _ in node.inputs if name in walks.nodes]
    return [name for name in names if walks.nodes[name].op != "NextIteration"]
