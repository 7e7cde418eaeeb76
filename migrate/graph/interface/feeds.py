"""The tensors that can be fed: what brings rows into a graph."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from migrate.graph.attributes import Shape, dtypes, output_dtype, output_shape, shapes
from migrate.graph.interface.examples import Feature, features
from migrate.graph.interface.losses import losses
from migrate.graph.interface.names import Name, delivered_names
from migrate.graph.interface.signatures import Key, input_keys
from migrate.graph.interface.walks import Walks
from migrate.graph.lookups import VARIABLES
from migrate.graph.metagraph import Edge, Graph, Node

_PLACEHOLDERS = {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"}
_ITERATORS = {"IteratorGetNext", "IteratorGetNextSync"}
_SPARSE = ("indices", "values", "shape")
DESERIALIZES = {"DeserializeSparse"}  # the sparse features of iterators


class Feed(NamedTuple):
    """One input.

    name       a tensor, the tf.sparse_placeholder of three, or three with commas
    kind       "placeholder", "default" (a placeholder that need not be fed), "sparse", "iterator",
               "queue" or "serialized"
    edges      the tensors
    into       ops that take it, two at most
    read_by    variables that its values meet first
    labels_of  losses that compare with it
    features   of serialized tf.train.Examples
    feature    what it is called where that is another name: the key of a SavedModel's signature, or
               the feature that an iterator delivers, see `migrate.graph.interface.names`
    guessed    whether `feature` is a guess
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
    """In the order of the graph."""
    labels: Dict[Edge, List[str]] = {}
    for loss in losses(walks):
        if loss.labels is not None:
            labels.setdefault(loss.labels, []).append(loss.name)
    parsed = features(walks)
    fed = [_with_readers(walks, feed, labels, parsed) for feed in _feeds(walks)]
    known = {edge for feed in fed for edge in feed.edges}
    fed += [
        _feed(edge, "serialized", "string", None)._replace(features=described)
        for edge, described in parsed.items()
        if edge not in known
    ]
    keys, names = input_keys(walks.graph), delivered_names(walks.graph)
    return [_called(feed, keys, {**names, **_deserialized(walks.graph, names)}) for feed in fed]


def _deserialized(graph: Graph, names: Dict[Edge, Name]) -> Dict[Edge, Name]:
    """The names of what is deserialized from the tensors of `names`."""
    nodes = [node for node in graph.nodes.values() if node.op in DESERIALIZES]
    return {(node.name, 0): names[node.inputs[0]] for node in nodes if node.inputs[0] in names}


def _called(feed: Feed, keys: Dict[str, Key], names: Dict[Edge, Name]) -> Feed:
    key = keys.get("{}:{}".format(*feed.edges[0]))
    name = names.get(feed.edges[0])
    if key is not None:
        return feed._replace(feature=key.name)
    return feed if name is None else feed._replace(feature=name.name, guessed=name.guessed)


def _feeds(walks: Walks) -> Iterator[Feed]:
    """The feeds, still without what reads them."""
    graph = walks.graph
    for node in walks.nodes.values():
        if node.op in _PLACEHOLDERS:
            base, _, part = node.name.rpartition("/")
            if part in _SPARSE and is_sparse_placeholder(graph, base):
                if part == "values":
                    yield _sparse(graph, base, node)
                continue
            kind = "default" if node.op == "PlaceholderWithDefault" else "placeholder"
            dtype, shape = output_dtype(graph, node), output_shape(graph, node, 0)
            yield _feed((node.name, 0), kind, dtype, shape)
        elif node.op in _ITERATORS or node.op.startswith("QueueDequeue"):
            queue = node.op.startswith("QueueDequeue")
            types = dtypes(graph, node, "component_types" if queue else "output_types")
            told = [] if queue else shapes(graph, node, "output_shapes")
            for output, dtype in enumerate(types):
                shape = told[output] if output < len(told) else output_shape(graph, node, output)
                if dtype != "variant":  # what is serialized is fed behind its op
                    yield _feed((node.name, output), "queue" if queue else "iterator", dtype, shape)
        elif node.op in DESERIALIZES:
            edges = tuple((node.name, output) for output in range(len(_SPARSE)))
            name = ",".join("{}:{}".format(*edge) for edge in edges)
            types = dtypes(graph, node, "dtype")
            yield Feed(name, "sparse", types[0] if types else None, None, edges)


def _feed(edge: Edge, kind: str, dtype: Optional[str], shape: Shape) -> Feed:
    return Feed(f"{edge[0]}:{edge[1]}", kind, dtype, shape, (edge,))


def _sparse(graph: Graph, base: str, values: Node) -> Feed:
    indices = output_shape(graph, graph.nodes[f"{base}/indices"], 0)
    rank = indices[1] if indices is not None and len(indices) == 2 else None
    shape = None if rank is None else (None,) * rank
    edges = tuple((f"{base}/{part}", 0) for part in _SPARSE)
    return Feed(base, "sparse", output_dtype(graph, values), shape, edges)


def _with_readers(
    walks: Walks,
    feed: Feed,
    labels: Dict[Edge, List[str]],
    parsed: Dict[Edge, Tuple[Feature, ...]],
) -> Feed:
    """The feed with what reads it; for a scalar, such as a rate, that would tell nothing."""
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


def is_sparse_placeholder(graph: Graph, base: str) -> bool:
    """Whether tf.sparse_placeholder made indices, values and shape below the name `base`; a shape
    that was given may be a constant or a default."""
    return f"{base}/shape" in graph.nodes and all(
        f"{base}/{part}" in graph.nodes and graph.nodes[f"{base}/{part}"].op in _PLACEHOLDERS
        for part in _SPARSE[:2]
    )
