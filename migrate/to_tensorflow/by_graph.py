"""The tensors of a torch Distributed Checkpoint that `semisync train` saved.

Its tensors have the names that the module of `migrate.build_training` gives them, so that the graph
beside the original identifies each: `model.ATTRIBUTE`, `optim.ATTRIBUTE.SLOT`, `counter.NODE`. The
module itself is not made. A variable that the module lacks keeps the original's value.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import MetaGraph
from migrate.hash_tables.whole_tables import with_tables
from migrate.model.load import read_meta_graph, write_source
from migrate.model.parameters import Parameter
from migrate.model.training.begun import begin_anew
from migrate.model.training.recipe import Recipe, read_recipe
from migrate.model.training.stored import slot_names
from migrate.targets import digests
from migrate.targets.reading.dcp import Saved, read_dcp
from migrate.to_tensorflow.dcp_rows import joined
from migrate.to_tensorflow.held import Held, Side, notes_on_state
from migrate.to_tensorflow.keys import Keys, Place
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge


def side_of_training(
    directory: str,
    original: Checkpoint,
    meta: Optional[str] = None,
    assets: Sequence[str] = (),
) -> Side:
    """A DCP's tensors of the checkpoint whose graph its training was built from.

    Raises:
        BadInput: it is not one, is damaged, or lacks a variable that the graph trains.
    """
    digests.check(directory)
    saved = read_dcp(directory)
    found, original = read_meta_graph(original, meta, assets=assets), with_tables(original)
    recipe = read_recipe(found.graph)
    loss = recipe.loss(found.graph)
    written = write_source(found, original, {of_edge(loss): loss})
    search = _Search(directory, saved)
    for parameter in written.parameters:
        if parameter.variable not in _counters(found, recipe):
            search.add(parameter.variable, f"model.{parameter.attribute}", parameter)
    trained = _trained(found, recipe, written.by_node)
    updates = [recipe.updates[node] for nodes in trained.values() for node in nodes]
    laid, checkpoint, begun = begin_anew(found, original, updates, recipe.changes)
    for attribute, nodes in trained.items():
        parameter = written.by_node[nodes[0]]
        own = [recipe.updates[node] for node in nodes]
        for slot, name in slot_names(laid, checkpoint, parameter, own).items():
            if name not in begun:
                search.add(name, f"optim.{attribute}.{slot}", parameter)
    held = search.held()
    for name, node in _counters(found, recipe).items():
        held[name] = search.counter(f"counter.{node}")
    notes = notes_on_state(_left_out(found, recipe, held), list(begun))
    return Side(directory, held, {}, {}, {}, notes)


def _trained(
    found: MetaGraph, recipe: Recipe, by_node: Dict[str, Parameter]
) -> Dict[str, List[str]]:
    """The nodes of trained variables, in the order of their rows, by the module's attribute."""
    nodes: Dict[str, List[str]] = {}
    for node, parameter in by_node.items():
        if node in recipe.updates:
            nodes.setdefault(parameter.attribute, []).append(node)
    return {key: sorted(of, key=lambda node: found.saved[node].row) for key, of in nodes.items()}


def _counters(found: MetaGraph, recipe: Recipe) -> Dict[str, str]:
    """The variable node of each counter, by its name in the checkpoint."""
    nodes = recipe.changes.counters
    return {found.saved[node].name: node for node in nodes if node in found.saved}


def _left_out(found: MetaGraph, recipe: Recipe, held: Dict[str, Held]) -> List[str]:
    """Variables that a step in TensorFlow changes and torch's does not."""
    others = [found.saved[node].name for node in recipe.others() if node in found.saved]
    return sorted(set(others) - set(held))


class _Search:
    """Finds the graph's variables among the tensors of a DCP."""

    def __init__(self, directory: str, saved: Dict[str, Saved]) -> None:
        self._directory, self._saved = directory, saved
        self._keys = Keys(saved, directory)
        self._places: Dict[str, List[Place]] = {}
        self._by_id: Dict[str, bool] = {}

    def add(self, variable: str, key: str, parameter: Parameter) -> None:
        """Notes that `key` is `variable`, or some rows of it, kept as `parameter` is."""
        first = 0 if parameter.rows is None else parameter.rows[0]
        place = Place(self._found(key), key, parameter.axes, first)
        self._places.setdefault(variable, []).append(place)
        # One attribute holds the rows of several partitions: by id, as look-ups by "mod" find them.
        self._by_id[variable] = parameter.dealt > 1

    def held(self) -> Dict[str, Held]:
        """The noted tensors."""
        return {
            name: joined(
                sorted(places, key=lambda place: place.first), self._saved, self._by_id[name]
            )
            for name, places in self._places.items()
        }

    def counter(self, key: str) -> Held:
        """A counter."""
        return joined([Place(self._found(key), key)], self._saved, False)

    def _found(self, key: str) -> str:
        found = self._keys.find(key)
        if found is None:
            raise BadInput(
                f"{self._directory} has no {key!r}, which a training of this graph saves; if it is "
                "of another training, say from which conversion it began (--converted)"
            )
        return found
