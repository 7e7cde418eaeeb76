"""A GlobalBatchOptimizer that was built elsewhere: its `Handles` from an imported MetaGraph.

Exporting, `describe` makes a JSON string of the handles, for one entry of the collection
COLLECTION: tensors and ops by name, field by field. In every process of the job:

1. tf.train.import_meta_graph brings the graph and the collection.
2. `restore_hook` builds the same handles from the names, for the hook.
3. The names by which the exporting process identified itself become this process's own, before any
   session has seen them: the sender of its messages, and the shared name of its worker state.
4. Ops on a worker without a task get this process's, where the import did not give them one.
"""

import json
import os
import re
import uuid

from semisync.common import json_text
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.common.per_graph import PerGraph
from semisync.handles import Handles
from semisync.worker.hook import GlobalBatchHook
from semisync.worker.operations import STATE, member_name

COLLECTION = "semisync"
# Raise it when a field of `Handles`, or of what it holds, is added, renamed or removed, or is fed
# otherwise.
FORMAT = 8

_ELEMENT = "graph element"  # the key under which a tensor's or op's name is stored

_restored = PerGraph(list)  # of one `Handles`, once it is restored


def describe(handles, identity, worker_job):
    """The JSON string of the `Handles` of a `GlobalBatchOptimizer`.

    Args:
        identity: names of the constants that hold its `WorkerOps.member`.
        worker_job: such as "/job:worker", of the devices whose task each process has to add; "" for
            none.
    """
    return json.dumps(
        {
            "format": FORMAT,
            "handles": _stored(handles),
            "identity": sorted(identity),
            "worker_job": worker_job,
        },
        sort_keys=True,
    )


def _stored(value):
    """A value as JSON holds it: records by field, graph elements by name, variables by their op."""
    if isinstance(value, (tf.Tensor, tf.Operation)):
        return {_ELEMENT: value.name}
    if isinstance(getattr(value, "op", None), tf.Operation):  # a variable of any kind
        return {_ELEMENT: value.op.name}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _stored(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_stored(inner) for inner in value]
    return value


def _value(stored, kind, graph):
    """The reverse of `_stored`; `kind` is a record's type, or anything else."""
    if hasattr(kind, "_fields"):
        types = kind.__annotations__
        return kind(**{name: _value(stored[name], types[name], graph) for name in kind._fields})
    if isinstance(stored, dict):
        if list(stored) == [_ELEMENT]:
            return graph.as_graph_element(stored[_ELEMENT])
        return {key: _value(inner, None, graph) for key, inner in stored.items()}
    if isinstance(stored, list):
        return [_value(inner, None, graph) for inner in stored]
    return stored


def restore_hook(is_chief, patience=120.0, audit=None, worker_device=None):
    """The hook for an imported MetaGraph that `semisync rewrite` has made.

    Call it once the graph is imported and before any session of it is made. `hook.fate` is the
    tensor: the fate of this worker's last batch.

    Args:
        is_chief, patience, audit: see `GlobalBatchOptimizer.make_session_run_hook`.
        worker_device: of this process, such as "/job:worker/task:3". None where the graph was
            imported under tf.device (replica_device_setter or plain), where TF_CONFIG names the
            task, or where the graph has no devices.

    Returns:
        A `GlobalBatchHook`, a tf.train.SessionRunHook.

    Raises:
        UsageError: the default graph was not rewritten, or this process's task is not known.

    Examples:
        In every worker, whose script stays as it is but for the hook:

        >>> _ = tf.train.import_meta_graph("model.semisync.meta")
        >>> hook = semisync.restore_hook(is_chief=True)
        >>> with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        ...     for _ in range(8):
        ...         batch = {"city:0": ["Bern", "Oslo"], "item:0": [7, 8], "clicked:0": [[1], [0]]}
        ...         _ = session.run("Adagrad", batch)
    """
    graph = tf.get_default_graph()
    restored = _restored.of(graph)
    if not restored:
        restored.append(_restore(graph, _description(graph), worker_device))
    return GlobalBatchHook(lambda: restored[0], is_chief, patience, audit)


def _description(graph):
    entries = graph.get_collection(COLLECTION)
    if len(entries) != 1:
        raise UsageError(
            "the default graph has {} entries in the collection {!r} instead of 1: import a "
            "MetaGraph that `semisync rewrite` wrote, once, before restore_hook".format(
                len(entries), COLLECTION
            )
        )
    try:
        description = json_text.loads(tf.compat.as_str(entries[0]))
    except ValueError as error:
        raise UsageError(
            "the collection {!r} is not JSON: import the MetaGraph without import_scope".format(
                COLLECTION
            )
        ) from error
    if description["format"] != FORMAT:
        raise UsageError(
            "the MetaGraph was rewritten in format {} and this semisync reads format {}: rewrite "
            "it again".format(description["format"], FORMAT)
        )
    return description


def _restore(graph, description, worker_device):
    handles = _value(description["handles"], Handles, graph)
    worker = handles.worker
    if description["worker_job"]:
        own = worker_device or _imported_device(worker.ticket.op) or _own_device()
        _add_task(graph, description["worker_job"], own)
    _check_the_queues(handles.chief.mailbox.request.op, handles.global_step)
    member = _identify(graph, worker.state, description["identity"])
    return handles._replace(worker=worker._replace(member=member))


def _identify(graph, state, constants):
    """Gives this process its own name; returns it."""
    identity = uuid.uuid4().hex[:12]
    member = member_name(state.device, identity)
    value = tf.AttrValue(tensor=tf.make_tensor_proto(member, tf.string))
    for name in constants:
        graph.get_operation_by_name(name)._set_attr("value", value)
    state._set_attr("shared_name", tf.AttrValue(s=tf.compat.as_bytes(STATE + identity)))
    return member


def _add_task(graph, job, own):
    """Gives this process's task to the ops that are on a worker without a task.

    Also where the import was under replica_device_setter: it leaves a worker's variables alone.
    """
    if own is None:
        raise UsageError(
            "the ops on {} have no task: import the MetaGraph under tf.device('{}/task:K'), or "
            "pass restore_hook(worker_device='{}/task:K'), K being this process's".format(
                job, job, job
            )
        )
    for op in graph.get_operations():
        if (op.device + "/").startswith(job + "/") and "/task:" not in op.device:
            op._set_device(own + op.device[len(job) :])


def _imported_device(op):
    """The job and task that the import gave to an op that is on a worker, or None."""
    task = re.match(r"/job:\w+(/replica:\d+)?/task:\d+", op.device)
    return task.group(0) if task else None


def _own_device():
    """The device of this process according to TF_CONFIG, or None."""
    task = json_text.loads(os.environ.get("TF_CONFIG", "{}")).get("task")
    return "/job:{type}/task:{index}".format(**task) if task else None


def _check_the_queues(queue, global_step):
    """Raises UsageError if each worker would have its own queues instead of the PS's."""

    def task(op):
        return re.sub("/(device|cpu|gpu):.*", "", op.device, flags=re.IGNORECASE)

    if task(queue) != task(global_step):
        raise UsageError(
            "the queues of the rewritten graph lie on {!r} and its global step on {!r}: rewrite it "
            "with --ps, or a MetaGraph that was exported with its devices".format(
                queue.device, global_step.device
            )
        )
