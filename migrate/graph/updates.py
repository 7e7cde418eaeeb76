"""The updates of a graph: which variable each changes, with which slots and hyperparameters.

    one op        (Resource)(Sparse)Apply<Optimizer>; its inputs are the variable, the slots, the
                  hyperparameters and the gradient. Of a table by raw id ById<Apply...>, whose last
                  input is the ids (migrate.graph.lowering.by_id); its Adam moves these rows alone
    several ops   the step is subtracted from the variable and matches the pattern in the
                  optimizer's record. AssignSub(w, step): every row moves, and Assign(slot, slot *
                  decay) was before. ScatterSub(w, ids, step): these rows alone move, and
                  ScatterUpdate(slot, ids, decay * gather(slot, ids) + ...) was before. Of
                  Assign(w, w - step) every row moves, and the slots are assigned beside it.
                  Resource variables have ops of their own for the same. AssignSub(w, number *
                  gradient) is gradient descent by hand

An input is followed back through ops that only pass a value on to the variable node that it comes
from. A hyperparameter that is not a constant, since a schedule or a placeholder feeds it, is None.
The ops and patterns are in the records of `migrate.optimizers`.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from graph_rewrite.graph.constants import number
from graph_rewrite.graph.folding import make_one
from graph_rewrite.graph.ops import ASSIGN, GATHER, PASS, SUBTRACT, TRAINING_OP, VARIABLES
from graph_rewrite.patterns import variables
from graph_rewrite.patterns.arithmetic import plus, times
from graph_rewrite.patterns.engine import Pattern
from graph_rewrite.patterns.language import ANY, either, given, match, op, ways
from graph_rewrite.patterns.moving_average import MOVING_AVERAGE
from migrate.graph.attributes import flag, shapes
from migrate.graph.constants import constant
from migrate.graph.index import index_of
from migrate.graph.lookups import origin, reached
from migrate.graph.lowering.by_id import BY_ID
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.optimizers.adam import ADAM, LAZY_ADAM
from migrate.optimizers.gradient_descent import GRADIENT_DESCENT
from migrate.optimizers.record import Composed, Optimizer
from migrate.optimizers.registry import OPTIMIZERS, SLOTLESS_OPS, TRAINING_OPS, TrainingOp
from semisync.common.tensor_names import of_edge, split


def _has_rate(nodes: Any, bound: Mapping[str, str]) -> bool:
    return number(nodes, bound["learning_rate"]) is not None


_MOVES_ROWS = {"ResourceScatterSub", "ScatterSub"}
_WRITES_ROWS = {"ResourceScatterUpdate", "ScatterUpdate"}
_ADDS_ROWS = {"ResourceScatterAdd", "ScatterAdd"}
_OF_SLOT = PASS | {"Assign", "ScatterAdd"}  # ops that hand on a slot after the step wrote it
_OF_ROWS = _OF_SLOT | GATHER | _WRITES_ROWS
# Gradient descent on rows: w -= g lr, or for a resource w += -g lr; by hand also on all rows.
_TABLE = variables.variable()
_SCALED = given(times("learning_rate", "grad"), _has_rate)
_DESCENT = either(
    op(SUBTRACT, _TABLE, _SCALED),
    op(_MOVES_ROWS, _TABLE, "indices", _SCALED),
    op("ScatterSub", _TABLE, "indices", op("Mul", "grad", "learning_rate")),
    op("ResourceScatterAdd", _TABLE, "indices", op("Mul", op("Neg", "grad"), "learning_rate")),
)
_DECAYED = times("decay", "slot")
_DECAY = either(_DECAYED, plus(_DECAYED, ANY))


class VariableUpdate(NamedTuple):
    """The update of a variable by an optimizer.

    Attributes:
        variable, slots: variable nodes; the slots in the order of the numbers in their names.
        hyperparameters: None for one that is not a constant.
        node: the one that changes the variable.
        inputs: hyperparameters and further operands of the pattern, by their names in the record;
            an input of the op that is not a hyperparameter by the op's name, "beta1_power".
        gradient: g in the record's formula; None where it was not found.
        indices: of the rows that the gradient belongs to, or their ids; None: all rows.
        by_id: whether they are ids.
    """

    optimizer: Optimizer
    variable: str
    slots: Tuple[str, ...]
    hyperparameters: Dict[str, Optional[float]]
    node: str
    inputs: Dict[str, Edge]
    gradient: Optional[Edge]
    indices: Optional[Edge]
    by_id: bool = False


def find_updates(graph: Graph) -> List[VariableUpdate]:
    """Each update of a variable that has slots; unknown ops are left out."""
    return [*_by_one_op(graph, TRAINING_OPS), *_by_several_ops(graph)]


def every_update(graph: Graph) -> List[VariableUpdate]:
    """The updates of `find_updates`, and those by an optimizer without slots."""
    found = [*find_updates(graph), *_by_one_op(graph, SLOTLESS_OPS)]
    known = {update.variable for update in found}
    # What is subtracted beside an optimizer is no gradient, such as a decay.
    by_hand = (one for one in _descents(graph) if one.indices or one.variable not in known)
    return [*found, *by_hand]


def unknown_updates(graph: Graph) -> Iterator[Tuple[str, str, str]]:
    """(variable, another one that it reads, op) of each unknown training op; these may be slots."""
    for node in graph.nodes.values():
        if TRAINING_OP.match(node.op) and _op({**TRAINING_OPS, **SLOTLESS_OPS}, node) is None:
            variable, *others = (origin(graph, edge) for edge in node.inputs)
            for other in others:
                if variable is not None and other is not None:
                    yield variable, other, node.op


def _op(ops: Mapping[str, TrainingOp], node: Node) -> Optional[TrainingOp]:
    found = ops.get(node.op.replace("Resource", "", 1).replace(BY_ID, "", 1))
    if found is None or not node.op.startswith(BY_ID):
        return found
    # TFRA's kernel gets only the rows of the batch, so that its dense Adam is a lazy one.
    record = LAZY_ADAM if found.optimizer is ADAM else found.optimizer
    return found._replace(optimizer=record, inputs=(*found.inputs, "indices"))


def _by_one_op(graph: Graph, known: Mapping[str, TrainingOp]) -> Iterator[VariableUpdate]:
    for node in graph.nodes.values():
        op = _op(known, node)
        # A damaged node has too few inputs.
        if op is None or len(node.inputs) < len(op.inputs):
            continue
        variable = origin(graph, node.inputs[0])
        slots = [origin(graph, node.inputs[number]) for number in op.slots]
        if variable is not None and None not in slots:
            values = {
                name: constant(graph, node.inputs[number][0])
                for name, number in op.hyperparameters.items()
            }
            flags = op.optimizer.flags
            values.update({flags[attr]: 1.0 for attr in flags if flag(graph, node, attr)})
            named = tuple(slot for slot in slots if slot is not None)
            edges = dict(zip(op.inputs, node.inputs))
            edges.update((name, node.inputs[k]) for name, k in op.hyperparameters.items())
            yield VariableUpdate(
                op.optimizer,
                variable,
                named,
                values,
                node.name,
                edges,
                edges["grad"],
                edges.get("indices"),
                node.op.startswith(BY_ID),
            )


def _descents(graph: Graph) -> Iterator[VariableUpdate]:
    """The updates by gradient descent without a training op. TensorFlow 1.15 makes a constant of
    the learning rate for each part of a table, of which one stands for all."""
    constants: Dict[Tuple[str, float], Edge] = {}
    for node in index_of(graph).of_type(_DESCENT.roots.__contains__):
        found = next(_matches(graph, (node.name, 0), _DESCENT), None)
        if found is None:
            continue
        variable, rows = found["variable"][0], found.get("indices")
        # AssignSub has other uses, such as a decay; ScatterSub of a scaled value is what TensorFlow
        # makes of gradient descent on a table.
        if rows is None and not _descends(graph, node, variable, found["grad"]):
            continue
        inputs = {"learning_rate": found["learning_rate"]}
        values = {"learning_rate": constant(graph, found["learning_rate"][0])}
        gradient = found["grad"], rows
        update = VariableUpdate(
            GRADIENT_DESCENT, variable, (), values, node.name, inputs, *gradient
        )
        yield _by_first_constants(update, constants)


def _descends(graph: Graph, node: Node, variable: str, gradient: Edge) -> bool:
    """Whether what `node` subtracts from a trained variable may be its gradient: not a part of a
    variable, as a weight decay is; not the distance from an average; and computed from no state
    that may be its slot, as a momentum is."""
    trained = graph.trainable if graph.trainable is not None else {variable}
    decay = origin(graph, gradient) is not None
    if (
        decay
        or variable not in trained
        or match(MOVING_AVERAGE, index_of(graph), of_edge((node.name, 0)))
    ):
        return False
    shape = shapes(graph, graph.nodes[variable], "shape")
    states = (one for one in graph.behind([gradient[0]]) if one.op in VARIABLES)
    return all(one.name in trained or shapes(graph, one, "shape") != shape for one in states)


def _by_several_ops(graph: Graph) -> Iterator[VariableUpdate]:
    constants: Dict[Tuple[str, float], Edge] = {}
    composed_by = [(record, record.composed) for record in OPTIMIZERS.values() if record.composed]
    for node in graph.nodes.values():
        step = _subtracted(graph, node)
        if step is None:
            continue
        variable = origin(graph, node.inputs[0])
        for optimizer, composed in composed_by:
            if variable is None or composed.rows != (node.op in _MOVES_ROWS):
                continue
            update = _update(graph, node, variable, step, optimizer, composed)
            if update is not None:
                yield _by_first_constants(update, constants)
                break


def _by_first_constants(
    update: VariableUpdate, constants: Dict[Tuple[str, float], Edge]
) -> VariableUpdate:
    """The update, with the first tensor for every equal number: an optimizer of several ops makes
    the same constant again for every variable."""
    inputs = dict(update.inputs)
    for name, value in update.hyperparameters.items():
        if value is not None and name in inputs:
            inputs[name] = constants.setdefault((name, value), inputs[name])
    return update._replace(inputs=inputs)


def _subtracted(graph: Graph, node: Node) -> Optional[Edge]:
    """The tensor that `node` subtracts from the variable that is its first input."""
    if node.op in {*SUBTRACT, *_MOVES_ROWS}:
        return node.inputs[-1]
    value = graph.nodes[node.inputs[1][0]] if node.op in ASSIGN else node
    if node is value or value.op != "Sub":
        return None
    before = origin(graph, value.inputs[0])
    return value.inputs[1] if before == origin(graph, node.inputs[0]) else None


def _update(
    graph: Graph,
    node: Node,
    variable: str,
    step: Edge,
    optimizer: Optimizer,
    composed: Composed,
) -> Optional[VariableUpdate]:
    """The step that `node` takes; None where it has another formula."""
    for matched in _matches(graph, step, composed.step):
        slots = []
        for k in range(len(optimizer.slots)):
            slot = _slot(graph, matched[f"slot {k}"], composed.rows)
            slots += [] if slot is None else [slot]
        if len(slots) < len(optimizer.slots):
            continue
        values: Dict[str, Optional[float]] = dict(optimizer.fixed)
        values.update((name, constant(graph, edge[0])) for name, edge in matched.items())
        values.update((decay, _decay(graph, slot)) for decay, slot in zip(composed.decays, slots))
        if not _is_of(graph, matched, variable, values):
            continue
        edges = {name: edge for name, edge in matched.items() if not name.startswith("slot")}
        given = (edges["grad"], None) if "grad" in edges else None
        return VariableUpdate(
            optimizer,
            variable,
            tuple(slots),
            {name: values[name] for name in optimizer.hyperparameters.values()},
            node.name,
            edges,
            *(given or _written_rows(graph, slots[0], composed)),
        )
    return None


def _matches(graph: Graph, edge: Edge, pattern: Pattern) -> Iterator[Dict[str, Edge]]:
    """The tensors that a pattern's names stand for, for each way in which `edge` matches."""
    for found in ways(pattern, index_of(graph), of_edge(edge)):
        yield {name: split(tensor) for name, tensor in found.bindings.items()}


def _is_of(
    graph: Graph, matched: Mapping[str, Edge], variable: str, values: Mapping[str, Optional[float]]
) -> bool:
    """Whether the formula's variable is this one, and the constant named "1 - b" is 1 - b."""
    for name, edge in matched.items():
        if name == "variable" and origin(graph, edge) != variable:
            return False
        if name.startswith("1 - ") and not make_one(values[name], values[name[len("1 - ") :]]):
            return False
    return True


def _written_rows(
    graph: Graph, slot: str, composed: Composed
) -> Tuple[Optional[Edge], Optional[Edge]]:
    """(gradient, indices) of the values that are added to rows of the slot, or replace them."""
    for user, position, _ in reached(graph, slot, _OF_SLOT):
        if user.op in _ADDS_ROWS | _WRITES_ROWS and position == 0 and len(user.inputs) > 2:
            for matched in _matches(graph, user.inputs[2], composed.added):
                return matched["grad"], user.inputs[1]
    return None, None


def _slot(graph: Graph, edge: Edge, rows: bool) -> Optional[str]:
    """The variable whose new value, or whose new rows, `edge` is."""
    variable = origin(graph, edge, _OF_ROWS if rows else _OF_SLOT)
    if variable is None and rows:  # the value to be written, not a later read
        for user, position, _ in index_of(graph).uses(edge[0]):
            if user.op in _WRITES_ROWS and position == len(user.inputs) - 1:
                return origin(graph, user.inputs[0])
    return variable


def _decay(graph: Graph, slot: str) -> Optional[float]:
    """The constant that the slot is multiplied by before the gradient is added."""
    for user, position, _ in index_of(graph).uses(slot):
        if user.op not in {*ASSIGN, *_WRITES_ROWS} or position != 0:
            continue
        for matched in _matches(graph, user.inputs[-1], _DECAY):
            if origin(graph, matched["slot"], PASS | GATHER) == slot:
                return constant(graph, matched["decay"][0])
    return None
