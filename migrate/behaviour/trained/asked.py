"""The tensors and nodes of a training step that TensorFlow is asked for."""

from __future__ import annotations

from typing import Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from graph_rewrite.patterns.variables import initializer
from migrate.behaviour import subject as subjects
from migrate.behaviour.subject import Subject
from migrate.graph.metagraph import Edge
from migrate.manifest.naming import ids_of
from migrate.model.training.build import Training
from migrate.model.training.recipe import Recipe
from semisync.common.sentences import some_of
from semisync.common.tensor_names import of_edge, split


def variables(
    subject: Subject, training: Training, tables: Collection[str]
) -> Dict[str, List[str]]:
    """The nodes of all compared variables, by the name in the checkpoint, without tables by id."""
    optimizer = training.optimizer
    names = {one.variable for one in training.module.tensorflow_nodes.values()}
    names |= {target.name for target in optimizer.targets}
    names |= {name for slots in optimizer.slots.values() for name in slots.values()}
    names |= set(optimizer.names.values())
    names -= {*tables, *map(ids_of, tables)}
    nodes: Dict[str, List[str]] = {name: [] for name in names}
    for node, saved in sorted(subject.found.saved.items(), key=lambda item: item[1].row):
        if saved.name in nodes and node in subject.raw.nodes:
            nodes[saved.name].append(node)
    # State that starts over is in no checkpoint, but TensorFlow has its variables.
    nodes.update(optimizer.begun)
    return nodes


def initializers(subject: Subject, training: Training, recipe: Recipe) -> List[str]:
    """The nodes that initialise the state that a step needs and the checkpoint lacks."""
    begun = (node for nodes in training.optimizer.begun.values() for node in nodes)
    lacking = {*begun, *recipe.changes.written} - set(subject.found.saved)
    return sorted({initializer(node) for node in lacking} & set(subject.raw.nodes))


def gradients(
    subject: Subject, training: Training
) -> Tuple[Dict[str, List[Optional[str]]], List[str]]:
    """The tensors of the gradients by variable node, and a note on those that cannot be read."""
    found: Dict[str, List[Optional[str]]] = {}
    unread: List[str] = []
    for target in training.optimizer.targets:
        edges = [edge for slices in target.gradients.values() for edge in slices if edge]
        if not all(subject.has(edge) for edge in edges):
            unread.append(target.name)
            continue
        for node, slices in target.gradients.items():
            found[node] = [None if edge is None else of_edge(edge) for edge in slices]
    notes = []
    if unread:
        notes.append(
            f"torch took gradients of its own of {some_of(map(repr, unread))}"
            ": the graph computes them in a function, where TensorFlow does not let one read them"
        )
    return found, notes


def writers(subject: Subject, recipe: Recipe) -> Dict[str, Set[str]]:
    """Every variable that a step writes -> the nodes of the raw graph that do so."""
    return {
        variable: {node.name for node in nodes} & subject.raw.nodes.keys()
        for variable, nodes in recipe.changes.written.items()
    }


def raced(subject: Subject, training: Training, written: Mapping[str, Set[str]]) -> List[str]:
    """The hyperparameters that a step computes from variables that it also writes, in no fixed
    order: BERT's job assigns the global step independently of its optimizer. Hyperparameters whose
    own computation writes a variable are left out."""
    graph = subject.raw
    writing: Set[str] = set().union(*written.values())

    def in_no_order(edge: Edge) -> bool:
        read = subjects.upstream(graph, [edge], controls=False) & written.keys() - {edge[0]}
        writers = [(name, 0) for variable in read for name in written[variable]]
        if not writers or subjects.upstream(graph, [edge]) & writing:
            return False
        return any(edge[0] not in subjects.upstream(graph, [one]) for one in writers)

    edges = {edge for rule in training.optimizer.rules.values() for _, edge in rule.edges}
    return [of_edge(edge) for edge in sorted(filter(subject.has, edges)) if in_no_order(edge)]


def moved(
    subject: Subject,
    written: Mapping[str, Set[str]],
    loss: Edge,
    gradients: Mapping[str, Sequence[Optional[str]]],
    fed: List[str],
) -> List[str]:
    """The variables that computing the loss and the gradients changes."""
    told = [split(tensor) for tensors in gradients.values() for tensor in tensors if tensor]
    needed = subjects.upstream(subject.raw, [loss, *told], fed)
    return sorted(
        variable
        for variable, writers in written.items()
        if variable in subject.raw.nodes and writers & needed
    )
