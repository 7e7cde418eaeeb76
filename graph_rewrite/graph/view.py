"""A graph as the finders read it: its functions opened, its guards, its collections."""

from typing import List, Tuple

from graph_rewrite.graph.control_flow import Guards
from graph_rewrite.graph.functions import home, open_functions, top
from graph_rewrite.graph.ops import CARRY, JOIN, READ, TRAINING_OP
from graph_rewrite.graph.passthrough import back
from semisync.common.budget import Budget
from semisync.common.tensor_names import split
from semisync.common.walks import reachable

UPDATE_OPS = "update_ops"  # tf.GraphKeys.UPDATE_OPS

_MOST_STEPS = 1 << 18  # paths upstream from a tensor: each condition doubles them
_PASSING = CARRY | READ | JOIN


class View:
    """One graph, with what is computed once from it and used again.

    Args:
        graph: a tf.Graph, GraphDef or MetaGraphDef.

    Attributes:
        nodes: `Nodes`, functions opened.
        guards: `Guards` of these.
        update_ops: the names of the ops in UPDATE_OPS, a set; None for a GraphDef, which has no
            collections.
        trains: whether an optimizer applies gradients in it.
        whole: whether it trains and has been exported, so that nothing is added to it any more.
    """

    def __init__(self, graph):
        self.nodes = open_functions(graph)
        self.guards = Guards(self.nodes)
        self.update_ops = _update_ops(graph)
        self._inside = {node.name for node in self.nodes if home(node.name)}
        passing = self.nodes.of_type(_PASSING.__contains__)
        self._passing = {node.name for node in passing} - self._inside
        self.trains = bool(self.nodes.of_type(TRAINING_OP.match))
        self.whole = self.trains and not hasattr(graph, "as_graph_def")

    def users(self, name):
        """The names of the top-level nodes that take or wait for a node or its outermost call."""
        name = top(name)
        # Without a copy: the tuple is shared by all nodes that the same ones wait for.
        if not self.nodes.uses(name) and not self._inside:
            return self.nodes.waiting(name)
        users = self.nodes.following(name)
        return tuple(dict.fromkeys(map(top, users) if self._inside else users))

    def handed_on(self, name):
        """The names of the nodes that only pass a node's output on, its own first."""
        return reachable([top(name)], lambda name: self.nodes.users(name) & self._passing)

    def needed(self, name):
        """Whether any node does more with a node's output than pass it on."""
        return any(
            user not in self._passing
            for passing in self.handed_on(name)
            for user in self.nodes.following(passing)
        )

    def routes(self, tensor, hops):
        """[(end, guards)] of every path upstream from a tensor over `hops`.

        No hop leads further from an end; its guards are the branches on the path, without those of
        `tensor`.
        """
        own = self.guards.branches(tensor)  # hold on every route: they choose none
        routes = []
        for end, path in _paths(self.nodes, tensor, hops):
            passed = frozenset().union(*[self.guards.branches(step) for step in path])
            routes.append((end, passed - own))
        return routes


def _paths(nodes, tensor, hops):
    # Breadth first: the shortest path comes first, and so does the nearest statistic.
    room = Budget(
        _MOST_STEPS,
        "{} may be one of so many tensors, in conditions one after the other, that they cannot all "
        "be followed: export a graph with fewer".format(tensor),
    )
    waiting: List[Tuple[str, tuple]] = [(tensor, (tensor,))]
    while waiting:
        end, path = waiting.pop(0)
        room.take(len(path))  # what a path costs to copy
        behind = [step for step in back(nodes, end, hops) if step not in path]
        if not behind:
            yield end, path
        waiting += [(step, path + (step,)) for step in behind]


def _update_ops(graph):
    if hasattr(graph, "get_collection"):
        return {split(getattr(item, "name", ""))[0] for item in graph.get_collection(UPDATE_OPS)}
    if hasattr(graph, "collection_def"):
        if UPDATE_OPS not in graph.collection_def:
            return set()
        return {split(name)[0] for name in graph.collection_def[UPDATE_OPS].node_list.value}
    return None
