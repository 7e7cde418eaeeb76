"""Sorting nodes so that each comes after those that it needs."""

from __future__ import annotations

from typing import Callable, Container, Iterable, List

from migrate.graph.metagraph import Graph, Node
from semisync.common.errors import BadInput
from semisync.common.walks import in_order


def node_of(graph: Graph, name: str) -> Node:
    """The node of a name; raises BadInput if the graph does not have it."""
    node = graph.nodes.get(name)
    if node is None:
        raise BadInput(f"{graph.path}: the graph names {name!r}, which it does not have")
    return node


def sort(
    graph: Graph,
    roots: Iterable[str],
    before: Callable[[Node], List[str]],
    known: Container[str] = (),
) -> List[Node]:
    """`roots` and all nodes before them, each after its `before`; without those in `known`."""
    names = in_order(roots, lambda name: before(node_of(graph, name)), known, graph.path)
    return [graph.nodes[name] for name in names]
