"""A tf.Graph of what the library builds on, in place of all that a large MetaGraph holds.

TensorFlow takes a tenth of a millisecond for every op that it imports, and the library asks for few
of them:

1. What is asked for stands in the excerpt under its own name, on its own device. Of most ops no
   more is needed than what they give: a stand-in gives as many tensors, of the same types and of
   the shapes that the export has noted.
2. Taken as they are: ops without inputs, the variables and the ops that read them, what the caller
   says, what gives a reference, and what the export has noted no shapes of. Their inputs are asked
   for in turn, but not what they wait for.
3. The names of all other ops are in use, too: no new op gets one of them.
"""

import collections

from graph_rewrite.graph.index import beside, split
from graph_rewrite.graph.partitions import whole
from semisync.common.compat import VariableDef, tf
from semisync.common.errors import BadInput

SHAPES = "_output_shapes"  # the attribute by which an export notes them

# What an excerpt is to hold, names: `tensors`, or ops whose outputs are asked for; `ops` that are
# taken as they are; `variables`, by their ops, partitioned ones by what their parts share.
Wanted = collections.namedtuple("Wanted", "tensors ops variables")

_ALL, _STEP = tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP

# Where a MetaGraph has no saver, import_meta_graph would build one in the graph.
_NO_SAVER = tf.train.SaverDef(
    filename_tensor_name="none", save_tensor_name="none", restore_op_name="none"
)


def variables(meta, key):
    """{name of its op: VariableDef} of the variables in a collection of a MetaGraphDef."""
    if key not in meta.collection_def:  # asking for it would add it
        return {}
    protos = map(VariableDef.FromString, meta.collection_def[key].bytes_list.value)
    return collections.OrderedDict((split(each.variable_name)[0], each) for each in protos)


def excerpt(meta, nodes, kinds, wanted):
    """A new tf.Graph with what is wanted of a MetaGraphDef, and with its global step.

    Args:
      meta: the MetaGraphDef; not changed.
      nodes, kinds: its `Nodes` and `OpKinds`.
      wanted: list of `Wanted`.

    Raises:
      BadInput: something is missing, or TensorFlow cannot import it.
    """
    part = tf.MetaGraphDef(meta_info_def=meta.meta_info_def, saver_def=_NO_SAVER)
    part.graph_def.versions.CopyFrom(meta.graph_def.versions)
    part.graph_def.library.CopyFrom(meta.graph_def.library)
    collected = {name for each in wanted for name in each.variables}
    tensors, ops = _collect(part, meta, nodes, collected)
    tensors += [name for each in wanted for name in each.tensors]
    ops |= {name for each in wanted for name in each.ops}
    names = ops.union(split(tensor)[0] for tensor in tensors)
    part.graph_def.node.extend(_taken(nodes, kinds, names, ops))
    graph = _imported(part)
    taken = {op.name.lower() for op in graph.get_operations()}  # as TensorFlow tells them apart
    for name in sorted({name.lower() for name in nodes.by_name} - taken):
        graph.unique_name(name)
    return graph


def wait_for(graph, nodes, names):
    """The ops of those names, a list; those that an excerpt does not have become NoOps there.

    For ops that are no more than waited for.
    """
    have = {op.name for op in graph.get_operations()}
    with graph.as_default():
        for name in sorted(set(names) - have):
            with tf.device(_device(nodes, nodes[name])):
                # The slash has TensorFlow take the name as it is, though other ops lie below it.
                tf.no_op(name=name + "/")
    return [graph.get_operation_by_name(name) for name in names]


def _collect(part, meta, nodes, names):
    """Has `part` collect variables, and the global step, as `meta` does.

    Args:
      names: of the variables, a set.

    Returns: the names of the tensors that its collections refer to, a list, and of the ops that are
      taken as they are, a set.
    """
    tensors = []
    if _STEP in meta.collection_def:
        part.collection_def[_STEP].CopyFrom(meta.collection_def[_STEP])
        tensors += part.collection_def[_STEP].node_list.value  # of an old TensorFlow
    known = variables(meta, _ALL)
    found = [each for name, each in known.items() if names & {name, whole(known, name)}]
    for variable in found:
        variable.initializer_name = variable.variable_name  # nothing is initialised here
        variable.initial_value_name = ""
        part.collection_def[_ALL].bytes_list.value.append(variable.SerializeToString())
    found += variables(meta, _STEP).values()
    tensors += [n for v in found for n in (v.initializer_name, v.initial_value_name) if n]
    return tensors, set().union(*[_reading(nodes, variable) for variable in found])


def _reading(nodes, variable):
    """The names of a VariableDef's op and of those by which it is read, a set."""
    name = split(variable.variable_name)[0]
    read = split(variable.snapshot_name)[0] or name + "/Read/ReadVariableOp"
    return {name, read} | nodes.reachable([n for n in (name, read) if n in nodes], nodes.makers)


def _taken(nodes, kinds, names, ops):
    """The NodeDefs that stand for the ops of those names and for what these need, a list.

    Args:
      ops: names of those that are taken as they are, a set.
    """
    found, waiting = {}, sorted(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        node = nodes.get(name)
        if node is None:
            raise BadInput("the graph has no op {!r}, which it refers to".format(name))
        inputs, types = nodes.inputs(node), kinds.output_types(node)
        shapes = node.attr[SHAPES].list.shape if SHAPES in node.attr else []
        told = len(shapes) == len(types) and not kinds.gives_reference(node)
        if told and inputs and name not in ops:
            found[name] = _stand_in(nodes, node, types, shapes)
        else:
            found[name] = _copy(node, inputs, kinds.definition(node))
            waiting += nodes.makers(node) + beside(node)
    return [found[node.name] for node in nodes if node.name in found]


def _stand_in(nodes, node, types, shapes):
    """A NodeDef without inputs that gives tensors of those types and shapes."""
    found = tf.NodeDef(name=node.name, op="NoOp", device=_device(nodes, node))
    if types:
        found.op = "InfeedDequeueTuple"  # never run; it takes nothing, and may give anything
        found.attr["dtypes"].list.type.extend(types)
        found.attr["shapes"].list.shape.extend(shapes)
    return found


def _device(nodes, node):
    """On import an op gets the device of an op that it is beside, if this has one."""
    devices = [nodes[name].device for name in beside(node) if name in nodes] + [node.device]
    return next(filter(None, devices), "")


def _copy(node, inputs, definition):
    """A NodeDef with other inputs, and without what a newer TensorFlow notes of such an op."""
    found = tf.NodeDef()
    found.CopyFrom(node)
    known = {attr.name for attr in definition.attr}
    for name in [name for name in found.attr if name[0] != "_" and name not in known]:
        del found.attr[name]
    del found.input[:]
    found.input.extend(inputs)
    return found


def _imported(meta):
    """A new tf.Graph of a MetaGraphDef."""
    with tf.Graph().as_default() as graph:
        try:
            tf.train.import_meta_graph(meta)
        except (ValueError, KeyError, TypeError, tf.errors.OpError) as error:
            raise BadInput(
                "TensorFlow {} cannot import the MetaGraph: {}".format(
                    tf.__version__, str(error).strip().splitlines()[0]
                )
            ) from error
    return graph
