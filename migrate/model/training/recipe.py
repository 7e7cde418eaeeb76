"""How a graph trains its variables: the update of each, its gradient, the loss.

A variable that a step changes other than by one update of a known optimizer is refused: by a
constraint, a weight decay beside the optimizer, an unknown op.
"""

from __future__ import annotations

from typing import Collection, Dict, List, NamedTuple, Optional, Set

from migrate.graph.attributes import dtypes, flag
from migrate.graph.changes import Changes, described, find_changes, refuse_two
from migrate.graph.interface.gradient_scopes import GradientScopes
from migrate.graph.metagraph import Edge, Graph
from migrate.graph.updates import VariableUpdate, every_update
from migrate.graph.wrapped import STAGED, refuse_untold
from migrate.model.training.gradients import Gradients, Slices, find_loss
from semisync.common.errors import BadInput
from semisync.common.sentences import some_of
from semisync.encoding.dtypes import BY_NAME

_USUAL_FLAGS = {"multiply_linear_by_lr": False, "update_slots": True}


class Recipe(NamedTuple):
    """How a step trains.

    Attributes:
        updates, gradients: by variable node.
        scopes: of tf.gradients.
        changes: everything that a step writes.
    """

    updates: Dict[str, VariableUpdate]
    gradients: Dict[str, Slices]
    scopes: GradientScopes
    changes: Changes

    def loss(self, graph: Graph) -> Edge:
        """The loss that is trained; raises BadInput if that is not one known tensor."""
        return find_loss(graph, self.scopes, self.gradients.values())

    def others(self) -> Set[str]:
        """The variable nodes that a step changes besides trained ones, slots and counters."""
        known = set(self.updates) | set(self.changes.counters)
        known.update(slot for update in self.updates.values() for slot in update.slots)
        return set(self.changes.written) - known


def read_recipe(graph: Graph, train_op: Optional[str] = None) -> Recipe:
    """How a step of `train_op` trains; by default one of all training ops.

    Raises:
        BadInput: the graph does not train, or in a way that cannot be carried over.
    """
    changes = find_changes(graph, train_op)
    updates: Dict[str, VariableUpdate] = {}
    for update in every_update(graph):
        if update.node not in changes.nodes:
            continue
        known = updates.setdefault(update.variable, update)
        if known is not update and update.by_id:
            raise BadInput(
                f"{graph.path}: {known.node!r} and {update.node!r} train the rows of "
                f"{update.variable!r}, each those of a look-up of its own, and TFRA keeps the last "
                "of an id that both have: it cannot be carried over; have the job look the table "
                "up once, or give the MetaGraph of the job with its optimizer wrapped, which sums "
                "them"
            )
        if known is not update:
            raise refuse_two(graph, update.variable, known.node, update.node)
    _check_writers(graph, changes, updates)
    if not updates:
        if any(node.op == STAGED for node in graph.nodes.values()):
            raise refuse_untold(graph.path)
        raise BadInput(
            f"{graph.path} has no training op that changes a variable; give the MetaGraph that the "
            "training job wrote"
        )
    scopes = GradientScopes(graph)
    found = Gradients(graph, scopes)
    gradients = {name: found.of(update) for name, update in updates.items()}
    return Recipe(updates, gradients, scopes, changes)


def _check_writers(graph: Graph, changes: Changes, updates: Dict[str, VariableUpdate]) -> None:
    for variable in sorted(graph.trainable or ()):
        if variable in changes.counters and _is_whole(graph, variable):
            continue  # such as a global step of tf.Variable(0), which TensorFlow lists as trainable
        writers = changes.written.get(variable, [])
        own = updates.get(variable)
        # Such as a constraint, or a weight decay beside the optimizer.
        others = [node for node in writers if own is None or node.name != own.node]
        if others:
            raise BadInput(
                f"{graph.path}: each step changes {variable!r} by {described(others)}"
                + (f", beside the optimizer's {own.node!r}" if own is not None else "")
                + "; that is not an update of an optimizer that is known here, and cannot be "
                "carried over"
            )
    for update in updates.values():
        _check(graph, changes, update)


def _is_whole(graph: Graph, variable: str) -> bool:
    return all(BY_NAME[one].is_integer for one in dtypes(graph, graph.nodes[variable], "dtype"))


def _check(graph: Graph, changes: Changes, update: VariableUpdate) -> None:
    node = graph.nodes[update.node]
    strange: List[str] = [
        name
        for name, usual in _USUAL_FLAGS.items()
        if name in node.attrs and flag(graph, node, name) != usual
    ]
    if strange:
        raise BadInput(
            f"{graph.path}: {update.node!r} ({node.op}) trains {update.variable!r} with "
            f"{', '.join(strange)} not set as usual, which cannot be carried over"
        )
    if "Apply" not in node.op:
        return  # several ops make the update, and write the slots one by one
    for slot in update.slots:
        others = [one for one in changes.written.get(slot, []) if one.name != update.node]
        if others:
            raise BadInput(
                f"{graph.path}: each step changes {slot!r}, a slot of {update.variable!r}, by "
                f"{described(others)} beside {update.node!r}; that cannot be carried over"
            )


def left_out_text(names: Collection[str]) -> str:
    """A sentence on the variables that a step of the graph changes beside the trained ones."""
    return f"each step of TensorFlow changes, and torch does not: {some_of(names)}"
