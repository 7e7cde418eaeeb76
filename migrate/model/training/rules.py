"""The torch optimizer that continues an update, and the source of each of its arguments.

An argument is a constant, or a tensor of the graph that each step computes again. Updates of the
same rule share one group of parameters.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

import numpy

from graph_rewrite.graph.ops import PASS
from migrate.graph.metagraph import Edge, Graph
from migrate.graph.updates import VariableUpdate
from migrate.optimizers.adam import ADAM, LAZY_ADAM, POWERS
from semisync.common.errors import BadInput

CONTINUED = {  # the classes of migrate.torchrec.optimizers, which takes torch to import
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamWeightDecay",
    "Ftrl",
    "GradientDescent",
    "Momentum",
    "ProximalAdagrad",
    "ProximalGradientDescent",
    "RMSProp",
}


class Rule(NamedTuple):
    """One optimizer with its arguments.

    Attributes:
        kind: class in migrate.torchrec.optimizers.
        settings: arguments that are not hyperparameters.
        edges: argument -> its tensor.
    """

    kind: str
    settings: Tuple[Tuple[str, Any], ...]
    edges: Tuple[Tuple[str, Edge], ...]

    def arguments(self, values: Mapping[Edge, Any]) -> Dict[str, Any]:
        """All arguments, given the values of the tensors."""
        arguments = dict(self.settings)
        arguments.update((name, number(values[edge])) for name, edge in self.edges)
        return arguments


def number(value: Any) -> float:
    """A scalar tensor or array as a Python number: the shortest that is the same float32."""
    array = numpy.asarray(value)
    return float(str(array[()])) if array.dtype == numpy.float32 else array.item()


def rule_of(graph: Graph, update: VariableUpdate) -> Rule:
    """The rule of an update; raises BadInput if nothing continues it."""
    record = update.optimizer
    flags = {name: update.hyperparameters.get(name) for name in record.flags.values()}
    set_flags = {name: value for name, value in flags.items() if value is not None}
    counterpart = record.continued_by(set_flags)
    if record.leaf not in CONTINUED or counterpart is None:
        raise BadInput(
            f"{graph.path}: {update.node!r} trains {update.variable!r} by "
            f"{record.name}{_with(set_flags)}, which no optimizer here continues. {record.note}"
        )
    settings: Dict[str, Any] = {"rows": "touched" if _touches(update) else "all"}
    edges: Dict[str, Edge] = {}
    for name, argument in counterpart.arguments.items():
        if name in update.inputs:
            edges[argument] = graph.beyond(update.inputs[name], PASS)
        elif name in set_flags:
            settings[argument] = bool(set_flags[name])
        elif name in update.hyperparameters:
            value = update.hyperparameters[name]
            if value is None:
                raise BadInput(
                    f"{graph.path}: {name} of {update.node!r}, which trains {update.variable!r}, "
                    "is not a constant; that cannot be carried over"
                )
            settings[argument] = value
    if record.name in (ADAM.name, LAZY_ADAM.name):
        # The powers are no hyperparameters: each step reads them from variables that it advances.
        edges.update((name, graph.beyond(update.inputs[name], PASS)) for name in POWERS)
    slots = [slot.torch for slot in record.slots_for(range(len(update.slots)))]
    for slot, argument in counterpart.for_slot.items():
        settings[argument] = slot in slots
    return Rule(record.leaf, _sorted(settings), _sorted(edges))


def _sorted(values: Mapping[str, Any]) -> Tuple[Tuple[str, Any], ...]:
    return tuple(sorted(values.items()))


def _with(flags: Mapping[str, float]) -> str:
    named = [name for name, value in flags.items() if value]
    return f" with {', '.join(named)}" if named else ""


def _touches(update: VariableUpdate) -> bool:
    """Whether an update moves only the rows of the batch."""
    if update.indices is None:
        return False
    composed = update.optimizer.composed
    return composed is None or composed.rows


def one_rule(graph: Graph, variable: str, updates: List[VariableUpdate]) -> Rule:
    """The rule of all partitions of a variable; raises BadInput if they differ."""
    rules = {rule_of(graph, update) for update in updates}
    if len(rules) != 1:
        raise BadInput(
            f"{graph.path}: the partitions of {variable!r}, which are one table, are trained with "
            "different settings; that cannot be carried over"
        )
    return rules.pop()
