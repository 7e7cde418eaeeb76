"""The inputs of a graph as the caller names them: {name: tensor}.

1. The tensor is an input of the graph itself, or any other: TensorFlow can feed every tensor. A
   sparse input is named by its tf.sparse_placeholder, or by its indices, values and dense shape,
   separated by commas.
2. The graph before it is cut off, see `migrate.model.inputs.cut_at`.
3. There are no other inputs. A placeholder that has a default and is not named is its default; any
   other that the outputs still depend on is refused, by name. A flag for training is no input,
   named or not.
"""

from __future__ import annotations

from typing import Dict, Iterable, Mapping, Sequence, Tuple, Union

from graph_rewrite.graph.ops import VARIABLES
from migrate.graph.interface.inputs import DEFAULTED, Inputs
from migrate.graph.metagraph import Graph
from migrate.model.inputs import cut_at, is_training_flag
from migrate.model.outputs import tensor_edge
from semisync.common.errors import UsageError
from semisync.common.tensor_names import in_session, split

Named = Union[Mapping[str, str], Sequence[str], None]  # a sequence: named as their tensors


def begin_at(graph: Graph, named: Named) -> Graph:
    """The lowered graph with these inputs and no others; with its own inputs if none is named.

    Raises:
        UsageError: a tensor is missing from the graph, or named twice.
    """
    if not named:
        return graph
    told = named if isinstance(named, Mapping) else {name: name for name in named}
    own = own_inputs(graph)
    keys = {name: own.get(what) or _tensors(graph, what) for name, what in told.items()}
    tensors = [tensor for several in keys.values() for tensor in several]
    twice = [tensor for tensor in tensors if tensors.count(tensor) > 1]
    if twice or len(keys) < len(named):
        what = twice[0] if twice else next(name for name in named if list(named).count(name) > 1)
        raise UsageError(f"--input names {what!r} twice")
    nodes = dict(graph.nodes)
    for node in graph.nodes.values():
        unnamed = in_session(node.name) not in tensors and not is_training_flag(graph, node)
        # A placeholder with a default that is not named keeps the default, and is no input.
        if node.op in DEFAULTED and unnamed:
            nodes[node.name] = node._replace(op="Identity")
    return cut_at(graph.replace(nodes=nodes, named=keys), tensors)


def as_converted(graph: Graph, inputs: Mapping[str, Sequence[str]]) -> Graph:
    """The lowered graph with the inputs of a model.py, {name: tensors}, besides its own inputs."""
    features = Inputs(graph)
    keys: Dict[str, Tuple[str, ...]] = {}
    for name, taken in inputs.items():
        if all(split(one)[0] in graph.nodes for one in taken):
            # An input that the graph already has, under the same name and tensors, needs no cut.
            found = features.of(split(taken[0]))
            if found is None or (found.name, found.tensors) != (name, tuple(taken)):
                keys[name] = tuple(taken)
    if not keys:
        return graph
    tensors = [tensor for several in keys.values() for tensor in several]
    others = {name: told for name, told in own_inputs(graph).items() if told[0] not in tensors}
    return cut_at(graph.replace(named={**others, **keys}), tensors)


def own_inputs(graph: Graph) -> Dict[str, Tuple[str, ...]]:
    """The tensors of each input of the graph itself, by its name."""
    features = Inputs(graph)
    brought = (one for node in graph.nodes.values() for one in features.brought_by(node))
    return {one.name: one.tensors for one in brought}


def with_computed(graph: Graph, names: Iterable[str]) -> Dict[str, str]:
    """The graph's own inputs and those of `names` that it computes, by name, for `begin_at`; {}
    where it computes none of them.

    Args:
        graph: a lowered one.
    """
    features = Inputs(graph)

    def computes(tensor: str) -> bool:
        edge = split(tensor)
        return edge[0] in graph.nodes and features.of(edge) is None

    computed = [name for name in names if all(map(computes, name.split(",")))]
    own = own_inputs(graph) if computed else {}
    return {name: name for name in [*own, *computed]} if not set(computed) <= set(own) else {}


def _tensors(graph: Graph, what: str) -> Tuple[str, ...]:
    tensors = tuple(map(in_session, what.split(",")))
    if len(tensors) not in (1, 3):
        raise UsageError(
            f"--input takes a tensor or a sparse one's indices, values and shape, not {what!r}"
        )
    for tensor in tensors:
        node = graph.nodes[tensor_edge(graph, tensor)[0]]
        if node.op in VARIABLES:
            raise UsageError(f"{graph.path}: {tensor!r} is a variable, which is not an input")
    return tensors
