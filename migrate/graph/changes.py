"""The changes of one training step of a graph: the nodes that run in it, and their writes.

1. The nodes of a step are all that its training op needs, by data or by control, and all that wait
   for the training op, such as the global step's AssignAdd. The training op is the one that the
   caller names, or those in the collection "train_op", or all ops that apply gradients, or else
   those that assign a trainable variable a value computed from the old one, as BERT's optimizer
   does.
2. A counter is a variable whose next value depends on itself and constants alone: the global step,
   Adam's powers of beta1 and beta2.
3. Any other variable that a step writes is trained, is a slot, or is left to its reader.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set

from graph_rewrite.graph.ops import ASSIGN, PASS, SCATTER, TRAINING_OP, VARIABLES, WHOLE
from graph_rewrite.patterns.variables import initialises, initializer
from migrate.graph.index import index_of
from migrate.graph.lookups import origin
from migrate.graph.metagraph import Edge, Graph, Node
from semisync.common.errors import BadInput, UsageError
from semisync.common.sentences import some_of
from semisync.common.tensor_names import node_of

# Ops on reference variables return the variable that they wrote, for further writes after them.
_CHANGES = SCATTER.union(WHOLE)
_THROUGH = PASS | _CHANGES


class Counter(NamedTuple):
    """A variable node, and the tensor `edge` that each step adds, subtracts or sets."""

    variable: str
    how: str
    edge: Edge


class Changes(NamedTuple):
    """The changes of a training step.

    Attributes:
        nodes: the nodes that run in the step.
        written: variable node -> the nodes that write it.
        counters: variable node -> its `Counter`.
    """

    nodes: FrozenSet[str]
    written: Dict[str, List[Node]]
    counters: Dict[str, Counter]


def find_changes(graph: Graph, train_op: Optional[str] = None) -> Changes:
    """The changes of one step of `train_op`; raises UsageError if the graph lacks that node."""
    nodes = _of_step(graph, _roots(graph, train_op))
    written: Dict[str, List[Node]] = {}
    for name in sorted(nodes):
        node = graph.nodes[name]
        variable = changed_variable(graph, node)
        if variable is not None:
            written.setdefault(variable, []).append(node)
    counters = {}
    for variable, writers in written.items():
        counter = _counter(graph, variable, writers)
        if counter is not None:
            counters[variable] = counter
    return Changes(nodes, written, counters)


def _roots(graph: Graph, train_op: Optional[str]) -> List[str]:
    if train_op is not None:
        name = node_of(train_op)
        if name not in graph.nodes:
            raise UsageError(f"{graph.path} has no training op {train_op!r}{_candidates(graph)}")
        return [name]
    listed = [name for name in graph.train_ops if name in graph.nodes]
    if listed:
        return listed
    applies = [node.name for node in graph.nodes.values() if TRAINING_OP.match(node.op)]
    # A job without tf.train's optimizers, as BERT's, assigns the new values itself.
    return applies or [node.name for node in graph.nodes.values() if _trains_by_hand(graph, node)]


def _trains_by_hand(graph: Graph, node: Node) -> bool:
    variable = changed_variable(graph, node)
    if variable is None or variable not in (graph.trainable or ()):
        return False
    return node.op not in ASSIGN or variable in depends_on(graph, node.inputs[1])


def _candidates(graph: Graph) -> str:
    listed = some_of(graph.train_ops)
    return f"; those in its collection are {listed}" if listed else ""


def _of_step(graph: Graph, roots: Iterable[str]) -> FrozenSet[str]:
    index = index_of(graph)
    return frozenset(index.ancestors(index.descendants(roots)))


def _counter(graph: Graph, variable: str, writers: List[Node]) -> Optional[Counter]:
    # Several writers may run in any order: the next value is not determined.
    if len(writers) != 1 or writers[0].op not in WHOLE or len(writers[0].inputs) < 2:
        return None
    edge = writers[0].inputs[1]
    # A variable whose step depends on data, such as a moving average, does not count steps.
    if not depends_on(graph, edge) <= {variable}:
        return None
    return Counter(variable, WHOLE[writers[0].op], edge)


def depends_on(graph: Graph, edge: Edge) -> Set[str]:
    """The nodes without inputs, other than constants, that `edge` is computed from."""
    return {
        node.name
        for node in graph.behind([edge[0]])
        if node.op in VARIABLES or (not node.inputs and node.op != "Const")
    }


def described(writers: Iterable[Node]) -> str:
    """Nodes, formatted for an error message."""
    return some_of(f"{node.name!r} ({node.op})" for node in writers)


def refuse_two(graph: Graph, variable: str, first: str, second: str) -> BadInput:
    """The error for a variable that two updates train."""
    return BadInput(
        f"{graph.path}: {variable!r} is trained by {first!r} and by {second!r}; name the training "
        f"op whose steps are meant with train_op{_candidates(graph)}"
    )


def changed_variable(graph: Graph, node: Node) -> Optional[str]:
    """The variable that a node writes, unless it initialises or restores it; else None."""
    if not node.inputs or not (node.op in _CHANGES or TRAINING_OP.match(node.op)):
        return None
    variable = origin(graph, node.inputs[0], _THROUGH)
    return None if initialises(index_of(graph), node, variable) else variable


def is_written(graph: Graph, variable: str) -> bool:
    """Whether anything in the graph changes a variable after its first value."""
    return any(changed_variable(graph, node) == variable for node in graph.nodes.values())


def first_value(graph: Graph, variable: str) -> Optional[Edge]:
    """The initial value of a variable; None if it has no initializer."""
    node = graph.nodes.get(initializer(variable))
    if node is None or node.op not in ASSIGN or len(node.inputs) < 2:
        return None
    return node.inputs[1] if node.inputs[0][0] == variable else None
