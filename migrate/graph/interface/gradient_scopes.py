"""The calls of tf.gradients in a graph, and the loss of each.

1. Every call adds all its ops in a name scope of its own. It begins with the
   gradient of the loss by itself, Fill(Shape, 1): the 1 is called `grad_ys_0`, or, before 1.5,
   `Const`.
2. The gradient of an op NAME is in the scope NAME_grad below it. In a graph that was imported under
   a scope the op is IMPORT/NAME, and its gradient IMPORT/gradients/NAME_grad.
3. So the first consumers of that 1 show which op computes the loss, or, where a sum passes its
   gradient on unchanged, which ops are its terms; and the last ones show which variable a gradient
   belongs to: NAME reads it.

Source: tensorflow/python/ops/gradients_util.py
"""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Set, Tuple

from graph_rewrite.graph.ops import CAST, PASS, PLUS
from migrate.graph.index import index_of
from migrate.graph.lowering.by_id import FIND
from migrate.graph.metagraph import Edge, Graph, Node
from semisync.common.errors import BadInput
from semisync.common.walks import along, reachable

# Ops that may pass the gradient of their output on to an input unchanged, so without a node.
_SAME_GRADIENT = PASS | PLUS | CAST | {"AddN", FIND, "Sub"}
_GRADIENT = "_grad/"  # ends the scope of an op's gradient
_START = re.compile(r"((?:.*/)?)grad_ys_\d+")


class GradientScopes:
    """The calls of tf.gradients, by scope ("gradients/"), with the nodes that begin each."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._differentiable = {**graph.calls, **graph.nodes}
        starts: Dict[str, List[str]] = {}
        for node in graph.nodes.values():
            scope = _begun_by(node)
            if scope is not None:
                starts.setdefault(scope, []).append(node.name)
        calls = {scope for scope in starts if self._differentiates(scope)}
        self._starts = {scope: starts[scope] for scope in calls}
        self._prefixes = tuple(sorted(calls))

    def has(self, name: str) -> bool:
        """Whether a node belongs to a call."""
        return name.startswith(self._prefixes) if self._prefixes else False

    def scope_of(self, edge: Edge) -> str:
        """The scope of the innermost call that computes a gradient."""
        nodes = self._graph.nodes
        *_, name = along(
            edge[0],
            lambda one: None if self.has(one) else nodes[one].inputs[0][0],
            self._graph.path,
        )
        # Calls may be nested by name scopes: the longest is the innermost.
        return max((one for one in self._prefixes if name.startswith(one)), key=len)

    def loss(self, scope: str) -> Edge:
        """The tensor whose gradients a call computes.

        Raises:
            BadInput: it cannot be determined, or the graph lacks it.
        """
        found, lacking = self._loss(scope)
        if lacking:
            raise BadInput(
                f"{self._graph.path}: {lacking}; give the MetaGraph that the training job wrote, "
                "or name with loss a tensor that is the same"
            )
        return found

    def losses(self) -> List[Edge]:
        """The losses of all calls; for a loss that the graph lacks, the first tensor that its
        gradients reach. Raises BadInput where a loss cannot be determined."""
        return [self._loss(scope)[0] for scope in self._prefixes]

    def _loss(self, scope: str) -> Tuple[Edge, str]:
        """The loss, or the first tensor that its gradients reach; and why that is not the loss."""
        uses = index_of(self._graph).uses
        pending = list(self._starts[scope])
        seen: Set[str] = set(pending)
        terms: List[str] = []
        cut = ""
        while pending:
            for user, _, _ in uses(pending.pop(0)):
                told = self._differentiated(scope, user.name)
                if told is not None:
                    terms += [told] if told not in terms else []
                elif user.name.startswith(scope) and user.name not in seen:
                    op, of_gradient, _ = user.name[len(scope) :].partition(_GRADIENT)
                    # The gradient of an op that the graph lacks: the loss was cut away.
                    cut = cut or (op if of_gradient else "")
                    seen.add(user.name)
                    pending.append(user.name)
        if not terms:
            raise BadInput(
                f"{self._graph.path}: the loss whose gradients {scope!r} computes cannot be told; "
                "name it with loss"
            )
        total = terms[0] if len(terms) == 1 else self._total(scope, set(terms))
        if cut:
            why = f"the loss {cut!r}, whose gradients {scope!r} computes, was cut away"
        elif total is None:
            listed = " + ".join(map(repr, sorted(terms)))
            why = f"{scope!r} computes the gradients of {listed}, which no tensor of the graph is"
        else:
            return (total, 0), ""
        return (terms[0], 0), why

    def _total(self, scope: str, terms: Set[str]) -> Optional[str]:
        """The nearest node that adds up `terms` and no other differentiated tensor."""
        others = {self._differentiated(scope, name) for name in self._graph.nodes} - terms

        def sums(name: str) -> List[str]:
            users = (use.node for use in index_of(self._graph).uses(name))
            return [user.name for user in users if user.op in _SAME_GRADIENT]

        for name in reachable([min(terms)], sums):
            added = self._added(name, terms)
            # Another differentiated tensor in the sum would make it a different loss.
            if terms <= added and not added & others:
                return name
        return None

    def _added(self, name: str, terms: Set[str]) -> Set[str]:
        """The terms that a node adds up, nested sums included; no sums within `terms`."""
        return set(reachable([name], lambda one: () if one in terms else self._summed(one)))

    def _summed(self, name: str) -> List[str]:
        """The nodes to which a node passes its gradient unchanged."""
        node = self._graph.nodes[name]
        return [source for source, _ in node.inputs] if node.op in _SAME_GRADIENT else []

    def readers(self, gradient: Edge) -> List[Node]:
        """The ops with `gradient` as the gradient of an input; none where that is not known."""
        scope = self.scope_of(gradient)

        def before(name: str) -> List[str]:
            if self._differentiated(scope, name) is not None:
                return []
            return [source for source, _ in self._graph.nodes[name].inputs]

        found = (self._differentiated(scope, name) for name in reachable([gradient[0]], before))
        return [self._differentiable[told] for told in found if told is not None]

    def gradient(self, scope: str, op: str) -> List[str]:
        """The nodes of the gradient of an op in a call, in the graph's order."""
        nodes = self._graph.nodes
        return [name for name in nodes if self._differentiated(scope, name) == op]

    def is_of(self, gradient: Edge, variable: str) -> bool:
        """Whether `gradient` may be a variable's: False if it is known to be another variable's."""
        readers = self.readers(gradient)
        read = [name for one in readers for name, _ in one.inputs]
        return not readers or variable in reachable(read, self._summed)

    def _differentiates(self, scope: str) -> bool:
        return any(self._differentiated(scope, name) is not None for name in self._graph.nodes)

    def _differentiated(self, scope: str, name: str) -> Optional[str]:
        """The op whose gradient a node of the scope is part of; None if it is not part of one."""
        if not name.startswith(scope):
            return None
        # An op's own name may contain "_grad/": the first part that is an op counts.
        for end in re.finditer(_GRADIENT, name[len(scope) :]):
            op = name[len(scope) : len(scope) + end.start()]
            for outer in _around(scope):
                if outer + op in self._differentiable:
                    return outer + op
        return None


def _around(scope: str) -> List[str]:
    """The scopes that a call's "a/b/gradients/" may have been imported under: none, a/, a/b/."""
    parts = scope.split("/")[:-2]
    return ["".join(part + "/" for part in parts[:depth]) for depth in range(len(parts) + 1)]


def _begun_by(node: Node) -> Optional[str]:
    """The scope of the call that begins with `node`, if one does."""
    start = _START.fullmatch(node.name)
    if start is not None:
        return start[1]
    scope, _, leaf = node.name.rpartition("/")
    begins = [(f"{scope}/Shape", 0), (f"{scope}/Const", 0)]
    return scope + "/" if leaf == "Fill" and scope and list(node.inputs) == begins else None
