"""The exporting worker's task, which must not stay on the ops that other workers import.

A worker exports its ops on a device such as "/job:worker/task:0/device:CPU:0". Without the task,
any worker can use the device: each process adds its own task, by the tf.device under which it
imports the graph or by `semisync.restore_hook`. The parameter servers' devices stay as they are.
"""

import itertools
import re
from typing import NamedTuple

_TASK = re.compile(r"/job:\w+(/replica:\d+)?/task:\d+")


class Exporter(NamedTuple):
    """The worker that exported a graph.

    Attributes:
        device: of the worker, to which new ops go too; "" where there is none.
        job: the part of the device to keep, such as "/job:worker"; "" where the devices stay.
        why: why they stay, or "".
    """

    device: str
    job: str = ""
    why: str = ""


def find_exporter(graph_def, servers, keep=False):
    """The `Exporter` of a GraphDef.

    Args:
        servers: devices of the trained variables, which are parameter servers.
        keep: True leaves the devices alone.
    """
    jobs = {_job(device) for device in servers}
    tasks = map(_TASK.match, {node.device for node in _nodes(graph_def)})
    workers = sorted({task.group(0) for task in tasks if task and _job(task.group(0)) not in jobs})
    if not workers:
        return Exporter("", why="no op is on a worker")
    if len(workers) > 1:
        return Exporter("", why="the ops are on several, {}".format(", ".join(workers)))
    device = workers[0]
    if keep:
        return Exporter(device, why="asked to leave them alone")
    return Exporter(device, job=device[: device.index("/task:")])


def drop_task(exporter, graph_def):
    """Removes the exporter's task from the devices of a GraphDef; returns how many ops had it."""
    moved = [node for node in _nodes(graph_def) if _on(node, exporter.device)]
    for node in moved:
        node.device = exporter.job + node.device[len(exporter.device) :]
    return len(moved)


def _nodes(graph_def):
    functions = [function.node_def for function in graph_def.library.function]
    return itertools.chain(graph_def.node, *functions)


def _on(node, device):
    # With the slash, or task:1 would match task:10.
    return (node.device + "/").startswith(device + "/")


def _job(device):
    job = re.match(r"/job:(\w+)", device)
    return job.group(1) if job else None
