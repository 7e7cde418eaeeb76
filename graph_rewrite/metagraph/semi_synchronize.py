"""A MetaGraph of an asynchronous or synchronous job becomes one that trains semi-synchronously.

1. The places are found where gradients go into the graph's training ops.
2. Downstream of these, what depends on no batch is split off for the chief (`chief_part`).
3. `semisync.GlobalBatchOptimizer` builds its ops around them (`existing`), as in a job that wraps
   its optimizer: the workers send the gradients, the chief puts the aggregated ones in their place.
   It does so in a tf.Graph that holds no more than it asks for (`excerpt`).
4. The MetaGraph is edited (`editing`): new inputs in those places, stand-ins for what people fetch,
   the new ops at the end, and what the hook has to know in a collection
   (`semisync.worker.restore`).

Variables, slots, hyperparameters and the saver are those that were there.
"""

import glob
import os

from google.protobuf.message import DecodeError

from graph_rewrite.batch_norm.find import of_view
from graph_rewrite.edit import devices
from graph_rewrite.edit import editor as editing
from graph_rewrite.edit.detach import detach
from graph_rewrite.edit.excerpt import wait_for
from graph_rewrite.graph.collector import uncollected
from graph_rewrite.graph.index import split
from graph_rewrite.graph.view import View
from graph_rewrite.metagraph import placement
from graph_rewrite.metagraph.report import report_on
from graph_rewrite.metagraph.wording import some
from graph_rewrite.training import global_step as steps
from graph_rewrite.training.analysis import TrainingGraph
from graph_rewrite.training.existing import ExistingOptimizer, ExistingStep, TrainedVariable
from graph_rewrite.training.hyperparameters import fix
from semisync import arguments
from semisync.aggregate import batch_norm as moving_statistics
from semisync.aggregate import updates as shared
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError
from semisync.worker import restore

TRAINED = "semisync/trained"  # the op that ends a worker's part


def meta_file(path):
    """The file with the MetaGraph that a path names: of a folder that of its newest checkpoint.

    Raises:
      BadInput: it is a checkpoint's prefix, or a folder whose newest checkpoint has none.
    """
    if os.path.isfile(path + ".meta") and not os.path.isfile(path):
        raise BadInput("{} is a checkpoint's prefix: give its graph, {}.meta".format(path, path))
    if not os.path.isdir(path):
        return path
    newest = tf.train.latest_checkpoint(path)  # as its file `checkpoint` says
    if newest and os.path.isfile(newest + ".meta"):
        return newest + ".meta"
    found = sorted(glob.glob(os.path.join(glob.escape(path), "*.meta")))
    raise BadInput(
        "{} is a folder, and no file `checkpoint` in it names a checkpoint with a graph: give a "
        ".meta file{}".format(path, ", one of " + some(found) if found else ", it has none")
    )


def read(path):
    """The MetaGraphDef in a file that Saver or export_meta_graph wrote.

    Raises:
      BadInput: it is something else, or not whole.
    """
    meta = tf.MetaGraphDef()
    with open(path, "rb") as file:
        data = file.read()
    try:
        meta.ParseFromString(data)
    except DecodeError as error:
        raise BadInput(
            "{} is no MetaGraph, or not whole: give the .meta file of a checkpoint".format(path)
        ) from error
    if not meta.graph_def.node:
        raise BadInput("{} holds no graph: give the .meta file of a checkpoint".format(path))
    return meta


@uncollected
def semi_synchronize(
    meta_graph_def,
    batches_per_step,
    staleness=None,
    train_op=None,
    keep_devices=False,
    batch_norm="aggregate",
    policy=None,
    shared_updates=None,
    ps=None,
    global_step=None,
    fixed=None,
    **options,
):
    """Returns a MetaGraphDef that trains semi-synchronously, and a `Report`.

    In every worker, unchanged but for the hook:

        tf.train.import_meta_graph(OUT)
        hooks=[semisync.restore_hook(is_chief)]

    Args:
      meta_graph_def: of a training job, as one of its workers exported it; not changed.
      batches_per_step, staleness: of `semisync.GlobalBatchOptimizer`.
      train_op: name of the op by which training ends, or a list of several that are to train
        together; needed only where the graph can be trained in several ways.
      keep_devices: True leaves the exporting worker's task on the ops.
      batch_norm: what becomes of moving statistics, see `semisync.GlobalBatchOptimizer`.
      policy: of `semisync.GlobalBatchOptimizer`. What trains an "async" variable stays as it is:
        each worker's own, run at once with every batch, also with one that turns out too stale.
      shared_updates: of `semisync.GlobalBatchOptimizer`.
      ps: how many parameter servers the job has, for a graph without devices: its variables go to
        these in turn, see `graph_rewrite.metagraph.placement`.
      global_step: name of the variable that counts the global steps; needed only where the graph
        does not tell.
      fixed: {name of a placeholder or a constant: number} of hyperparameters that get this value
        for good, see `graph_rewrite.training.hyperparameters`.
      options: on_stale, sparse_mean, paced, in_flight and name of `semisync.GlobalBatchOptimizer`.

    Raises:
      BadInput: the graph does not train, or not in a way that can be made semi-synchronous.
      UsageError: an option is not what it should be.
    """
    if restore.COLLECTION in meta_graph_def.collection_def:
        raise BadInput("the MetaGraph is rewritten already: rewrite the one that it was made of")
    meta = tf.MetaGraphDef()
    meta.CopyFrom(meta_graph_def)
    fix(meta, fixed or {})
    placed = {} if ps is None else placement.place(meta, ps)
    batch_norms, shares = _carried(meta, batch_norm, shared_updates)
    mode_of = arguments.variable_policy(policy)
    wanted = [moving_statistics.wanted(batch_norms), shared.wanted(shares)]
    train_ops = [train_op] if isinstance(train_op, str) else list(train_op or ())
    found = TrainingGraph(
        meta, wanted, train_ops, keep_devices, mode_of, global_step, frozenset(fixed or ())
    )
    _refuse_idle_rules(mode_of, found)
    forgotten = editing.forget_shapes(meta)
    options.update(batches_per_step=batches_per_step, staleness=staleness, batch_norm=batch_norm)
    with found.graph.as_default():
        built = _Built(found, batch_norms, shares, options)
        shareable = shared.updates(meta, found.nodes) if found.each_batch else ()
        report = report_on(found, built.optimizer, {op for op, _ in shareable})
        report.places(placed, placement.is_unplaced(meta_graph_def) and not placed)
        report.train_ops(train_ops)
        report.hyperparameters(found, fixed or {})
        report.batch_norms(batch_norms)
        report.shared_updates(shares)
        report.update_ops(found, *map(editing.update_ops, (meta_graph_def, meta)))
        if forgotten:
            sentence = "{} gradients of fused BatchNorms note no shapes: TensorFlows differ on them"
            report.changes.append(sentence.format(forgotten))
        report.global_step(built.step, found.counted_elsewhere, steps.has_saver(meta))
        _edit(meta, found, built, report)
        _collect(meta, found, built)
    return meta, report


def _refuse_idle_rules(mode_of, found):
    """Raises UsageError where a regex of the policy finds no trained variable."""
    trained = [update.variable.name for update in found.updates] + found.at_once
    idle = arguments.idle_rules(mode_of, trained)
    if idle:
        raise UsageError(
            "the policy's regex {!r} finds no variable that is trained: these are {}".format(
                idle[0], some(trained)
            )
        )


def _carried(meta, batch_norm, shared_updates):
    """The `BatchNorm`s and `Shared`s of a MetaGraphDef, whose updates are taken out of it."""
    view = View(meta)
    batch_norms = [] if batch_norm == "async" else of_view(view)
    replaced = {u.op for each in batch_norms if each.shareable for u in each.updates}
    rules = arguments.rules("shared_updates", shared_updates or [], shared.HOW)
    shares = shared.find(meta, rules, replaced)
    replaced.update(each.op for each in shares)
    if replaced:
        detach(meta, view.nodes, replaced)
    return batch_norms, shares


class _Built:
    """The ops of a `GlobalBatchOptimizer` around those of a `TrainingGraph`, in its tf.Graph.

    Attributes:
      optimizer: the `ExistingOptimizer`.
      step: the `GlobalStep`, made where there was none.
      put: {Place: name of the tensor that goes there}.
      brought: {name of an op: name of the tensor that the chief takes instead of its value}.
      sent: the op that ends the optimizer's part of the worker.
      summaries: names of the summaries that were added.
    """

    def __init__(self, found, batch_norms, shares, options):
        graph = found.graph
        variables = [TrainedVariable(graph, update) for update in found.updates]
        self.step = found.global_step
        if self.step.origin == steps.MADE:
            self.step = self.step._replace(variable=steps.make(variables[0].device))
        last = wait_for(graph, found.nodes, found.part.last)
        counts = bool(self.step.counts)
        step = ExistingStep(last, counts, found.hyperparameters, found.unfed)
        self.optimizer = ExistingOptimizer(step, batch_norms, shares, **options)
        with tf.device(found.worker.device):
            pairs = [(variable.gradient(), variable) for variable in variables]
            self.sent = self.optimizer.apply_gradients(pairs, self.step.variable)
            waited_for = wait_for(graph, found.nodes, found.waited_for)
            with tf.control_dependencies([self.sent] + waited_for):
                tf.no_op(name=TRAINED)
        self.put, self.brought = step.put, step.brought
        # An excerpt has those of the library alone.
        self.summaries = [each.name for each in graph.get_collection(tf.GraphKeys.SUMMARIES)]


def _edit(meta, found, built, report):
    """Edits the nodes of a MetaGraphDef."""
    editor = editing.Editor(meta, found.nodes, found.kinds, found.part)
    # What the train op waits for may come after a stand-in itself, which must not wait in turn.
    early = found.nodes.ancestors(found.part.moved)
    for name in found.stand_ins + sorted(found.part.tensors.difference(found.stand_ins)):
        editor.stand_in(name, built.sent.name if name in early else TRAINED)
    editor.put(built.put)
    editor.bring(built.brought)
    editor.rewire(found.part.edges)
    if tf.GraphKeys.LOCAL_INIT_OP in meta.collection_def:
        for name in meta.collection_def[tf.GraphKeys.LOCAL_INIT_OP].node_list.value:
            initializer = built.optimizer.handles.worker.hand.initializer
            found.nodes[split(name)[0]].input.append("^" + initializer.name)
            report.changes.append("{} initialises the worker's ticket, too".format(name))
    if built.step.origin == steps.MADE:
        steps.initialise(meta, found.nodes, built.step.variable.initializer.name)
    report.added = editor.finish(found.graph)
    worker = found.worker
    if worker.job:
        count = devices.drop_task(worker, meta.graph_def)
        sentence = "{} ops are on {} now, {} before"
        report.changes.append(sentence.format(count, worker.job, worker.device))


def _collect(meta, found, built):
    """Adds to the collections what the library added to the graph's, and what the hook needs."""
    worker = built.optimizer.handles.worker
    steps.collect(meta, built.step)
    hand = worker.hand.to_proto().SerializeToString()
    editing.add_to_collection(meta, tf.GraphKeys.LOCAL_VARIABLES, [hand])
    editing.add_to_collection(meta, tf.GraphKeys.SUMMARIES, built.summaries)
    member = tf.compat.as_bytes(worker.member)
    constants = [
        node.name
        for node in meta.graph_def.node
        if node.op == "Const" and node.attr["value"].tensor.string_val[:] == [member]
    ]
    described = restore.describe(built.optimizer.handles, constants, found.worker.job)
    editing.add_to_collection(meta, restore.COLLECTION, [tf.compat.as_bytes(described)])
