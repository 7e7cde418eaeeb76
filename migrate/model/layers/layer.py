"""A recognised layer, and the graph as its finder sees it."""

from __future__ import annotations

import functools
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    TypeVar,
)

import numpy

from graph_rewrite.graph.ops import NEXT, PASS, SHAPE, SWITCH, VARIABLES
from graph_rewrite.graph.partitions import parts as parts_of
from migrate.graph.attributes import Shape, output_shape
from migrate.graph.index import StoredNodes, index_of
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.folding import Known
from migrate.model.ops.values import Value
from migrate.model.parameters import Parameters
from semisync.common.walks import Ends, along, reachable

SAME = PASS | NEXT | {"LoopCond"}  # pass on their first input, too
VIEWS = SAME | SHAPE

Modules = Dict[str, str]  # attribute -> the expression that makes it


class Drops(NamedTuple):
    """A dropout at a constant rate: it drops the share `rate` of the values of its layer's first
    input, by a mask of the shape of `drawn`."""

    rate: float
    drawn: Edge


class Layer(NamedTuple):
    """A layer that a finder recognises: ops of a graph that become one expression.

    Attributes:
        inputs: its inputs, besides its variables.
        write: makes its expression from their values, and adds its parameters and modules.
        flag: the placeholder that switches training on, where the layer shows it.
        off: tensors that disable the layer if they are fed these values.
        drops: the dropout, if it is one at a constant rate.
        share: for a dropout at a rate that is fed or computed, that rate or the share of values
            that are kept, and its value when nothing is dropped.
        kernel: the variable node of its matrix, which is then no table, whatever else reads it.
        same: it returns its first input unchanged.
        static: it has as many values as its inputs, whatever op it ends with.
        trained: it has variables.
        again: it is deterministic and has no state, so that it may be computed again.
        constants: by name, arrays whose values follow those of the inputs.
        inside: nodes whose values differ from the graph's while the layer replaces them.
    """

    inputs: Tuple[Edge, ...]
    write: Callable[[Parameters, Modules, List[Value]], str]
    flag: Optional[str] = None
    off: Mapping[Edge, float] = {}
    drops: Optional[Drops] = None
    share: Optional[Tuple[Edge, float]] = None
    kernel: Optional[str] = None
    same: bool = False
    static: bool = False
    trained: bool = False
    again: bool = True
    constants: Tuple[Tuple[str, numpy.ndarray], ...] = ()
    inside: FrozenSet[str] = frozenset()


class Cond(NamedTuple):
    """The predicate of a tf.cond's Merge, and the Merge's input if that is true."""

    predicate: Edge
    if_true: Edge


Answer = TypeVar("Answer")


def asked_once(find: Callable[..., Answer]) -> Callable[..., Answer]:
    """Makes a function of a `Subject`, and of names in it, compute each answer once."""

    @functools.wraps(find)
    def answer(subject: Subject, *names: str) -> Answer:
        if (find, names) not in subject.answers:
            subject.answers[find, names] = find(subject, *names)
        found: Answer = subject.answers[find, names]
        return found

    return answer


class Subject:
    """A graph as the finders see it.

    Args:
        outputs: the nodes of the requested tensors.
        users: by node, the needed nodes that read it, each as often as it does.
        conds: by the Merge of a tf.cond.
        kept: the values of a loop's variables that do not change, by their Merges.
        unchanged: the result of `migrate.model.unchanged`.
        rounds: the loops in whose iterations a node runs, by its name.
    """

    def __init__(
        self,
        graph: Graph,
        known: Known,
        outputs: FrozenSet[str],
        users: Dict[str, List[Node]],
        conds: Dict[str, Cond],
        kept: Dict[str, Edge],
        unchanged: Dict[str, Edge],
        rounds: Callable[[str], FrozenSet[str]],
    ) -> None:
        self.graph, self._known, self.outputs = graph, known, outputs
        self._users, self._conds = users, conds
        self.kept, self.unchanged, self.rounds = kept, unchanged, rounds
        self._ends: Dict[FrozenSet[str], Ends[Edge]] = {}
        self.answers: Dict[Any, Any] = {}  # of `asked_once`

    @property
    def nodes(self) -> StoredNodes:
        """The graph as `graph_rewrite` matches patterns in it."""
        return index_of(self.graph)

    def beyond(self, edge: Edge) -> Edge:
        """The source of `edge`, past nodes that only pass it on."""
        return self._end(edge, SAME)

    def viewed(self, edge: Edge) -> Edge:
        """As `beyond`, and past reshapes."""
        return self._end(edge, VIEWS)

    def past(self, edge: Edge, *ops: str) -> Edge:
        """As `beyond`, and past nodes of some further ops."""
        return self._end(edge, SAME.union(ops))

    def switched(self, edge: Edge) -> bool:
        """Whether `edge`, possibly reshaped, enters a branch of a tf.cond from outside."""
        return any(self.graph.nodes[name].op in SWITCH for name, _ in self._way(edge, VIEWS))

    def _end(self, edge: Edge, ops: FrozenSet[str]) -> Edge:
        if ops not in self._ends:
            self._ends[ops] = Ends(lambda one: self._before(one, ops), self.graph.path)
        return self._ends[ops](edge)

    def _way(self, edge: Edge, ops: FrozenSet[str]) -> Iterator[Edge]:
        """`edge`, and the tensors before it along the first inputs of such ops."""
        return along(edge, lambda one: self._before(one, ops), self.graph.path)

    def _before(self, edge: Edge, ops: FrozenSet[str]) -> Optional[Edge]:
        name = edge[0]
        same = self.unchanged.get(name) or self.graph.handed(edge, ops)
        return same or self.kept.get(name)

    def node(self, edge: Edge) -> Node:
        """The node that computes `edge`, past nodes that only pass it on."""
        return self.graph.nodes[self.beyond(edge)[0]]

    def variable(self, edge: Edge) -> Optional[Node]:
        """The variable node whose whole value `edge` is; None if it is something else."""
        node = self.node(edge)
        return node if node.op in VARIABLES else None

    def parts(self, edge: Edge) -> Tuple[Node, ...]:
        """The variable nodes whose whole value `edge` is, reshaped or not: one, or all parts of a
        partitioned one that nothing else reads; none if it is something else."""
        node = self.graph.nodes[self.viewed(edge)[0]]
        if node.op in VARIABLES:
            return (node,)
        if node.op != "ConcatV2":
            return ()
        axis, found = self.constant(node.inputs[-1]), [*map(self.variable, node.inputs[:-1])]
        parts = tuple(part for part in found if part is not None)
        if axis is None or axis != 0 or len(parts) < len(found):
            return ()
        # A concatenation of partitions in another order, or of some of them, is not the variable.
        stem = parts[0].name.rpartition("/part_")[0]
        whole = [part.name for part in parts] == parts_of(self.graph.nodes, stem)
        # The module joins the partitions to one parameter, which leaves nothing for other readers.
        alone = all(self._readers(part) == {node.name} for part in parts)
        return parts if whole and alone and len(self._readers(node)) == 1 else ()

    def _readers(self, node: Node) -> Set[str]:
        """The names of the needed nodes that compute with a node's value, reshaped or not."""

        def following(name: str) -> Set[str]:
            viewed = name == node.name or self.graph.nodes[name].op in VIEWS
            return {user.name for user in self._users.get(name, ())} if viewed else set()

        found = set(reachable([node.name], following)) - {node.name}
        return {name for name in found if self.graph.nodes[name].op not in VIEWS}

    def constant(self, edge: Edge) -> Optional[numpy.ndarray]:
        """The value of `edge` if it is a constant, or computed from constants; else None."""
        return self._known.value(self.beyond(edge))

    def shape(self, edge: Edge) -> Shape:
        """The sizes of `edge` that the graph states; None: not even the rank."""
        for name, output in self._way(edge, SAME):
            told = output_shape(self.graph, self.graph.nodes[name], output)
            if told is not None:
                return told
        return None

    def sole(self, node: Node) -> bool:
        """Whether one needed node uses this one, and uses it once."""
        return len(self.users(node)) == 1

    def used(self, node: Node) -> bool:
        """Whether a needed node uses this one."""
        return node.name in self._users

    def users(self, node: Node) -> List[Node]:
        """The needed nodes that read this one, each as often as it does."""
        return self._users.get(node.name, [])

    def flag(self, merge: Node, training: Edge) -> Optional[str]:
        """The placeholder, if any, that chooses `training` of a Merge's inputs when it is true."""
        cond = self._conds.get(merge.name)
        if cond is None or cond.if_true != training:
            return None
        node = self.node(cond.predicate)
        return node.name if node.op.startswith("Placeholder") else None
