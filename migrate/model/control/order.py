"""Nodes in an order in which each comes after those that it needs."""

from __future__ import annotations

from typing import Callable, Container, Iterable, List

from migrate.graph.metagraph import Graph, Node
from semisync.common.errors import BadInput


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
    """`roots` and all that `before` says comes before them, sorted so; without those in `known`."""
    order: List[Node] = []
    begun, done = set(), set()
    stack = [(name, False) for name in reversed(list(roots))]
    while stack:
        name, finished = stack.pop()
        if finished:
            done.add(name)
            order.append(node_of(graph, name))
        elif name not in done and name not in known:
            if name in begun:
                raise BadInput(f"{graph.path}: node {name!r} depends on itself")
            begun.add(name)
            stack.append((name, True))
            stack += [(other, False) for other in reversed(before(node_of(graph, name)))]
    return order
