"""The inputs of a graph's training ops, as modules: learning rates and other hyperparameters, the
counters that they depend on, and the changes to gradients before they are applied.

No forms are recognised: the part of the graph is written by the Emitter, like the model itself,
with placeholders for the inputs of a step. An unknown op is refused by its name.

    rates        from the feeds and the counters to the hyperparameters that are not constants,
                 and to the new value of each counter
    gradients    from the gradients of the loss to those that are applied
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import MetaGraph
from migrate.graph.interface.inputs import Input
from migrate.graph.metagraph import Edge
from migrate.model.load import build_module, write_source
from semisync.common.errors import BadInput, UsageError
from semisync.common.tensor_names import of_edge


class Formula(NamedTuple):
    """The values of some tensors of a graph.

    Attributes:
        constants: the values of those that depend on constants alone.
        computed: the others, in the order in which `module` returns them; None if there is none.
        variables: variable node -> the buffer of `module` with its value.
    """

    constants: Dict[Edge, numpy.ndarray]
    computed: List[Edge]
    module: Optional[Any]
    variables: Dict[str, str]

    def __call__(self, inputs: Mapping[str, Any]) -> Dict[Edge, Any]:
        """The values of the computed tensors, given the inputs of a step."""
        if self.module is None:
            return {}
        results = self.module(inputs)
        results = results if isinstance(results, tuple) else (results,)
        return dict(zip(self.computed, results))

    def values(self, inputs: Mapping[str, Any]) -> Dict[Edge, Any]:
        """The values of all tensors, constants included."""
        import torch

        return {**{e: torch.as_tensor(v) for e, v in self.constants.items()}, **self(inputs)}

    def to(self, device: Any) -> None:
        """Moves its constants; the variables, in which the optimizer counts, are scalars."""
        buffers = {} if self.module is None else self.module._buffers
        for name in set(buffers) - set(self.variables.values()):
            buffers[name] = buffers[name].to(device)


def write_formula(
    found: MetaGraph,
    checkpoint: Checkpoint,
    edges: Sequence[Edge],
    given: Collection[str],
    moving: Mapping[str, str],
    what: str,
) -> Formula:
    """The formula of `edges`.

    Args:
        given: the inputs of a step.
        moving: variable nodes that a step changes in a way that is not carried over -> how.
        what: the subject of errors, "the learning rate".

    Raises:
        UsageError: an input that is not given.
        BadInput: ops and variables that are not known.
    """
    edges = list(dict.fromkeys(edges))
    if not edges:
        return Formula({}, [], None, {})
    written = write_source(found, checkpoint, _named(edges))
    _check_inputs(found, written.inputs, given, what)
    # A buffer of the module would keep its value while TensorFlow's variable moves.
    for node in written.by_node:
        if node in moving:
            raise BadInput(
                f"{found.graph.path}: {what} depends on {node!r}, which each step changes by "
                f"{moving[node]}; that cannot be carried over"
            )
    values = dict(zip(edges, written.outputs))
    constants = {e: v.constant for e, v in values.items() if v.constant is not None}
    computed = [edge for edge in edges if edge not in constants]
    if not computed:
        return Formula(constants, [], None, {})
    # Again, without the constants: the module returns only what it computes.
    written = write_source(found, checkpoint, _named(computed))
    module = build_module(written, checkpoint).eval().requires_grad_(False)
    variables = {node: one.attribute for node, one in written.by_node.items()}
    return Formula(constants, computed, module, variables)


def _named(edges: Sequence[Edge]) -> Dict[str, Edge]:
    return {of_edge(edge): edge for edge in edges}


def _check_inputs(
    found: MetaGraph, inputs: Sequence[Input], given: Collection[str], what: str
) -> None:
    needed = {one.name for one in inputs if not one.optional}
    missing = sorted(needed - set(given))
    if missing:
        options = " ".join(f"--feed {name}=VALUE" for name in missing)
        feeds = ", ".join(f"{name!r}: ..." for name in missing)
        raise UsageError(
            f"{found.graph.path}: {what} depends on {', '.join(map(repr, missing))}, which each "
            f"step is fed; give {options}, or in Python feeds={{{feeds}}}"
        )
