"""Ops that pass a tensor on, followed upstream to the tensor's source.

A hop is one step upstream that keeps the value, possibly cast, reshaped or chosen by a condition.
The sets below list the steps that a pattern or a search may take; `|` joins them.
"""

from graph_rewrite.graph.functions import ARGUMENT, CALLS
from semisync.common.tensor_names import split

# Ops by which a value enters and leaves a loop, and enters a branch.
ENTER, EXIT = frozenset(["Enter", "RefEnter"]), frozenset(["Exit", "RefExit"])
SWITCH = frozenset(["Switch", "RefSwitch"])
# The very same value.
CARRY = (ENTER | EXIT | SWITCH).union(
    ["Identity", "RefIdentity", "IdentityN", "Snapshot", "StopGradient", "PreventGradient"],
    ["EnsureShape", "CheckNumerics", "Print", ARGUMENT],
)
# The value of a variable.
READ = frozenset(["ReadVariableOp"])
# The same numbers in another type, or another shape.
CAST = frozenset(["Cast"])
SHAPE = frozenset(["Squeeze", "ExpandDims", "Reshape"])
# One of several values, by a condition.
MERGE = frozenset(["Merge", "RefMerge"])
JOIN = MERGE | frozenset(CALLS)

VARIABLES = frozenset(["Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable"])


def back(nodes, tensor, hops):
    """The tensors that `tensor` passes on, one hop upstream: none where its op is not in `hops`.

    Args:
        nodes: a `Nodes`.
        tensor: a name.
        hops: op types.
    """
    name, output = split(tensor)
    if name not in nodes or output < 0:
        return []
    node = nodes[name]
    if tensor in nodes.results:
        return nodes.results[tensor] if hops >= JOIN else []
    if node.op not in hops or node.op in CALLS or not node.input:
        return []
    if node.op in MERGE:
        return nodes.inputs(node) if output == 0 else []
    if node.op == "IdentityN":
        return [node.input[output]]
    return [node.input[0]]


def trace(nodes, tensor, hops):
    """`tensor` and every tensor that it may pass on, nearest first, each once."""
    seen, order = {tensor}, [tensor]
    for passed in order:  # grows meanwhile
        for behind in back(nodes, passed, hops):
            if behind not in seen:
                seen.add(behind)
                order.append(behind)
    return order


def ends(nodes, tensor, hops):
    """The tensors of `trace` from which no hop leads further."""
    return [passed for passed in trace(nodes, tensor, hops) if not back(nodes, passed, hops)]
