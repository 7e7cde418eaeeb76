"""From a checkpoint and its graph to a module that computes the loss, and the optimizer that trains
it as the graph does."""

from __future__ import annotations

import os
from typing import (
    Any,
    Collection,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Union,
)

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.changes import described, is_written
from migrate.graph.find import MetaGraph
from migrate.graph.metagraph import Edge
from migrate.hash_tables.whole_tables import with_tables
from migrate.model.layers.batch_norm import STATISTICS
from migrate.model.load import build_module, opened, read_meta_graph, write_source
from migrate.model.named_inputs import Named
from migrate.model.outputs import find_outputs, tensor_edge
from migrate.model.training.begun import begin_anew
from migrate.model.training.cutting import Given, cut
from migrate.model.training.formulas import Formula, write_formula
from migrate.model.training.recipe import Recipe, read_recipe
from migrate.model.training.rules import Rule, one_rule, rule_of
from migrate.model.training.stored import read_slots, slot_names
from migrate.model.training.targets import find_targets, mark_sparse
from migrate.runtime.serving.memory import keep_freed_memory
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge
from semisync.common.walks import reachable

Source = Union[Checkpoint, str, os.PathLike]


class Training(NamedTuple):
    """A model's training; if the loss has several numbers, TensorFlow's gradients are their sum's.

    Attributes:
        module: returns the loss.
        optimizer: a `GraphOptimizer`.
        loss: the tensor's name.
    """

    module: Any
    optimizer: Any
    loss: str


def build_training(
    checkpoint: Source,
    meta: Optional[str] = None,
    train_op: Optional[str] = None,
    loss: Optional[str] = None,
    feeds: Optional[Mapping[str, Any]] = None,
    given: Optional[Mapping[str, str]] = None,
    output: Optional[str] = None,
    assets: Sequence[str] = (),
    inputs: Named = None,
) -> Training:
    """The module and the optimizer that train on where TensorFlow stopped.

    The module is in training mode: BatchNorm moves its statistics, dropout drops. The process keeps
    the memory that a step frees (`migrate.runtime.keep_freed_memory`).

    Args:
        checkpoint, meta: as in `load_model`.
        train_op: the training op whose steps are meant; by default all that the graph has.
        loss: by default the tensor whose gradients train the variables.
        feeds: {placeholder: value} of hyperparameters that the graph is fed, such as a learning
            rate.
        given: {tensor: dtype} of tensors that are fed with a batch instead of computed, such as
            the negative samples of a sampled softmax.
        output: a tensor that the module returns beside the loss, as (loss, output). The BatchNorms
            that it depends on move too; `optimizer.left_out` names variables that move only in
            TensorFlow.
        assets, inputs: as in `load_model`.

    Returns:
        A `Training`: its `module`, `optimizer` and the name of its `loss`.

    Raises:
        BadInput: the graph does not train, or not in a way that can be carried over.
        UsageError: a fed hyperparameter is not given.

    Examples:
        >>> training = migrate.build_training("model.ckpt-40000")
        >>> batch = {
        ...     "city": ["Bern", "Oslo"],
        ...     "item": torch.tensor([7, 8]),
        ...     "clicked": torch.tensor([[1.0], [0.0]]),
        ... }
        >>> training.optimizer.zero_grad()
        >>> training.module(batch).backward()
        >>> training.optimizer.step()
    """
    from migrate.model.training.custom_gradients import refuse_custom_gradients

    keep_freed_memory()
    checkpoint = opened(checkpoint)
    found = read_meta_graph(checkpoint, meta, inputs, assets)
    recipe = read_recipe(found.graph, train_op)
    edge = recipe.loss(found.graph) if loss is None else find_outputs(found.graph, loss)[loss]
    name = of_edge(edge)
    cuts = {
        tensor_edge(found.graph, tensor): Given(tensor, dtype)
        for tensor, dtype in (given or {}).items()
    }
    graph = cut(found.graph, cuts)
    refuse_custom_gradients(found, checkpoint, recipe, edge)
    outputs = {name: edge}
    if output is not None:
        outputs.update(find_outputs(found.graph, output))
    written = write_source(found._replace(graph=graph), checkpoint, outputs)
    module = build_module(written, checkpoint).train()
    edges = list(outputs.values())
    return Training(module, optimizer_of(module, checkpoint, found, recipe, feeds, edges), name)


def build_optimizer(
    module: Any,
    checkpoint: Source,
    meta: Optional[str] = None,
    train_op: Optional[str] = None,
    feeds: Optional[Mapping[str, Any]] = None,
) -> Any:
    """The optimizer of a module that `load_model` made, with the slots of the checkpoint.

    It steps all parameters, dense and sparse. From then on the gradients of the tables that
    TensorFlow trains by rows are sparse.

    Args:
        module: from `load_model`.
        checkpoint, meta, train_op, feeds: as in `build_training`.

    Returns:
        A `GraphOptimizer`, a torch.optim.Optimizer.

    Raises:
        BadInput, UsageError: as in `build_training`.

    Examples:
        >>> model = migrate.load_model("model.ckpt-40000")
        >>> optimizer = migrate.build_optimizer(model, "model.ckpt-40000")
        >>> model({"city": ["Bern"], "item": torch.tensor([7])}).sum().backward()
        >>> optimizer.step()
    """
    checkpoint = opened(checkpoint)
    found = read_meta_graph(checkpoint, meta)
    return optimizer_of(module, checkpoint, found, read_recipe(found.graph, train_op), feeds)


def optimizer_of(
    module: Any,
    checkpoint: Checkpoint,
    found: MetaGraph,
    recipe: Recipe,
    feeds: Optional[Mapping[str, Any]],
    outputs: Sequence[Edge] = (),
) -> Any:
    """As `build_optimizer`, of a graph that has been read.

    Args:
        outputs: the tensors that the module computes; without any, all of its statistics move.
    """
    from migrate.model.training.graph_optimizer import GraphOptimizer
    from migrate.model.training.transformation import Transformation

    feeds, checkpoint = dict(feeds or {}), with_tables(checkpoint)
    moving = {node: described(recipe.changes.written[node]) for node in sorted(recipe.others())}
    left_out = _left_out(module, found, moving)
    if outputs:
        _refuse_moves_beside(module, found, recipe, outputs)
    targets = find_targets(module, found, recipe)
    if not targets:
        raise BadInput(f"{found.graph.path}: no parameter of the module is trained by this graph")
    # Only what the module trains: slots of other variables need not be stored.
    updates = [update for target in targets for update in target.updates.values()]
    found, checkpoint, begun = begin_anew(found, checkpoint, updates, recipe.changes)
    rules = {
        target.attribute: one_rule(found.graph, target.name, list(target.updates.values()))
        for target in targets
    }
    # Counters that are neither stored nor begun anew, such as a local variable, are not read.
    counters = {k: v for k, v in recipe.changes.counters.items() if k in found.saved}
    rates = _write_rates(found, checkpoint, recipe, rules.values(), feeds)
    transformation = Transformation(found, checkpoint, recipe, targets, feeds, moving, module)
    modules = [(module, {n: p.attribute for n, p in module.tensorflow_nodes.items()})]
    for formula in (rates, transformation.formula):
        if formula.module is not None:
            modules.append((formula.module, formula.variables))
    # The modules' own buffers are replaced, so that a step counts for all of them.
    values = {node: _counter(checkpoint, found, node, modules) for node in counters}
    mark_sparse(module, targets)
    names = {node: found.saved[node].name for node in counters}
    slots = {
        target.attribute: slot_names(
            found, checkpoint, target.parameter, list(target.updates.values())
        )
        for target in targets
    }
    optimizer = GraphOptimizer(
        targets,
        rules,
        rates,
        transformation,
        counters,
        values,
        feeds,
        left_out,
        names,
        slots,
        begun,
    )
    _set_batch_norms(module, found, recipe)
    _fill(optimizer, checkpoint)
    return optimizer


def refuse_unfed_rates(
    found: MetaGraph,
    checkpoint: Checkpoint,
    recipe: Recipe,
    nodes: Collection[str],
    feeds: Mapping[str, Any],
) -> None:
    """Raises UsageError if a fed hyperparameter of the optimizers of the variables `nodes` is not
    in `feeds`; other errors as `optimizer_of`."""
    updates = [update for node, update in recipe.updates.items() if node in nodes]
    found, checkpoint, _ = begin_anew(found, with_tables(checkpoint), updates, recipe.changes)
    rules = [rule_of(found.graph, update) for update in updates]
    _write_rates(found, checkpoint, recipe, rules, feeds)


def _write_rates(
    found: MetaGraph,
    checkpoint: Checkpoint,
    recipe: Recipe,
    rules: Iterable[Rule],
    feeds: Mapping[str, Any],
) -> Formula:
    """The formula of the rules' hyperparameters and of the counters' next values."""
    edges = [edge for rule in rules for _, edge in rule.edges]
    edges += [one.edge for node, one in recipe.changes.counters.items() if node in found.saved]
    moving = {node: described(recipe.changes.written[node]) for node in sorted(recipe.others())}
    kinds = {**moving, **dict.fromkeys(recipe.updates, "an optimizer")}
    return write_formula(found, checkpoint, edges, feeds, kinds, "a hyperparameter")


def _fill(optimizer: Any, checkpoint: Checkpoint) -> None:
    import torch

    for target in optimizer.targets:
        state = optimizer.state[target.tensor]
        state["step"] = torch.zeros(())
        names = optimizer.slots[target.attribute]
        for slot, array in read_slots(checkpoint, target.parameter, names).items():
            state[slot] = torch.from_numpy(array.copy())


def _set_batch_norms(module: Any, found: MetaGraph, recipe: Recipe) -> None:
    """Sets BatchNorms whose statistics no step of the graph moves to normalise as in the graph.

    If nothing in the graph moves them, it trains with the moving statistics themselves. If a step
    does not run the ops that move them, it trains with the batch's.
    """
    from migrate.runtime import BatchNorm

    for node, parameter in module.tensorflow_nodes.items():
        owner, _, name = parameter.attribute.rpartition(".")
        norm = module.get_submodule(owner)
        still = node not in recipe.changes.written
        if still and isinstance(norm, BatchNorm) and name == "running_mean":
            # No step moves these statistics: a momentum of 0 keeps them.
            norm.momentum = 0.0
            norm.frozen = not is_written(found.graph, node)


def _counter(checkpoint: Checkpoint, found: MetaGraph, node: str, modules: List[Any]) -> Any:
    """The value of a counter, one tensor for all modules that read it."""
    import torch

    value = torch.from_numpy(checkpoint.read(found.saved[node].name).copy())
    for module, attributes in modules:
        if node in attributes:
            owner, _, name = attributes[node].rpartition(".")
            value = value.reshape(module.get_submodule(owner)._buffers[name].shape)
            module.get_submodule(owner)._buffers[name] = value
    return value


def _left_out(module: Any, found: MetaGraph, moving: Mapping[str, str]) -> List[str]:
    """The variables that a step of the graph changes, but the module does not.

    Raises:
        BadInput: the module reads such a variable, whose value would not change.
    """
    from migrate.runtime import BatchNorm

    moved: Set[str] = set()
    for node, parameter in module.tensorflow_nodes.items():
        if node not in moving:
            continue
        owner, _, name = parameter.attribute.rpartition(".")
        if isinstance(module.get_submodule(owner), BatchNorm) and name.startswith("running_"):
            moved.add(node)
            continue
        raise BadInput(
            f"{found.graph.path}: the model reads {parameter.variable!r}, which each step changes "
            f"by {moving[node]}; it is not a statistic of a BatchNorm that is known here, and "
            "cannot be carried over"
        )
    return sorted(set(moving) - moved)


def _refuse_moves_beside(
    module: Any, found: MetaGraph, recipe: Recipe, outputs: Sequence[Edge]
) -> None:
    """Raises BadInput if a step moves a BatchNorm of the module by statistics on which `outputs` do
    not depend, such as those of another batch."""
    nodes = found.graph.nodes
    reached = {node.name for node in found.graph.behind([name for name, _ in outputs])}

    def before(name: str) -> List[str]:
        return [] if name in reached else [source for source, _ in nodes[name].inputs]

    for variable in sorted(recipe.others() & set(module.tensorflow_nodes)):
        for writer in recipe.changes.written[variable]:
            passed = reachable([writer.name], before)
            # A BatchNorm of the module moves only when it runs, that is for what the outputs depend
            # on.
            beside = [one for one in passed if one not in reached and nodes[one].op in STATISTICS]
            if beside:
                raise BadInput(
                    f"{found.graph.path}: each step moves {variable!r} by {writer.name!r} too, "
                    f"towards {beside[0]!r}, which the loss does not depend on and torch would not "
                    "compute; name with output a tensor that depends on it, or with train_op a "
                    f"training op that does not run {writer.name!r}"
                )
