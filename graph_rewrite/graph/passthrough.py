"""Ops that pass a tensor on, followed upstream to the tensor's source.

A hop is one step upstream that keeps the value, possibly cast, reshaped or chosen by a condition:
the sets of `graph_rewrite.graph.ops` list the steps that a pattern or a search may take.
"""

from graph_rewrite.graph.ops import CALLS, JOIN, MERGE
from semisync.common.tensor_names import split
from semisync.common.walks import reachable


def back(nodes, tensor, hops):
    """The tensors that `tensor` passes on, one hop upstream: none where its op is not in `hops`.

    Args:
        nodes: a `Nodes`.
        tensor: a name.
        hops: op types.
    """
    name, output = split(tensor)
    if name not in nodes or output < 0:  # a control edge carries no value
        return []
    node = nodes[name]
    if tensor in nodes.results:  # the call's functions are opened: an output is one of theirs
        return nodes.results[tensor] if hops >= JOIN else []
    if node.op not in hops or node.op in CALLS or not node.input:
        return []
    # Output 1 of a Merge is the index of the branch, not its value.
    if node.op in MERGE:
        return nodes.inputs(node) if output == 0 else []
    if node.op == "IdentityN":
        return [node.input[output]]
    return [node.input[0]]


def trace(nodes, tensor, hops):
    """`tensor` and every tensor that it may pass on, nearest first, each once."""
    return list(reachable([tensor], lambda one: back(nodes, one, hops)))


def ends(nodes, tensor, hops):
    """The tensors of `trace` from which no hop leads further."""
    return [passed for passed in trace(nodes, tensor, hops) if not back(nodes, passed, hops)]
