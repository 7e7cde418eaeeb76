"""The parameters of a module that a graph trains, each with its updates: one per partition."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from migrate.graph.find import MetaGraph
from migrate.graph.updates import VariableUpdate
from migrate.model.parameters import Parameter
from migrate.model.training.begun import first_constant
from migrate.model.training.gradients import Slices
from migrate.model.training.recipe import Recipe
from migrate.optimizers.record import Optimizer
from semisync.common.errors import BadInput


class Target(NamedTuple):
    """One parameter.

    Attributes:
        attribute: its name in the module.
        tensor: the parameter itself.
        parameter: its relation to the variable.
        updates: of its partitions, by variable node, in the order of their rows.
        gradients: of the same, as tf.gradients returns them.
        starts: the first row of each partition.
        sparse: whether tf.gradients returns only the rows of the batch.
        begins: for a table by raw id the initial slots of a new row, by torch's names: float [] or
            [dim].
    """

    attribute: str
    tensor: Any
    parameter: Parameter
    updates: Dict[str, VariableUpdate]
    gradients: Dict[str, Slices]
    starts: Tuple[int, ...]
    sparse: bool
    begins: Mapping[str, Any] = {}

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer of its updates; one for all partitions."""
        return next(iter(self.updates.values())).optimizer

    @property
    def name(self) -> str:
        """The variable's name in the checkpoint."""
        return self.parameter.variable


def find_targets(module: Any, found: MetaGraph, recipe: Recipe) -> List[Target]:
    """The trained parameters of a module of `load_model`.

    Raises:
        BadInput: not all partitions of a table are trained.
    """
    tensors = dict(module.named_parameters())
    nodes: Dict[str, List[str]] = {}
    by_attribute: Dict[str, Parameter] = {}
    for node, parameter in module.tensorflow_nodes.items():
        nodes.setdefault(parameter.attribute, []).append(node)
        by_attribute[parameter.attribute] = parameter
    targets = []
    for attribute, parameter in by_attribute.items():
        own = sorted(nodes[attribute], key=lambda node: found.saved[node].row)
        trained = [node for node in own if node in recipe.updates]
        # Buffers, and parameters that no update of the graph trains.
        if attribute not in tensors or not trained:
            continue
        updates = {node: recipe.updates[node] for node in trained}
        if trained != own or len({update.indices is None for update in updates.values()}) != 1:
            raise BadInput(
                f"{found.graph.path}: not all partitions of {parameter.variable!r}, which are one "
                "table, are trained alike; that cannot be carried over"
            )
        gradients = {node: recipe.gradients[node] for node in trained}
        starts = tuple(found.saved[node].row for node in own)
        tensor, begins = tensors[attribute], _begins(found, updates[trained[0]])
        sparse = any(slices.indices is not None for slices in gradients.values())
        targets.append(
            Target(attribute, tensor, parameter, updates, gradients, starts, sparse, begins)
        )
    return targets


def _begins(found: MetaGraph, update: VariableUpdate) -> Dict[str, Any]:
    """The initial slots of a new row; raises BadInput if they are not constants."""
    if not update.by_id:
        return {}
    begins = {}
    slots = update.optimizer.slots_for(range(len(update.slots)))
    for slot, node in zip(slots, update.slots):
        begins[slot.torch] = first_constant(found.graph, node)
        if begins[slot.torch] is None:
            raise BadInput(
                f"{found.graph.path}: the slot {node!r} of a new id does not begin with "
                "a constant, which cannot be carried over"
            )
    return begins


def mark_sparse(module: Any, targets: List[Target]) -> None:
    """Makes the gradients of those tables sparse that are sparse in the graph. A sparse gradient
    lists the rows that a batch looked up, including rows whose gradient is exactly 0."""
    from torch import nn

    sparse = {id(target.tensor) for target in targets if target.sparse}
    for target in targets:
        # Read by `migrate.runtime.tables.rows`; nn.Embedding has a flag of its own.
        target.tensor.sparse_gradient = target.sparse
    for inner in module.modules():
        if isinstance(inner, (nn.Embedding, nn.EmbeddingBag)):
            inner.sparse = id(inner.weight) in sparse
