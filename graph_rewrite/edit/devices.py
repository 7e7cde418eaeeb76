"""The exporting worker's task, which other workers must not take for their own.

A worker exports its ops on a device such as "/job:worker/task:0/device:CPU:0". Without the task
the device is any worker's: each process adds its own, by the tf.device under which it imports the
graph or by `semisync.restore_hook`. The parameter servers' devices stay as they are.
"""

import collections
import itertools
import re

_TASK = re.compile(r"/job:\w+(/replica:\d+)?/task:\d+")

# `device`: the exporting worker's, of its new ops too; "" where there is none. `job`: what is to be
# left of it, such as "/job:worker"; "" where the devices stay. `why`: why they do.
Worker = collections.namedtuple("Worker", "device job why")


def find_worker(graph_def, servers, keep=False):
    """The `Worker` that exported a GraphDef.

    Args:
      servers: devices of the trained variables; who has one of them is a parameter server.
      keep: True leaves the devices alone.
    """
    jobs = {_job(device) for device in servers}
    places = map(_TASK.match, {node.device for node in _nodes(graph_def)})
    found = sorted({place.group(0) for place in places if place})
    found = [device for device in found if _job(device) not in jobs]
    if not found:
        return Worker("", "", "no op is on a worker")
    if len(found) > 1:
        return Worker("", "", "the ops are on several, {}".format(", ".join(found)))
    device = found[0]
    if keep:
        return Worker(device, "", "asked to leave them alone")
    return Worker(device, device[: device.index("/task:")], "")


def drop_task(worker, graph_def):
    """Takes the worker's task off the devices of a GraphDef, in place; returns of how many ops."""
    moved = [node for node in _nodes(graph_def) if _on(node, worker.device)]
    for node in moved:
        node.device = worker.job + node.device[len(worker.device) :]
    return len(moved)


def _nodes(graph_def):
    functions = [function.node_def for function in graph_def.library.function]
    return itertools.chain(graph_def.node, *functions)


def _on(node, device):
    return (node.device + "/").startswith(device + "/")


def _job(device):
    found = re.match(r"/job:(\w+)", device)
    return found.group(1) if found else None
