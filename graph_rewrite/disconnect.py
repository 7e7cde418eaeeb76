"""Taking ops out of a graph: nothing waits for them any more, and nothing takes their values.

What took the value of such an op, the result of an assignment, takes the variable's instead. The
collection UPDATE_OPS loses them. They run only where they are fetched by name.
"""

from graph_rewrite.nodes import CONTROL, split
from semisync.compat import tf


def disconnect(graph, names):
    """Takes ops out of a tf.Graph that is not finalized, before a session runs it.

    Args:
      names: of assign-like ops.
    """
    dead = {graph.get_operation_by_name(name) for name in names}
    for op in graph.get_operations():
        if op not in dead and not dead.isdisjoint(op.control_inputs):
            others = [other for other in op.control_inputs if other not in dead]
            op._remove_all_control_inputs()
            op._add_control_inputs(others)
    for op in dead:
        for output in op.outputs:
            for user in output.consumers():
                if user not in dead:
                    _take_the_variable(user, output, op.inputs[0])
    updates = graph.get_collection_ref(tf.GraphKeys.UPDATE_OPS)
    updates[:] = [update for update in updates if getattr(update, "op", update) not in dead]


def _take_the_variable(user, output, variable):
    for number, tensor in enumerate(user.inputs):
        if tensor is output:
            user._update_input(number, variable)


def detach(meta, names):
    """`disconnect` for a MetaGraphDef."""
    nodes = {node.name: node for node in meta.graph_def.node}
    for node in meta.graph_def.node:
        inputs = [_without(nodes, names, tensor) for tensor in node.input]
        if node.name not in names and inputs != list(node.input):
            del node.input[:]
            node.input.extend(tensor for tensor in inputs if tensor)
    updates = meta.collection_def[tf.GraphKeys.UPDATE_OPS].node_list.value
    updates[:] = [update for update in updates if split(update)[0] not in names]
    if not updates:
        del meta.collection_def[tf.GraphKeys.UPDATE_OPS]


def _without(nodes, names, tensor):
    """What an op takes instead of a tensor; None in the place of a control edge."""
    maker, output = split(tensor)
    if maker not in names:
        return tensor
    return None if output == CONTROL else nodes[maker].input[0]
