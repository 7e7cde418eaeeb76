"""The variables that a model keeps: which parameter or buffer each becomes, and how it is filled.

A variable is a parameter if the graph trains it, and else a buffer, such as BatchNorm's moving
statistics. `nn.Linear` keeps its weight [out, in], TensorFlow its kernel [in, out]: `axes` is the
transposition of the checkpoint's tensor.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Sequence, Set, Tuple

import numpy

from graph_rewrite.graph.ops import ASSIGN, TRAINING_OP, VARIABLES
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import by_id
from migrate.graph import attributes
from migrate.graph.changes import changed_variable, depends_on
from migrate.graph.lookups import Saved
from migrate.graph.metagraph import Graph, Node
from migrate.graph.updates import every_update
from migrate.manifest.naming import ids_of
from migrate.model.source.names import Names, scope_name
from semisync.common.errors import BadInput

_NEVER_TRAINED = ("moving_mean", "moving_variance")


class Parameter(NamedTuple):
    """One variable node.

    Attributes:
        attribute: its dotted name in the module: "dense.weight".
        variable: TensorFlow's name in the checkpoint.
        rows: its rows of the checkpoint's tensor, for a part of a partitioned variable.
        shape: in TensorFlow.
        axes: TensorFlow's axes in the module's order, (1, 0) for nn.Linear; None: as in TensorFlow.
        trainable: whether it is a parameter rather than a buffer.
        dealt: the number of partitions, to which ids go by id % dealt; 1 if rows are in id order.
        grows: whether it belongs to a table by raw id, which adds new ids while it trains.
    """

    attribute: str
    variable: str
    rows: Optional[Tuple[int, int]]
    shape: Tuple[int, ...]
    dtype: str
    trainable: bool
    axes: Optional[Tuple[int, ...]] = None
    dealt: int = 1
    grows: bool = False

    @property
    def size(self) -> Tuple[int, ...]:
        """The shape in the module."""
        return self.shape if self.axes is None else tuple(self.shape[axis] for axis in self.axes)

    @property
    def expression(self) -> str:
        """Its value in TensorFlow's layout, as source outside of its own layer."""
        return f"self.{self.attribute}" + ("" if self.axes is None else ".T")

    def read(self, checkpoint: Checkpoint, slot: Optional[str] = None) -> numpy.ndarray:
        """Its value, of shape `size`; or the value of a slot, in the variable's layout.

        Args:
            slot: the slot's name in the checkpoint.
        """
        rows = None if self.rows is None else slice(*self.rows)
        value = checkpoint.read(slot or self.variable, rows=rows).reshape(self.shape)
        if self.dealt > 1:
            value = value[by_id(len(value), self.dealt)]
        return value if self.axes is None else numpy.ascontiguousarray(value.transpose(self.axes))


class Parameters:
    """The parameters of one model, by variable node."""

    def __init__(
        self, graph: Graph, saved: Dict[str, Saved], checkpoint: Checkpoint, names: Names
    ) -> None:
        self._graph, self._saved, self._checkpoint = graph, saved, checkpoint
        self._names = names
        self._trained = _trained(graph) if graph.trainable is None else set()
        self.by_node: Dict[str, Parameter] = {}

    def add(
        self,
        node: Node,
        attribute: Optional[str] = None,
        axes: Optional[Tuple[int, ...]] = None,
    ) -> Parameter:
        """The parameter of a variable node: the existing one, or a new one.

        Args:
            attribute, axes: of a new one, as its layer keeps it.

        Raises:
            BadInput: the checkpoint does not have it.
        """
        found = self.by_node.get(node.name)
        if found is not None:
            return found
        saved = self._saved.get(node.name)
        if saved is None and _filled_anew(self._graph, node.name):
            raise BadInput(
                f"{self._graph.path}: the outputs depend on what each run puts into {node.name!r}, "
                "which no checkpoint has; a look-up in a hash table must read rows as they are, "
                "without max_norm"
            )
        if saved is None or saved.name not in self._checkpoint:
            raise BadInput(
                f"{self._checkpoint.prefix} has no variable {node.name!r}, which the outputs of "
                f"{self._graph.path} depend on; give the checkpoint that belongs to the graph"
            )
        info = self._checkpoint[saved.name]
        shape = _shape(self._graph, node, info.shape)
        rows = None if shape == tuple(info.shape) else (saved.row, saved.row + shape[0])
        # An nn.Parameter of integers cannot require a gradient.
        trainable = self._trains(node) and info.dtype in ("float32", "float64", "float16")
        if attribute is None:
            attribute = self._names.fresh(scope_name(node.name))
        found = Parameter(attribute, saved.name, rows, shape, info.dtype, trainable, axes)
        self.by_node[node.name] = found
        return found

    def by_id(self, node: Node, attribute: str) -> Parameter:
        """The weights of a table by raw id; its ids become a parameter too, but are not trained.

        Args:
            attribute: of the runtime.TableById.
        """
        found = self.add(node, f"{attribute}.weight")._replace(grows=True)
        ids = ids_of(node.name)
        self.by_node[node.name] = found
        self.by_node[ids] = found._replace(
            attribute=f"{attribute}.ids",
            variable=self._saved[ids].name,
            shape=found.shape[:1],
            dtype="int64",
            trainable=False,
        )
        return found

    def joined(self, nodes: Sequence[Node], attribute: str, dealt: int = 1) -> Parameter:
        """The parameter of a variable, whose parts `nodes` are, in their order."""
        # `add` refuses a variable that the checkpoint does not have.
        if len(nodes) == 1 or nodes[0].name not in self._saved:
            return self.add(nodes[0], attribute)
        saved = self._saved[nodes[0].name]
        info = self._checkpoint[saved.name]
        trainable = all(self._trains(node) for node in nodes)
        shape = tuple(info.shape)
        found = Parameter(attribute, saved.name, None, shape, info.dtype, trainable, None, dealt)
        self.by_node.update((node.name, found) for node in nodes)
        return found

    def whole(self, nodes: Sequence[Node]) -> bool:
        """Whether `nodes` are all the parts of one variable, in their order."""
        given = [self._saved[node.name] for node in nodes if node.name in self._saved]
        if len(given) < len(nodes):
            return False
        name = given[0].name
        # Parts compare by (name, first row), so that sorted means in the order of rows.
        return given == sorted({part for part in self._saved.values() if part.name == name})

    def saved_name(self, node: Node) -> Optional[str]:
        """The name in the checkpoint; None if it does not have the variable."""
        saved = self._saved.get(node.name)
        return None if saved is None else saved.name

    def shape(self, node: Node) -> Optional[Tuple[int, ...]]:
        """The shape of a variable node; None if the checkpoint does not have it."""
        saved = self._saved.get(node.name)
        if saved is None:
            return None
        return _shape(self._graph, node, self._checkpoint[saved.name].shape)

    def layer(self, name: str) -> str:
        """A new attribute for a layer."""
        return self._names.fresh(scope_name(name))

    def _trains(self, node: Node) -> bool:
        if self._graph.trainable is not None:
            return node.name in self._graph.trainable
        if self._trained:
            return node.name in self._trained
        # Without a collection and training ops, as in a graph for evaluation, only names are left.
        return not node.name.endswith(_NEVER_TRAINED)


def _trained(graph: Graph) -> Set[str]:
    """The variables that training ops change, for a graph that does not list them."""
    applies = [node for node in graph.nodes.values() if TRAINING_OP.match(node.op)]
    unknown = [changed_variable(graph, node) for node in applies]
    return {name for name in unknown if name is not None} | {
        one.variable for one in every_update(graph)
    }


def _filled_anew(graph: Graph, variable: str) -> bool:
    """Whether a run assigns a variable a value that does not depend on it."""
    return any(
        variable not in depends_on(graph, node.inputs[1])
        for node in graph.nodes.values()
        if node.op in ASSIGN and changed_variable(graph, node) == variable
    )


def _shape(graph: Graph, node: Node, stored: Tuple[int, ...]) -> Tuple[int, ...]:
    """The shape of a variable node by its own attribute, since it may be a part of the stored
    tensor; without that attribute the stored shape."""
    told = attributes.shapes(graph, node, "shape")
    if not told or told[0] is None or None in told[0] or node.op not in VARIABLES:
        return tuple(stored)
    shape = tuple(size for size in told[0] if size is not None)
    if shape[1:] != tuple(stored)[1:]:  # a part, for else the graph were another model's
        raise BadInput(
            f"{graph.path}: variable {node.name!r}, {list(shape)}, is a part of the checkpoint's "
            f"{list(stored)} along another axis than the first; a module takes only variables that "
            "are whole or partitioned along the first axis"
        )
    return shape
