"""Devices for the ops that have none, as tf.train.replica_device_setter would have given them.

A session of a cluster places ops without a device on its default, /job:ps/task:0: the model, its
input and its gradients. Here, instead:

1. An op that a "_class" colocates with another goes where that one is: slots, initialisers,
   gradients of rows are placed beside their variable.
2. An op that takes a variable or a table by reference, or as a resource, goes where that is, since
   TensorFlow's placer would move it there.
3. Ops that the setter puts on a parameter server go to the next one in turn, in the graph's order.
4. All other ops are the exporting worker's; `graph_rewrite.edit.devices` removes its task.

A device that names no job, such as "/device:GPU:0", stays. Ops inside functions need no device:
they run where their call does.
"""

import collections
import itertools
from typing import Dict

from tensorflow.python.training.device_setter import STANDARD_PS_OPS

from graph_rewrite.graph.index import colocated_with
from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.op_traits import OpTraits
from semisync import arguments
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.common.tensor_names import split

_SERVER, _WORKER = "/job:ps/task:{}", "/job:worker/task:0"
_JOB = "/job:"

UNPLACED = (
    "no op has a device: a cluster would run all of them on /job:ps/task:0, the gradients of every "
    "worker too, and leave the other parameter servers empty; pass --ps N, the number of parameter "
    "servers, to place variables on these in turn and all else on the workers"
)


def is_unplaced(meta):
    """Whether no op of a MetaGraphDef has a device that names a job."""
    return not any(_JOB in node.device for node in meta.graph_def.node)


def place(meta, servers):
    """Gives a device to the ops of a MetaGraphDef that name no job, in place.

    Args:
        servers: how many parameter servers there are.

    Returns:
        {job and task of a server: how many variables and tables it got in turn}.

    Raises:
        UsageError: every op has a device, or `servers` is not a number of servers.
    """
    arguments.count("ps", "the number of parameter servers", servers)
    nodes = Nodes.of(meta)
    traits = OpTraits(nodes, meta.graph_def.library)
    unplaced = [node for node in nodes if _JOB not in node.device]
    if not any(node.op in STANDARD_PS_OPS for node in unplaced):
        raise UsageError("every variable of the graph has a device: leave out --ps")
    resources = set(_resources(nodes, traits))
    turns = itertools.cycle([_SERVER.format(task) for task in range(servers)])
    placed: Dict[str, int] = collections.OrderedDict()
    # Variables first: the ops that initialise one come before it.
    for node in sorted(unplaced, key=lambda node: node.op not in STANDARD_PS_OPS):
        other = next(_neighbours(nodes, traits, resources, node), None)
        if other is not None:
            # An op keeps the kind of device that it names itself, such as "/device:GPU:0".
            job = other.device.partition("/device:")[0]
            node.device = job + node.device if node.device else other.device
        elif node.op in STANDARD_PS_OPS:
            server = next(turns)
            placed[server] = placed.get(server, 0) + 1
            node.device = server + node.device
        else:
            node.device = _WORKER + node.device
    return placed


def _resources(nodes, traits):
    """(op, output) of every tensor that is the handle of a resource."""
    for node in nodes:
        for number, kind in enumerate(traits.output_types(node)):
            if kind == tf.resource.as_datatype_enum:
                yield node.name, number


def _neighbours(nodes, traits, resources, node):
    """The NodeDefs, among those with a device, beside which a node must be placed."""
    names = colocated_with(node)
    if not traits.bodies(node):  # a call hands resources on to ops that have places of their own
        references = [arg.is_ref for arg in traits.definition(node).input_arg]
        taken = list(map(split, nodes.inputs(node)))
        names += [tensor[0] for tensor, is_ref in zip(taken, references) if is_ref]
        names += [tensor[0] for tensor in taken if tensor in resources]
    return (nodes[name] for name in names if name in nodes and _JOB in nodes[name].device)
