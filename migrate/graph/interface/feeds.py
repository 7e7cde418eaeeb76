"""The tensors that can be fed, by which rows enter a graph."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from graph_rewrite.graph.ops import VARIABLES
from migrate.graph.attributes import Shape
from migrate.graph.interface.examples import PARSING, Feature, features
from migrate.graph.interface.inputs import DEFAULTED, PLACEHOLDERS, Input, Inputs
from migrate.graph.interface.losses import losses
from migrate.graph.interface.names import Name
from migrate.graph.interface.walks import Walks
from migrate.graph.metagraph import Edge, Node
from migrate.graph.wrapped import own_scopes
from semisync.common.tensor_names import of_edge, split


class Feed(NamedTuple):
    """One feed: the tensor of a dense input, or the three of a sparse one.

    Attributes:
        name: a tensor, the tf.sparse_placeholder of three, or three with commas.
        kind: "placeholder", "default" (a placeholder that need not be fed), "sparse", "iterator",
            "queue" or "serialized".
        edges: the tensors.
        into: ops that take it, two at most.
        read_by: the first variables that its values are combined with.
        labels_of: losses that take it as labels.
        features: of serialized tf.train.Examples.
        feature: its name where that differs from the tensor's: the key of a SavedModel's signature,
            or the feature that an iterator delivers, see `migrate.graph.interface.names`.
        guessed: whether `feature` is a guess.
    """

    name: str
    kind: str
    dtype: Optional[str]
    shape: Shape
    edges: Tuple[Edge, ...]
    into: Tuple[str, ...] = ()
    read_by: Tuple[str, ...] = ()
    labels_of: Tuple[str, ...] = ()
    features: Tuple[Feature, ...] = ()
    feature: Optional[str] = None
    guessed: bool = False


def feeds(walks: Walks) -> List[Feed]:
    """The feeds, in the order of the graph."""
    labels: Dict[Edge, List[str]] = {}
    for loss in losses(walks):
        if loss.labels is not None:
            labels.setdefault(loss.labels, []).append(loss.name)
    parsed, inputs = features(walks), Inputs(walks.graph)
    fed = [_with_readers(walks, feed, labels, parsed) for feed in _feeds(walks, inputs)]
    known = {edge for feed in fed for edge in feed.edges}
    fed += [
        _feed((edge,), "serialized", "string", None)._replace(features=described)
        for edge, described in parsed.items()
        if edge not in known
    ]
    return [_called(feed, inputs.called(feed.edges[0])) for feed in fed]


def _called(feed: Feed, name: Optional[Name]) -> Feed:
    return feed if name is None else feed._replace(feature=name.name, guessed=name.guessed)


def _feeds(walks: Walks, inputs: Inputs) -> Iterator[Feed]:
    """The feeds, still without their readers; a parser is fed by its serialized input."""
    of_wrapper = own_scopes(walks.nodes)
    for node in walks.nodes.values():
        if node.op in PARSING or node.name.startswith(of_wrapper):
            continue
        for one in inputs.brought_by(node):
            if one.dtype != "variant":  # a serialized tensor is fed behind its op
                edges = tuple(map(split, one.tensors))
                yield _feed(edges, _kind(node, one), one.dtype, one.shape)


def _kind(node: Node, one: Input) -> str:
    if one.part is not None:
        return "sparse"
    if node.op in PLACEHOLDERS | DEFAULTED:
        return "default" if one.optional else "placeholder"
    return "queue" if node.op.startswith("Queue") else "iterator"


def _feed(edges: Tuple[Edge, ...], kind: str, dtype: Optional[str], shape: Shape) -> Feed:
    tensors = [of_edge(edge) for edge in edges]
    scope, slash, part = edges[0][0].rpartition("/")
    name = scope if kind == "sparse" and (slash, part) == ("/", "indices") else ",".join(tensors)
    return Feed(name, kind, dtype, shape, edges)


def _with_readers(
    walks: Walks,
    feed: Feed,
    labels: Dict[Edge, List[str]],
    parsed: Dict[Edge, Tuple[Feature, ...]],
) -> Feed:
    """The feed with its readers; a scalar's, such as a rate's, mean nothing and are left out."""
    of_losses: Dict[str, None] = {}
    variables: Dict[str, None] = {}

    def stop(node: Node, edge: Edge) -> bool:
        if edge in labels:
            return True
        others = [walks.origin(other)[0] for other in node.inputs if other != edge]
        names = [other.name for other in others if other is not None and other.op in VARIABLES]
        variables.update(dict.fromkeys(name.partition("/part_")[0] for name in names))
        return bool(names)

    for edge in feed.edges:
        of_losses.update(dict.fromkeys(labels.get(edge, ())))
    if feed.shape != ():
        reached = walks.downstream(feed.edges, stop)
        ends = (edge for name in reached for edge in walks.outputs(name) if edge in labels)
        of_losses.update((loss, None) for edge in ends for loss in labels[edge])
    described = next((parsed[edge] for edge in feed.edges if edge in parsed), ())
    into = [node.name for edge in feed.edges for node in walks.consumers.get(edge, ())]
    return feed._replace(
        into=tuple(dict.fromkeys(into))[:2],
        read_by=tuple(variables),
        labels_of=tuple(of_losses),
        features=described,
    )
