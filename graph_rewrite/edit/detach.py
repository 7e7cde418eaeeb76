"""Detaching ops from a graph: nothing waits for them any more, and nothing takes their values.

1. An op that took the value of a detached one, the result of an assignment, takes the variable's
   value instead.
2. The detached ops leave the collection UPDATE_OPS, and so do ops that have nothing to do without
   them (`_dead_ops`). They run only where they are fetched by name; in a
   MetaGraphDef they change nothing then, see `only_read`.
3. Where one lies inside a function, named as in `graph_rewrite.graph.functions`, the call runs a
   copy of the function without it.
"""

from typing import Dict, List, Set, Tuple

from graph_rewrite.edit.function_bodies import run_without
from graph_rewrite.graph.functions import home, open_functions
from graph_rewrite.graph.op_traits import OpTraits
from graph_rewrite.graph.ops import (
    ACCUMULATES,
    ADDS_TO_ROWS,
    CARRY,
    MERGE,
    PLACEHOLDERS,
    READ,
    TELLS,
    TRAINING_OP,
)
from semisync.common.compat import tf
from semisync.common.tensor_names import CONTROL, join, split

_PASSES_ON = CARRY | READ | MERGE


def disconnect(graph, names):
    """Detaches ops from a tf.Graph that is not finalized, before any session runs it.

    Args:
        names: of assign-like ops.
    """
    graph_def = graph.as_graph_def()
    nodes = open_functions(graph_def)
    at_the_top = {name for name in names if not home(name)}
    unused = _dead_ops(nodes, OpTraits(nodes, graph_def.library), at_the_top)
    # After the search, which reads the NodeDefs that this changes.
    _run_without(graph, graph_def, [name for name in names if home(name)])
    replaced = set(map(graph.get_operation_by_name, at_the_top))
    dead = replaced.union(map(graph.get_operation_by_name, unused))
    for op in graph.get_operations():
        if op not in replaced and not dead.isdisjoint(op.control_inputs):
            # TensorFlow can remove only all control inputs of an op at once.
            others = [other for other in op.control_inputs if other not in dead]
            op._remove_all_control_inputs()
            op._add_control_inputs(others)
    for op in replaced:
        for output in op.outputs:
            for user in output.consumers():
                if user not in replaced:
                    _take_the_variable(user, output, op.inputs[0])
    updates = graph.get_collection_ref(tf.GraphKeys.UPDATE_OPS)
    # In place, since it is the collection itself; it holds ops, and outputs of ops.
    updates[:] = [update for update in updates if getattr(update, "op", update) not in dead]


def _run_without(graph, graph_def, names):
    if not names:
        return
    functions = graph_def.library.function
    before = len(functions)
    calls = {node.name: node for node in graph_def.node}
    changed = run_without(calls, graph_def.library, names)
    added = tf.GraphDef(versions=graph_def.versions)
    added.library.function.extend(functions[before:])
    with graph.as_default():
        tf.import_graph_def(added, name="")  # without nodes, it only adds the functions
    for call, attributes in changed.items():
        op = graph.get_operation_by_name(call)
        for attribute, functions in attributes.items():
            if op.node_def.attr[attribute].HasField("func"):
                op._set_func_attr(attribute, functions[0])
            else:
                op._set_func_list_attr(attribute, functions)


def _take_the_variable(user, output, variable):
    for number, tensor in enumerate(user.inputs):
        if tensor is output:
            user._update_input(number, variable)


def detach(meta, nodes, names):
    """`disconnect` for a MetaGraphDef.

    An op that comes after the training only through a detached one, such as a group of updates that
    wait for the train op, now waits for the training itself: people fetch it to train.

    Args:
        nodes: its `Nodes`, functions opened, which do not see the change.
    """
    replaced = {name for name in names if not home(name)}
    dead = replaced | _dead_ops(nodes, OpTraits(nodes, meta.graph_def.library), replaced)
    run_without(nodes.by_name, meta.graph_def.library, [name for name in names if home(name)])
    after = _ends_of_training(nodes, dead)
    # A GraphDef may spell output 0 in either way.
    variables = {tensor: nodes[n].input[0] for n in replaced for tensor in (n, n + ":0")}

    def left(controls):
        """(The control edges that remain or replace others, whether any was replaced)."""
        edges = [join(name, CONTROL) for name in controls]
        kept = [edge for name, edge in zip(controls, edges) if name not in dead]
        ends = {end for edge in edges for end in after.get(edge, ())}
        return kept + sorted(ends.difference(kept)), len(kept) < len(edges)

    known: Dict[int, Tuple[List[str], bool]] = {}  # id of control inputs -> those that are left
    for node in meta.graph_def.node:
        controls, data = nodes.control_inputs(node), nodes.inputs(node)
        if id(controls) not in known:
            known[id(controls)] = left(controls)
        edges, fewer = known[id(controls)]
        lost = [tensor for tensor in data if tensor in variables]
        if node.name not in replaced and (lost or fewer):
            ends = {end for tensor in lost for end in after.get(tensor, ())}
            del node.input[:]
            node.input.extend([variables.get(tensor, tensor) for tensor in data])
            node.input.extend(edges + sorted(ends.difference(edges)))
    updates = meta.collection_def[tf.GraphKeys.UPDATE_OPS].node_list.value
    updates[:] = [update for update in updates if split(update)[0] not in dead]
    if not updates:  # an import logs an error for a collection without a kind of values
        del meta.collection_def[tf.GraphKeys.UPDATE_OPS]


def only_read(meta, names):
    """Has ops of a MetaGraphDef read the variable that they wrote, a reference, or do nothing.

    Ops that a job fetches by name, beside the training, would else run twice.

    Args:
        names: of detached ops.

    Returns:
        {name: a copy of the op as it was, which nothing takes or waits for}: what the plain job
        does with one batch.
    """
    copies = {}
    taken = {node.name for node in meta.graph_def.node}
    for node in list(meta.graph_def.node):
        if node.name in names:
            copy = meta.graph_def.node.add()
            copy.CopyFrom(node)
            copy.name += "/of_one_batch"
            while copy.name in taken:
                copy.name += "_"
            copies[node.name] = copy.name
            # A write by reference has the attribute T and an output, one of a resource neither.
            by_reference = "T" in node.attr
            kept = {"T", "_class"} if by_reference else set()
            node.op = "Identity" if by_reference else "NoOp"
            del node.input[1 if by_reference else 0 :]
            for key in [key for key in node.attr if key not in kept]:
                del node.attr[key]
    return copies


def _ends_of_training(nodes, dead):
    """{each tensor and control edge of `dead`: edges from the training ops that it waits for}."""
    ends_at: Dict[str, Set[str]] = {}
    above = nodes.ancestors(dead)
    for node in nodes:  # in the graph's order inputs come first, except in loops
        if node.name not in above:
            continue
        ends: Set[str] = set()
        for tensor in node.input:
            name, output = split(tensor)
            if name in ends_at:
                # Waiting for an op covers the ends above it; data, or a dead op, passes them on.
                ends |= {name} if output == CONTROL and name not in dead else ends_at[name]
        # The first training op is its own end; one behind it has the ends above it.
        if ends or any(kind.match(node.op) for kind in (TRAINING_OP, ADDS_TO_ROWS, ACCUMULATES)):
            ends_at[node.name] = ends or {node.name}
    return {
        edge: {join(end, CONTROL) for end in ends_at[name]}
        for name in dead & ends_at.keys()
        for edge in (name, name + ":0", join(name, CONTROL))
    }


def _dead_ops(nodes, traits, names):
    """The names of the ops that need not be waited for any more, a set.

    The value of an update inside a tf.cond is passed on by the cond's Merge, which UPDATE_OPS names
    and the train op waits for; the value of an assignment to a resource by a read. Without the
    update both read the variable, possibly from a parameter server, and nothing uses it.

    Each only passes on the value of an op of `names`, nothing takes its own value, and apart from
    `names` nothing that has an effect comes before it.

    Args:
        nodes, traits: the graph's `Nodes` and `OpTraits`.
        names: of the ops at the top level that are taken out, a set.
    """

    def takers(node):
        takers = [use.node for use in nodes.uses(node.name)]
        return [taker.name for taker in takers if taker.op in _PASSES_ON and not home(taker.name)]

    after = [
        name
        for controls, waiting in nodes.alike()
        if not names.isdisjoint(controls)
        for name in waiting
        if nodes[name].op in _PASSES_ON and not home(name)
    ]
    dead = nodes.reachable(names.union(after), takers) - names
    # An op behind a side effect must still be waited for.
    above = nodes.ancestors(dead, without=names)
    effects = [name for name in above if _has_effect(traits, nodes[name])]
    dead -= nodes.descendants(effects)
    # An op that anything alive takes stays, and so do its own makers.
    waiting = list(dead)
    while waiting:
        name = waiting.pop()
        if name in dead and any(use.node.name not in dead for use in nodes.uses(name)):
            dead.remove(name)
            waiting += nodes.makers(nodes[name])
    return dead


def _has_effect(traits, node):
    # Taking a batch out of a queue or an iterator is an effect; reading what was fed is none.
    batch = traits.brings_batch(node) and node.op not in PLACEHOLDERS
    return batch or node.op in TELLS or traits.writes(node)
