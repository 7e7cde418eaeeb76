"""A graph cut at its inputs: those of `migrate.graph.interface.inputs`, those of a SavedModel's
signature, and those that the caller names, see `named_inputs`. These may be any tensors of the
graph, such as the output of an op or a constant.

A bool placeholder whose name says that the model trains is not an input: it is `self.training`.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, Set

from graph_rewrite.graph.ops import VARIABLES
from migrate.graph.attributes import dtypes
from migrate.graph.interface.inputs import DEFAULTED, PLACEHOLDERS, brings, input_at
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.ops.types import output_dtype
from semisync.common.tensor_names import split
from semisync.encoding.dtypes import DTYPES
from semisync.encoding.wire import encode_varint

_TRAINING = re.compile(
    r"(^|[/_])(is_?)?(train(ing)?|learning_phase|phase)(_?(flag|mode|phase))?(_\d+)?$"
)
_COMPUTED = "~computed"  # suffix of a node that is fed in part; TensorFlow allows no ~ in names


def is_training_flag(graph: Graph, node: Node) -> bool:
    """Whether a placeholder is the flag for training, judged by its type and its name."""
    if node.op not in PLACEHOLDERS and node.op not in DEFAULTED:
        return False
    is_bool = "bool" in dtypes(graph, node, "dtype")
    return is_bool and _TRAINING.search(node.name.lower()) is not None


def cut_at(graph: Graph, tensors: Iterable[str]) -> Graph:
    """The graph with an input in place of each of `tensors` that it would compute. The op that
    computes one remains only if another of its outputs is read."""
    fed: Dict[str, Set[int]] = {}
    for name, output in map(split, tensors):
        node = graph.nodes.get(name)
        # What is an input already needs no cut; `named_inputs` refuses variables.
        if node is None or node.op in VARIABLES or input_at(graph, (name, output)) is not None:
            continue
        fed.setdefault(name, set()).add(output)

    def source(edge: Edge) -> Edge:
        name, output = edge
        return (name + _COMPUTED, output) if name in fed and output not in fed[name] else edge

    nodes = {
        name: node._replace(inputs=tuple(map(source, node.inputs)))
        for name, node in graph.nodes.items()
    }
    read = {edge for node in graph.nodes.values() for edge in node.inputs}
    for name in {edge[0] for edge in read if source(edge) != edge}:
        nodes[name + _COMPUTED] = nodes[name]._replace(name=name + _COMPUTED)
    nodes.update((name, _fed(graph, graph.nodes[name], max(fed[name]) + 1)) for name in fed)
    return graph.replace(nodes=nodes)


def _fed(graph: Graph, node: Node, count: int) -> Node:
    """The input that replaces `node`, with the node's data types, and its shapes if known."""
    types = [output_dtype(graph, node, output) for output in range(count)]
    codes = {known.name: code for code, known in DTYPES.items()}
    attrs = {key: value for key, value in node.attrs.items() if key == "_output_shapes"}
    if all(dtype in codes for dtype in types):
        listed = b"".join(encode_varint(codes[dtype]) for dtype in types if dtype is not None)
        packed = b"\x32" + encode_varint(len(listed)) + listed  # ListValue.type
        attrs["output_types"] = b"\x0a" + encode_varint(len(packed)) + packed  # AttrValue.list
    return _waiting(node)._replace(op="Fed", attrs=attrs)


def cut_at_inputs(graph: Graph) -> Graph:
    """The graph in which readers, queues and parsers read nothing: their inputs become control
    inputs, so that the nodes before them are not part of the model."""
    nodes = {name: _waiting(node) if brings(node) else node for name, node in graph.nodes.items()}
    return graph.replace(nodes=nodes)


def _waiting(node: Node) -> Node:
    """A node whose inputs have become control inputs."""
    controls = (*(name for name, _ in node.inputs), *node.controls)
    return node._replace(inputs=(), controls=controls)
