"""A MetaGraph of an asynchronous or synchronous job becomes one that trains semi-synchronously.

0. Ops that wait for the training read the variables after it (`training.late_reads`).
1. The inputs are found where gradients go into the training ops (`training.gradient_inputs`).
2. Downstream of these, ops that depend on no batch are split off for the chief
   (`training.chief_part`).
3. `semisync.builder` builds its ops around them (`metagraph.build`), as in a job that wraps its
   optimizer: the workers send the gradients, the chief puts the aggregated ones in their place.
4. The MetaGraph is edited (`edit.editor`): new tensors for those inputs, stand-ins for the ops that
   people fetch, the new ops at the end, and the hook's data in a collection (`semisync.restore`).

Variables, slots, hyperparameters and the saver are those that were there.
"""

from graph_rewrite.edit import devices
from graph_rewrite.edit.detach import detach, only_read
from graph_rewrite.edit.editor import Editor, forget_shapes
from graph_rewrite.graph.importable import refuse_deadly
from graph_rewrite.graph.meta_graph import add_to_collection
from graph_rewrite.graph.view import View
from graph_rewrite.metagraph import placement, sentences
from graph_rewrite.metagraph.build import TRAINED, build
from graph_rewrite.metagraph.report import some
from graph_rewrite.metagraph.statistics import divide
from graph_rewrite.training import global_step as steps
from graph_rewrite.training.analysis import TrainingGraph
from graph_rewrite.training.hyperparameters import fix
from graph_rewrite.training.late_reads import read_late
from semisync import arguments, restore
from semisync import options as optimizer_options
from semisync.aggregate import updates as shared
from semisync.common import plain_step
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError


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
    move_statistics=None,
    **options,
):
    """Makes the graph of a training job train semi-synchronously.

    In every worker the script stays as it is but for the hook, `semisync.restore_hook(is_chief)`,
    once the new MetaGraph is imported.

    Args:
        meta_graph_def: of a training job, as one of its workers exported it; not changed.
        batches_per_step, staleness: of `semisync.GlobalBatchOptimizer`.
        train_op: name of the op by which training ends, or a list of several that are to train
            together; needed only where the graph can be trained in several ways.
        keep_devices: True leaves the exporting worker's task on the ops.
        batch_norm: how moving statistics are kept, see `semisync.GlobalBatchOptimizer`.
        policy: of `semisync.GlobalBatchOptimizer`. The ops that train an "async" variable stay:
            each worker's own, run at once with every batch, even one that turns out too stale or
            not finite.
        shared_updates: of `semisync.GlobalBatchOptimizer`.
        ps: how many parameter servers the job has, for a graph without devices: its variables go to
            these in turn, see `graph_rewrite.metagraph.placement`.
        global_step: name of the variable that counts the global steps; needed only if the graph
            does not show it.
        fixed: {name of a placeholder or a constant: number} of hyperparameters that keep this
            value, see `graph_rewrite.training.hyperparameters`.
        move_statistics: whether the chief moves the statistics of a BatchNorm whose updates no
            train op runs, since the job fetches them by name, or froze them. None leaves them as
            they are, with a warning.
        **options: on_stale, on_nonfinite, sparse_mean, paced, in_flight and name of
            `semisync.GlobalBatchOptimizer`.

    Returns:
        The new MetaGraphDef, and a `Report`.

    Raises:
        BadInput: the graph does not train, or not in a way that can be made semi-synchronous.
        UsageError: an option is invalid.

    Examples:
        >>> saver = tf.train.import_meta_graph("model.ckpt-40000.meta")
        >>> meta_graph = tf.train.export_meta_graph()
        >>> new, report = graph_rewrite.semi_synchronize(meta_graph, batches_per_step=2)
        >>> report.stand_ins
        ['Adagrad']
        >>> with open("model.semisync.meta", "wb") as file:
        ...     _ = file.write(new.SerializeToString())
    """
    if restore.COLLECTION in meta_graph_def.collection_def:
        raise BadInput("the MetaGraph is rewritten already: rewrite the one that it was made of")
    if plain_step.COLLECTION in meta_graph_def.collection_def:
        raise BadInput(
            "the MetaGraph is that of a job with GlobalBatchOptimizer, which trains "
            "semi-synchronously already: export the job without it"
        )
    _refuse_hash_tables(meta_graph_def.graph_def)
    refuse_deadly(meta_graph_def.graph_def)
    checked = optimizer_options.checked(
        batches_per_step,
        staleness=staleness,
        batch_norm=batch_norm,
        policy=policy,
        shared_updates=shared_updates,
        **options,
    )
    fixed = fixed or {}
    train_ops = [train_op] if isinstance(train_op, str) else list(train_op or ())
    meta = tf.MetaGraphDef()
    meta.CopyFrom(meta_graph_def)
    # Each step reads the graph as the one before left it: a number that is fixed is a constant to
    # all of them, and updates that the chief takes over are no writes of a batch any more.
    fix(meta, fixed)
    placed = {} if ps is None else placement.place(meta, ps)
    view = View(meta)
    statistics = divide(meta, view, train_ops, checked.batch_norm, move_statistics)
    batch_norms = statistics.aggregated
    shares, replaced = _take_out_updates(meta, view, checked.shared_updates, batch_norms)
    late = read_late(meta)
    unshaped = forget_shapes(meta)
    training = TrainingGraph(
        meta,
        train_ops=train_ops,
        keep_devices=keep_devices,
        mode_of=checked.mode_of,
        global_step=global_step,
        fixed=frozenset(fixed),
    )
    _refuse_idle_rules(checked.mode_of, training)
    with training.graph.as_default():
        built = build(training, batch_norms, shares, checked)
        rewrite = sentences.Rewrite(
            before=meta_graph_def,
            meta=meta,
            training=training,
            step=built.step,
            train_ops=train_ops,
            fixed=fixed,
            placed=placed,
            statistics=statistics,
            shares=shares,
            unshaped=unshaped,
        )
        report = sentences.report_on(rewrite, checked)
        if late:
            sentence = "{} ops behind the training read variables after it: {}"
            report.changes.append(sentence.format(len(late), some(late)))
        _edit(meta, training, built, report)
        _collect(meta, training, built, only_read(meta, replaced))
    return meta, report


def _refuse_idle_rules(mode_of, training):
    """Raises UsageError if a regex of the policy matches no variable that batches change."""
    trained = [each.node.name for each in training.trained + training.asynchronous]
    others = list(training.written_by_batches.values())
    idle = arguments.idle_rules(mode_of, trained + others)
    if idle:
        raise UsageError(
            "the policy's regex {!r} finds no variable that is trained: these are {}".format(
                idle[0], some(trained)
            )
        )


def _take_out_updates(meta, view, rules, batch_norms):
    """The `Shared`s of a MetaGraphDef, and the names of the ops that the chief takes over."""
    replaced = {op for bn in batch_norms for update in bn.updates for op in update.ops}
    shares = shared.find(meta, rules, replaced)
    replaced.update(share.op for share in shares)
    if replaced:
        detach(meta, view.nodes, replaced)
    return shares, replaced


def _edit(meta, training, built, report):
    chief, nodes = training.chief, training.nodes
    editor = Editor(meta, nodes, training.traits, chief)
    # An op that the train op waits for may itself wait for a stand-in: no circle.
    early = nodes.ancestors(chief.moved)
    for name in training.stand_ins + sorted(chief.tensors.difference(training.stand_ins)):
        editor.stand_in(name, built.sent if name in early else TRAINED)
    editor.put(built.put)
    editor.bring(built.brought)
    editor.rewire(chief.edges)
    if built.step.origin == steps.MADE:
        steps.initialise(meta, nodes, built.step.variable.initializer.name)
    report.added = editor.finish(training.graph)
    exporter = training.exporter
    if exporter.job:
        count = devices.drop_task(exporter, meta.graph_def)
        sentence = "{} ops are on {} now, {} before"
        report.changes.append(sentence.format(count, exporter.job, exporter.device))


def _collect(meta, training, built, copies):
    """Adds to the collections the library's entries of the graph's, and the hook's data.

    Args:
        copies: of the plain job's ops, by the ops' names, see `only_read`.
    """
    worker = built.handles.worker
    steps.collect(meta, built.step)
    add_to_collection(meta, tf.GraphKeys.SUMMARIES, built.summaries)
    member = tf.compat.as_bytes(worker.member)
    # They hold this process's name: the hook gives each process that imports them its own.
    constants = [
        node.name
        for node in meta.graph_def.node
        if node.op == "Const" and node.attr["value"].tensor.string_val[:] == [member]
    ]
    notes = training.graph.get_collection(plain_step.COLLECTION)
    notes = [plain_step.with_ops(note, copies) for note in notes]
    add_to_collection(meta, plain_step.COLLECTION, list(map(tf.compat.as_bytes, notes)))
    described = restore.describe(built.handles, constants, training.exporter.job)
    add_to_collection(meta, restore.COLLECTION, [tf.compat.as_bytes(described)])


def _refuse_hash_tables(graph_def):
    """Raises BadInput if TFRA trains a table: its rows are not variables of the graph."""
    for node in graph_def.node:
        if node.op.startswith("TFRA>") and node.op.endswith(("Insert", "Accum")):
            raise BadInput(
                "{} trains a hash table of TFRA, whose rows pass through local variables: put "
                "GlobalBatchOptimizer around DynamicEmbeddingOptimizer in the job's code".format(
                    node.name
                )
            )
