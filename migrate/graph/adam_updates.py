"""Adam on a table, whose update is several ops: what belongs together is found by its formula.

    w -= rate * m / (sqrt(v) + epsilon),     rate = learning_rate * sqrt(1 - b2^t) / (1 - b1^t)

    AssignSub(w, ...)    Adam: m and v were decayed as a whole, Assign(m, m * beta1), and have
                         had the gradient added, ScatterAdd(m, ids, ...); every row moves
    ScatterSub(w, ...)   LazyAdam: rows of m and v were overwritten, ScatterUpdate(m, ids, beta1 *
                         gather(m, ids) + ...); these rows alone move

The same with the ops of resource variables. An update of any other form, such as Nadam's, is none
of these.
Source: python/training/adam.py and contrib/opt/python/training/lazy_adam_optimizer.py of 1.15,
python/training/adam.py of 2.21.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

from migrate.graph.constants import constant
from migrate.graph.lookups import GATHERS, PASS, Consumers, consumers_of, origin
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.graph.updates import Update

_MOVES = {"AssignSub", "AssignSubVariableOp"}
_MOVES_ROWS = {"ResourceScatterSub", "ScatterSub"}
_WRITES = {"Assign", "AssignVariableOp"}
_WRITES_ROWS = {"ResourceScatterUpdate", "ScatterUpdate"}
_SUMS = {"Add", "AddV2"}
_OF_SLOT = PASS | {"ScatterAdd"}  # the slot as the step has left it
_OF_ROWS = _OF_SLOT | GATHERS | _WRITES_ROWS


class _Step(NamedTuple):
    """m, v: the slots' variable nodes. learning_rate, epsilon: nodes."""

    m: str
    v: str
    learning_rate: str
    epsilon: str


def find_adam_updates(graph: Graph) -> Iterator[Update]:
    """The updates of this form."""
    consumers = consumers_of(graph)
    for node in graph.nodes.values():
        if node.op not in _MOVES | _MOVES_ROWS or len(node.inputs) < 2:
            continue
        lazy = node.op in _MOVES_ROWS
        variable = origin(graph, node.inputs[0])
        step = _step(graph, node.inputs[-1], lazy, consumers)
        if variable is not None and step is not None:
            known = {
                "learning_rate": constant(graph, step.learning_rate),
                "beta1": _decay(graph, step.m, consumers),
                "beta2": _decay(graph, step.v, consumers),
                "epsilon": constant(graph, step.epsilon),
            }
            yield Update("Adam", variable, (step.m, step.v), known, lazy)


def _step(graph: Graph, edge: Edge, lazy: bool, consumers: Consumers) -> Optional[_Step]:
    """rate * m / (sqrt(v) + epsilon)."""
    quotient = graph.nodes.get(edge[0])
    if quotient is None or quotient.op != "RealDiv" or len(quotient.inputs) != 2:
        return None
    product, divisor = (graph.nodes.get(one[0]) for one in quotient.inputs)
    if product is None or product.op != "Mul" or divisor is None or divisor.op not in _SUMS:
        return None
    for rate, m in _both_ways(product):
        for root, epsilon in _both_ways(divisor):
            under = graph.nodes.get(root[0])
            if under is None or under.op != "Sqrt":
                continue
            slots = [_slot(graph, one, lazy, consumers) for one in (m, under.inputs[0])]
            learning_rate = _learning_rate(graph, rate)
            if slots[0] and slots[1] and learning_rate:
                return _Step(slots[0], slots[1], learning_rate, epsilon[0])
    return None


def _both_ways(node: Node) -> List[Tuple[Edge, Edge]]:
    if len(node.inputs) != 2:
        return []
    first, second = node.inputs
    return [(first, second), (second, first)]


def _slot(graph: Graph, edge: Edge, lazy: bool, consumers: Consumers) -> Optional[str]:
    """The variable whose new value, or whose new rows, `edge` is."""
    found = origin(graph, edge, _OF_ROWS if lazy else _OF_SLOT)
    if found is None and lazy:  # what is about to be written, not read again
        for user, position in consumers.get(edge[0], ()):
            if user.op in _WRITES_ROWS and position == len(user.inputs) - 1:
                return origin(graph, user.inputs[0])
    return found


def _learning_rate(graph: Graph, rate: Edge) -> Optional[str]:
    """The node of the learning rate in learning_rate * sqrt(1 - b2^t) / (1 - b1^t)."""
    quotient = graph.nodes.get(rate[0])
    if quotient is None or quotient.op != "RealDiv" or not quotient.inputs:
        return None
    product = graph.nodes.get(quotient.inputs[0][0])
    if product is None or product.op != "Mul":
        return None
    for learning_rate, root in _both_ways(product):
        correction = graph.nodes.get(root[0])
        if correction is not None and correction.op == "Sqrt":
            return learning_rate[0]
    return None


def _decay(graph: Graph, slot: str, consumers: Consumers) -> Optional[float]:
    """The constant that the slot is multiplied by before the gradient is added."""
    for writer in _writers(graph, slot, consumers):
        value = graph.nodes.get(writer.inputs[-1][0])
        if value is None:
            continue
        terms = [value]
        if value.op in _SUMS:
            terms = [graph.nodes[one[0]] for one in value.inputs if one[0] in graph.nodes]
        for term in terms:
            for factor, decayed in _both_ways(term) if term.op == "Mul" else ():
                if origin(graph, decayed, PASS | GATHERS) == slot:
                    return constant(graph, factor[0])
    return None


def _writers(graph: Graph, slot: str, consumers: Consumers) -> Iterator[Node]:
    for user, position in consumers.get(slot, ()):
        if user.op in _WRITES | _WRITES_ROWS and position == 0:
            yield user
