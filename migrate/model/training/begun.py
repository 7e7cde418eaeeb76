"""State of optimizers that a checkpoint lacks: it starts over at the values of the graph's own
initializers, as in a TensorFlow job that restores the checkpoint.

1. A Saver that was made before the training op, or of the model's variables alone, saves no slots.
   If the checkpoint has none of an optimizer's slots, they start over, and with them any missing
   powers of beta1 and beta2.
2. Where it has some of them, none starts over: the checkpoint is truncated, which its reader
   refuses.
3. Where no optimizer continues with its slots, missing counters and missing variables that the
   learning rates depend on start over, too.
4. A variable of the model never starts over, nor does one whose initializer is not a constant.
"""

from __future__ import annotations

import collections
import sys
from typing import Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

import numpy

from graph_rewrite.graph.ops import VARIABLES
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.graph.changes import Changes, depends_on, first_value
from migrate.graph.find import MetaGraph
from migrate.graph.lookups import Saved
from migrate.graph.metagraph import Graph
from migrate.graph.updates import VariableUpdate
from migrate.model.folding import Known
from migrate.optimizers.adam import POWERS
from semisync.common.sentences import some_of


class Begun(NamedTuple):
    """A graph and a checkpoint, with the state that starts over.

    Attributes:
        nodes: the variable nodes of that state, by the name it would be stored under, the slots
            last; of a table, its partitions in the order of their rows.
    """

    found: MetaGraph
    checkpoint: Checkpoint
    nodes: Dict[str, List[str]]


def begin_anew(
    found: MetaGraph, checkpoint: Checkpoint, updates: Sequence[VariableUpdate], changes: Changes
) -> Begun:
    """Initial values of the state that `updates` need and the checkpoint lacks."""
    places = _places(found, updates)
    saved = dict(found.saved)
    values: Dict[str, numpy.ndarray] = {}
    for node in _lacking(found, updates, changes):
        value, place = first_constant(found.graph, node), places.get(node, Saved(node, 0))
        if value is not None and place.name not in checkpoint:
            saved[node], values[node] = place, value
    nodes: Dict[str, List[str]] = {}
    slots = {slot for update in updates for slot in update.slots}
    for node in sorted(values, key=lambda node: (node in slots, saved[node])):
        nodes.setdefault(saved[node].name, []).append(node)
    laid = {name: _joined([values[node] for node in of]) for name, of in nodes.items()}
    whole = _Laid(checkpoint, laid) if laid else checkpoint
    return Begun(found._replace(saved=saved), whole, nodes)


def begun_text(names: Collection[str]) -> str:
    """A sentence on the state that starts over."""
    return (
        f"the checkpoint lacks {some_of(names)}: training begins with the graph's first values of "
        "these"
    )


class _Laid(Checkpoint):
    """`checkpoint` with tensors that it lacks."""

    def __init__(self, checkpoint: Checkpoint, values: Mapping[str, numpy.ndarray]) -> None:
        super().__init__(checkpoint.prefix, checkpoint.stored, checkpoint.store)
        self.newer = checkpoint.newer
        self._source, self._values = checkpoint, dict(values)
        self._infos = {**checkpoint, **{name: _info(one) for name, one in values.items()}}

    def read(self, name: str, rows: Optional[slice] = None) -> numpy.ndarray:
        """As Checkpoint.read."""
        if name not in self._values:
            return self._source.read(name, rows)
        return self._values[name] if rows is None else self._values[name][rows]


def _info(value: numpy.ndarray) -> TensorInfo:
    return TensorInfo(value.shape, value.dtype.name, (), "slot", value.nbytes)


def _lacking(found: MetaGraph, updates: Sequence[VariableUpdate], changes: Changes) -> List[str]:
    """The variable nodes that may start over."""
    of: Dict[str, List[VariableUpdate]] = {}
    for update in updates:
        of.setdefault(update.optimizer.name, []).append(update)
    begin: List[str] = []
    stay: Set[str] = set()
    for own in of.values():
        slots = [slot for update in own for slot in update.slots]
        read = [node for update in own for node in _read(found.graph, update)]
        if any(slot in found.saved for slot in slots):
            # Stored slots never start over; if some are missing the checkpoint is truncated, and
            # refused.
            stay.update(slots, read)
        else:
            begin += slots + read
    # Where an optimizer continues, counters must continue with it.
    if not stay:
        begin += changes.counters
    return [node for node in dict.fromkeys(begin) if node not in stay and node not in found.saved]


def _read(graph: Graph, update: VariableUpdate) -> List[str]:
    """The variables that an update's hyperparameters, and powers of beta1 and beta2, depend on."""
    names = [*update.optimizer.hyperparameters.values(), *POWERS]
    edges = [update.inputs[name] for name in names if name in update.inputs]
    nodes = sorted({node for edge in edges for node in depends_on(graph, edge)})
    return [node for node in nodes if graph.nodes[node].op in VARIABLES]


def _places(found: MetaGraph, updates: Sequence[VariableUpdate]) -> Dict[str, Saved]:
    """By slot node, the place of a partition's slot: under the name of the whole variable."""
    parts = collections.Counter(saved.name for saved in found.saved.values())
    places: Dict[str, Saved] = {}
    for update in updates:
        saved = found.saved.get(update.variable)
        if saved is not None and parts[saved.name] > 1:
            for slot in update.slots:
                leaf = slot.rpartition("/")[2]
                places[slot] = saved._replace(name=f"{saved.name}/{leaf}")
    return places


def first_constant(graph: Graph, node: str) -> Optional[numpy.ndarray]:
    """The initial value of a variable, if it is a constant, or one number for all elements."""
    edge, known = first_value(graph, node), Known(graph, sys.maxsize)
    value = None if edge is None else known.value(edge)
    # A Fill that is too large to be computed: its one number stands for all elements.
    if value is None and edge is not None and graph.nodes[edge[0]].op == "Fill":
        return known.value(graph.nodes[edge[0]].inputs[1])
    return None if value is None else _joined([value])


def _joined(parts: Sequence[numpy.ndarray]) -> numpy.ndarray:
    """The rows of all parts; if one number fills them, a view of that number."""
    whole = parts[0] if len(parts) == 1 else numpy.concatenate(parts)
    first = whole.flat[:1]
    if not whole.size or (whole != first).any():
        return whole
    # A view of one number: the slots of a large table take no memory.
    return numpy.broadcast_to(first.reshape(()), whole.shape)
