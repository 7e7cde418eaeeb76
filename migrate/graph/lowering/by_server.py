"""Ops of a team's own sparse parameter server, described by a plug-in (`migrate.servers`): they
become tables by raw id in the form of `migrate.graph.lowering.by_id`.

    look-up    TABLE, a VarHandleOp, and FindRows(TABLE, ids, default) under the op's name
    training   SLOT, a VarHandleOp, and SLOT/Assign for each slot, and ById<Apply...> under the op's
               name, of unique ids and of the sums of their gradients, as TensorFlow's optimizers
               make them: NODE/Unique and NODE/sum
"""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

from graph_rewrite.patterns.variables import initializer
from migrate.graph.attributes import float32, integer, text
from migrate.graph.lowering.by_id import BY_ID, FIND
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.hash_tables.servers import slot_name
from migrate.manifest.naming import ids_of
from migrate.optimizers.adam import POWERS
from migrate.optimizers.record import Slot
from migrate.optimizers.registry import SLOTLESS_OPS, TRAINING_OPS, TrainingOp
from migrate.servers.descriptions import LookUp, Training
from migrate.servers.plugins import Plugin, plugins
from semisync.common.tensor_names import of_edge, split
from semisync.encoding.wire import fixed32_field, present_varint
from semisync.encoding.wire import message_field as message

_DTYPE = {"dtype": present_varint(6, 1)}  # float32


class Op:
    """A node and its attributes.

    name    of the node, "user/pull"
    kind    of the op, "AcmePull"
    inputs  names of tensors, "user/ids:0"
    """

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph, self._node = graph, node
        self.name, self.kind = node.name, node.op

    @property
    def inputs(self) -> Tuple[str, ...]:
        """The names of the input tensors, without control inputs."""
        return tuple(of_edge(edge) for edge in self._node.inputs)

    def source(self, number: int) -> Op:
        """The op that an input comes from, such as one that holds the table."""
        return Op(self._graph, self._graph.nodes[self._node.inputs[number][0]])

    def has(self, attribute: str) -> bool:
        """Whether it has an attribute."""
        return attribute in self._node.attrs

    def text(self, attribute: str) -> str:
        """A string attribute."""
        return text(self._graph, self._node, attribute)

    def number(self, attribute: str) -> float:
        """A float attribute."""
        return float32(self._graph, self._node, attribute)

    def integer(self, attribute: str) -> int:
        """An integer attribute."""
        return integer(self._graph, self._node, attribute)


class _Described(NamedTuple):
    """A plug-in's description of a node."""

    node: Node
    look_up: Optional[LookUp]
    training: Optional[Training]
    op: Optional[_Op]


class _Op(NamedTuple):
    """A training op ById<name>: its inputs other than the variable, the slots and the gradient, by
    name, with their positions."""

    name: str
    known: TrainingOp
    numbers: Dict[str, int]

    @property
    def slots(self) -> Dict[Slot, int]:
        """The op's slots, with the position of each among the inputs."""
        of = self.known.optimizer.slots_for(range(len(self.known.slots)))
        return dict(zip(of, self.known.slots))


def served_nodes(graph: Graph) -> Dict[str, str]:
    """The tables in a graph that plug-ins know, with their ids and slots: the nodes that they
    become, and their names in a checkpoint."""
    found: Dict[str, str] = {}
    for described in _described(graph):
        for one in (described.look_up, described.training):
            if one is not None:
                found[_node(one.table)] = one.table
                found[ids_of(_node(one.table))] = ids_of(one.table)
        if described.training is not None and described.op is not None:
            for slot in described.op.slots:
                found[_slot(described.training, slot)] = slot_name(
                    described.training.table, f"{described.training.optimizer}_{slot.name}"
                )
    return found


def with_servers(graph: Graph) -> Graph:
    """The graph with the ops of plug-ins as those of tables by raw id; itself if it has none.

    Raises:
        BadInput: a plug-in's description of an optimizer lacks some of its hyperparameters.
    """
    known = _described(graph)
    if not known:
        return graph
    nodes, trainable = dict(graph.nodes), graph.trainable
    moved: Dict[Edge, Edge] = {}
    for described in known:
        if described.look_up is not None:
            nodes.update(_find(described.node, described.look_up))
            # FindRows has one output; the team's op may have the rows in another than its first.
            moved[described.node.name, described.look_up.output] = described.node.name, 0
        if described.training is not None and described.op is not None:
            nodes.update(_apply(described.node, described.training, described.op))
            # The graph's collection cannot list a table that the server holds.
            trainable = None if trainable is None else trainable | {_node(described.training.table)}
    for name, node in nodes.items():
        inputs = tuple(moved.get(edge, edge) for edge in node.inputs)
        if inputs != node.inputs:
            nodes[name] = node._replace(inputs=inputs)
    return graph.replace(nodes=nodes, trainable=trainable)


def _described(graph: Graph) -> List[_Described]:
    found = []
    for plugin in plugins():
        for node in graph.nodes.values():
            about = f"{graph.path}: {node.name!r} ({node.op})"
            look_up = plugin.ask("look_up", Op(graph, node), about=about)
            training = plugin.ask("train", Op(graph, node), about=about)
            op = None if training is None else _op(plugin, training, about)
            if look_up is not None or training is not None:
                found.append(_Described(node, look_up, training, op))
    return found


def _op(plugin: Plugin, training: Training, about: str) -> _Op:
    """The op with the slots and hyperparameters of `training`; raises BadInput if there is none."""
    ops = [
        _Op(name, op, {**op.hyperparameters, **_powers(op)})
        for name, op in {**TRAINING_OPS, **SLOTLESS_OPS}.items()
        if op.optimizer.name == training.optimizer and name.startswith("Apply")
    ]
    for op in ops:
        if training.hyperparameters.keys() == op.numbers.keys():
            strange = sorted(set(training.begins) - {slot.name for slot in op.slots})
            if strange:
                what = f"{training.optimizer} has no slot {strange[0]!r}"
                raise plugin.failed("train", about, what)
            return op
    what = f"the optimizer {training.optimizer!r} is not known"
    if ops:
        wanted = " or ".join(", ".join(sorted(op.numbers)) for op in ops)
        given = ", ".join(sorted(training.hyperparameters)) or "none"
        what = f"{training.optimizer} has the hyperparameters {wanted}; it told {given}"
    raise plugin.failed("train", about, what)


def _powers(op: TrainingOp) -> Dict[str, int]:
    """Inputs of Adam that are not hyperparameters."""
    return {name: op.inputs.index(name) for name in POWERS if name in op.inputs}


def _node(table: str) -> str:
    """The variable that a table becomes; no TensorFlow node can have its name."""
    return f"{table} table"


def _slot(training: Training, slot: Slot) -> str:
    return f"{_node(training.table)}/{slot.name}"


def _find(node: Node, look_up: LookUp) -> Dict[str, Node]:
    table = _node(look_up.table)
    made = {table: Node(table, "VarHandleOp", (), _DTYPE)}
    default = _edge(made, f"{node.name}/default", look_up.default)
    inputs = ((table, 0), split(look_up.ids), default)
    made[node.name] = Node(node.name, FIND, inputs, {}, node.controls)
    return made


def _apply(node: Node, training: Training, op: _Op) -> Dict[str, Node]:
    table, unique, size, total = (
        _node(training.table),
        *(f"{node.name}/{leaf}" for leaf in ("Unique", "Size", "sum")),
    )
    summed = (split(training.gradient), (unique, 1), (size, 0))
    made = {
        table: Node(table, "VarHandleOp", (), _DTYPE),
        unique: Node(unique, "Unique", (split(training.ids),), {}),
        size: Node(size, "Size", ((unique, 0),), {}),
        total: Node(total, "UnsortedSegmentSum", summed, {}),
    }
    # Every input by its position; those that are not set below are the variable.
    inputs = dict.fromkeys(range(len(op.known.inputs)), (table, 0))
    inputs[op.known.inputs.index("grad")] = (total, 0)
    for slot, number in op.slots.items():
        name = _slot(training, slot)
        inputs[number] = (name, 0)
        first = _edge(made, f"{name}/begin", training.begins.get(slot.name, slot.initial))
        made[name] = Node(name, "VarHandleOp", (), _DTYPE)
        begin = initializer(name)
        made[begin] = Node(begin, "AssignVariableOp", ((name, 0), first), {})
    for name, number in op.numbers.items():
        inputs[number] = _edge(made, f"{node.name}/{name}", training.hyperparameters[name])
    edges = (*(inputs[number] for number in sorted(inputs)), (unique, 0))
    made[node.name] = Node(node.name, BY_ID + op.name, edges, {}, node.controls)
    return made


def _edge(made: Dict[str, Node], name: str, value: Union[float, str]) -> Edge:
    """An input that a plug-in states: a tensor by its name, or a number, made a constant."""
    if isinstance(value, str):
        return split(value)
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    tensor = present_varint(1, 1) + message(2, b"") + fixed32_field(5, bits)
    made[name] = Node(name, "Const", (), {**_DTYPE, "value": message(8, tensor)})
    return name, 0
