"""A graph's changes to gradients between tf.gradients and the training ops: clipping by norm, by
value, by the global norm, scaling, or any other ops.

1. The formula takes a gradient in TensorFlow's form: in TensorFlow's layout; of a table the rows of
   the batch, values and indices, per partition; the formula may make it dense.
2. Ops that make indices unique just before a training op are left out: the optimizers sum repeated
   rows themselves.
3. clip_by_global_norm takes the norm of a table's values before repeated rows are summed: those of
   each look-up, `looked_up`.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

import torch
from torch import nn

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import MetaGraph
from migrate.graph.metagraph import Edge, Graph
from migrate.model.training.cutting import Given, cut
from migrate.model.training.formulas import Formula, write_formula
from migrate.model.training.gradients import Slices, applied, before_summing
from migrate.model.training.looked_up import LookedUp
from migrate.model.training.partitions import Slice, in_tensorflow, join, rows_of, split
from migrate.model.training.recipe import Recipe
from migrate.model.training.targets import Target
from semisync.common.errors import BadInput


class Transformation:
    """The function from the gradients of the loss to those that are applied. Both are keyed by the
    target's attribute and in the module's layout; sparse ones are sparse tensors."""

    def __init__(
        self,
        found: MetaGraph,
        checkpoint: Checkpoint,
        recipe: Recipe,
        targets: Sequence[Target],
        feeds: Mapping[str, Any],
        moving: Mapping[str, str],
        module: nn.Module,
    ) -> None:
        self._targets = targets
        self._looked_up: Optional[LookedUp] = None
        self._applied = {
            node: before_summing(found.graph, update) or applied(update)
            for target in targets
            for node, update in target.updates.items()
        }
        changed = [
            edge
            for target in targets
            for node, raw in target.gradients.items()
            for edge in _changed(self._applied[node], raw)
        ]
        self.formula = Formula({}, [], None, {})
        if not changed:
            return
        given = _given(found, recipe, targets)
        graph = cut(found.graph, given)
        edges = [(given[edge].name, 0) if edge in given else edge for edge in changed]
        names = {one.name for one in given.values()} | set(feeds)
        what = "what becomes of the gradients"
        cut_found = found._replace(graph=graph)
        self.formula = write_formula(cut_found, checkpoint, edges, names, moving, what)
        _refuse_constants(found.graph, self._applied, targets, self.formula)
        if self.formula.module is not None:
            self._looked_up = LookedUp(module, targets)

    def clear(self) -> None:
        """Forgets the gradients of look-ups so far."""
        if self._looked_up is not None:
            self._looked_up.clear()

    def __call__(
        self,
        gradients: Mapping[str, torch.Tensor],
        feeds: Mapping[str, Any],
        given: Mapping[str, Slice],
    ) -> Dict[str, torch.Tensor]:
        """The gradients that are applied.

        Args:
            given: some of them, by variable node, which replace those of `gradients`.
        """
        # The graph applies the gradients as they are.
        if self._looked_up is None and not given:
            return dict(gradients)
        if self._looked_up is None:
            told = [target for target in self._targets if set(target.updates) <= set(given)]
            return {**gradients, **{target.attribute: join(target, given) for target in told}}
        slices: Dict[str, Slice] = {}
        inputs: Dict[str, Any] = dict(feeds)
        for target in self._targets:
            gradient = gradients[target.attribute]
            if gradient.is_sparse:
                gradient = self._looked_up.gradient(target, gradient)
            variable = in_tensorflow(target, target.tensor)
            own = dict(zip(target.updates, rows_of(target)))
            for node, (values, indices) in split(target, gradient).items():
                values, indices = slices[node] = given.get(node, (values, indices))
                inputs[_values_name(node)] = values
                inputs[_variable_name(node)] = variable[own[node]]
                if indices is not None:
                    inputs[_indices_name(node)] = indices
        # The model may have moved to another device since the last step.
        self.formula.to(self._targets[0].tensor.device)
        found = self.formula(inputs)
        for node, (values, indices) in slices.items():
            # What the formula does not compute is applied as it came.
            edges = self._applied[node]
            slices[node] = (
                found.get(edges.values, values),
                None if edges.indices is None else found.get(edges.indices, indices),
            )
        return {target.attribute: join(target, slices) for target in self._targets}


def _values_name(node: str) -> str:
    return f"{node}/gradient"


def _indices_name(node: str) -> str:
    return f"{node}/gradient_rows"


def _variable_name(node: str) -> str:
    return f"{node}/value"


def _changed(applied: Slices, raw: Slices) -> List[Edge]:
    pairs = zip(applied, raw)
    return [edge for edge, own in pairs if edge is not None and edge != own]


def _given(found: MetaGraph, recipe: Recipe, targets: Sequence[Target]) -> Dict[Edge, Given]:
    """The inputs of a step: gradients, and the variables themselves."""
    given: Dict[Edge, Given] = {}
    for target in targets:
        whole = target.parameter.shape
        # The rows of a batch, or of one partition, vary in number.
        some = target.sparse or len(target.updates) > 1
        shape = (None, *whole[1:]) if some else whole
        for node, raw in target.gradients.items():
            given[raw.values] = Given(_values_name(node), target.parameter.dtype, shape)
            given[node, 0] = Given(_variable_name(node), target.parameter.dtype, shape)
            if raw.indices is not None:
                given[raw.indices] = Given(_indices_name(node), "int64", (None,))
    return given


def _refuse_constants(
    graph: Graph, applied: Mapping[str, Slices], targets: Sequence[Target], formula: Formula
) -> None:
    for target in targets:
        for node in target.updates:
            for edge in applied[node]:
                if edge in formula.constants:
                    raise BadInput(
                        f"{graph.path}: the gradient that trains {target.name!r} is a constant, "
                        f"{edge[0]!r}; that cannot be carried over"
                    )
