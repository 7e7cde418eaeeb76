"""A GlobalBatchOptimizer that was built elsewhere: its tensors by name, from an imported MetaGraph.

Exporting, `describe` makes a JSON string of an optimizer, for one entry of the collection
COLLECTION. In every process of the job:

1. tf.train.import_meta_graph brings the graph and the collection.
2. `restore_hook` finds the tensors again, and gives the hook an object with the attributes that it
   knows of an optimizer.
3. The names by which the exporting process called itself become this process's own, before any
   session has seen them: the sender of its messages, and the shared name of the ticket's variable.
4. Ops on a worker without a task get this process's, where the import did not give them one.
"""

import json
import os
import re
import uuid
import weakref
from types import SimpleNamespace

from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.worker.hook import GlobalBatchHook
from semisync.worker.operations import member_name

COLLECTION = "semisync"
FORMAT = 2

# Every attribute of the `Handles` that the hook, the chief's thread and the settings use.
SETTINGS = (
    "batches_per_step",
    "on_stale",
    "paced",
    "in_flight",
    "hyperparameters",
    "manifest",
    "draws_between_runs",
    "number",
    "unfed",
)
TENSORS = {
    "": ("clear_shelves", "first_clock", "policy_probe", "pings", "fate"),
    "assembly": ("tickets", "ticket", "weight", "share", "weigh", "blank", "fill", "sweep"),
    "board": (
        "claim",
        "new_beats",
        "new_clock",
        "new_epoch",
        "new_fates",
        "new_gauges",
        "new_pace",
        "new_settings",
        "open",
        "post",
        "read_beats",
        "read_epoch",
        "read_settings",
    ),
    "desk": ("issue", "new_tickets", "take", "undrawn", "withdraw"),
    "step": ("op", "clock", "record", "staleness", "weights"),
    "worker": ("empty", "fate", "first_draw", "join", "leave", "objection", "object")
    + ("ticket", "token"),
}

_restored: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()  # graph -> what was restored


def describe(handles, identity, worker_job):
    """The JSON string of the `Handles` of a `GlobalBatchOptimizer`.

    Args:
      identity: names of the constants that hold its `Worker.member`.
      worker_job: such as "/job:worker", of the devices whose task each process has to add; "" for
        none.
    """
    found = {"": handles}
    found.update((part, getattr(handles, part)) for part in TENSORS if part)
    tensors = {
        part: {name: _names(getattr(found[part], name)) for name in names}
        for part, names in TENSORS.items()
    }
    return json.dumps(
        {
            "format": FORMAT,
            "settings": {name: getattr(handles, name) for name in SETTINGS},
            "lasting": handles.step.lasting,
            "tensors": tensors,
            "identity": sorted(identity),
            "hand": handles.worker.hand.op.name,
            "worker_job": worker_job,
            "global_step": handles.global_step.op.name,
        },
        sort_keys=True,
    )


def _names(value):
    """Tensors and ops, in lists and dicts or not, by name."""
    if isinstance(value, dict):
        return {key: _names(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_names(each) for each in value]
    return value.name


def _elements(graph, names):
    """The reverse of `_names`."""
    if isinstance(names, dict):
        return {key: _elements(graph, each) for key, each in names.items()}
    if isinstance(names, list):
        return [_elements(graph, each) for each in names]
    return graph.as_graph_element(names)


def restore_hook(is_chief, patience=120.0, audit=None, worker_device=None):
    """The hook for an imported MetaGraph that `semisync rewrite` has made.

        tf.train.import_meta_graph("model.semisync.meta")
        hook = semisync.restore_hook(is_chief)   # into MonitoredTrainingSession, every worker

    Call it once the graph is imported and before any session of it is made. `hook.fate` is the
    tensor that tells what became of this worker's last batch.

    Args:
      is_chief, patience, audit: see `GlobalBatchOptimizer.make_session_run_hook`.
      worker_device: of this process, such as "/job:worker/task:3". None where the graph was
        imported under tf.device (replica_device_setter or plain), where TF_CONFIG names the task,
        or where the graph has no devices.

    Raises:
      UsageError: the default graph is no rewritten one, or this process's task is not known.
    """
    graph = tf.get_default_graph()
    if graph not in _restored:
        _restored[graph] = _restore(graph, _description(graph), worker_device)
    return GlobalBatchHook(lambda: _restored[graph], is_chief, patience, audit)


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
        found = json.loads(tf.compat.as_str(entries[0]))
    except ValueError as error:
        raise UsageError(
            "the collection {!r} is no JSON: import the MetaGraph without import_scope".format(
                COLLECTION
            )
        ) from error
    if found["format"] != FORMAT:
        raise UsageError(
            "the MetaGraph was rewritten in the format {} and this semisync reads {}: rewrite it "
            "again".format(found["format"], FORMAT)
        )
    return found


def _restore(graph, found, worker_device):
    optimizer = SimpleNamespace(**found["settings"])
    for part, names in found["tensors"].items():
        tensors = {name: _elements(graph, each) for name, each in names.items()}
        if part:
            setattr(optimizer, part, SimpleNamespace(**tensors))
        else:
            optimizer.__dict__.update(tensors)
    optimizer.step.lasting = found["lasting"]
    hand = graph.get_operation_by_name(found["hand"])
    if found["worker_job"]:
        own = worker_device or _imported_device(optimizer.worker.ticket.op) or _own_device()
        _add_task(graph, found["worker_job"], own)
    _check_the_desk(optimizer, graph.get_operation_by_name(found["global_step"]))
    optimizer.worker.member = _call_by_own_name(graph, hand, found["identity"])
    return optimizer


def _call_by_own_name(graph, hand, constants):
    identity = uuid.uuid4().hex[:12]
    member = member_name(hand.device, identity)
    value = tf.AttrValue(tensor=tf.make_tensor_proto(member, tf.string))
    for name in constants:
        graph.get_operation_by_name(name)._set_attr("value", value)
    shared = tf.AttrValue(s=tf.compat.as_bytes("semisync_hand_" + identity))
    hand._set_attr("shared_name", shared)
    return member


def _add_task(graph, job, own):
    """Gives this process's task to the ops that are on a worker, and do not say on which.

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
    found = re.match(r"/job:\w+(/replica:\d+)?/task:\d+", op.device)
    return found.group(0) if found else None


def _own_device():
    """What TF_CONFIG says of this process, or None."""
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task")
    return "/job:{type}/task:{index}".format(**task) if task else None


def _check_the_desk(optimizer, global_step):
    """Raises UsageError where the queues would lie in each worker instead of on the PS."""

    def task(op):
        return re.sub("/(device|cpu|gpu):.*", "", op.device, flags=re.IGNORECASE)

    desk = optimizer.desk.new_tickets.op
    if task(desk) != task(global_step):
        raise UsageError(
            "the queues of the rewritten graph lie on {!r} and its global step on {!r}: rewrite it "
            "with --ps, or a MetaGraph that was exported with its devices".format(
                desk.device, global_step.device
            )
        )
