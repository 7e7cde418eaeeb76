"""The sentences of a report: what changed, what was left alone and why, and warnings."""

import collections
import re
from typing import Any, Dict, List, NamedTuple, Tuple

from graph_rewrite.graph.meta_graph import update_ops
from graph_rewrite.metagraph import placement
from graph_rewrite.metagraph.at_once import changed_at_once
from graph_rewrite.metagraph.report import Report, Trained, some
from graph_rewrite.training.global_step import COUNTED, MADE, has_saver
from graph_rewrite.training.gradient_inputs import gradients
from semisync.aggregate import updates as shared

_QUOTED = re.compile("'[^']*'")


class Rewrite(NamedTuple):
    """The contents of a report.

    Attributes:
        before: the MetaGraphDef as it was given.
        meta: the one that is rewritten, before its training ops are edited.
        training: the `TrainingGraph`.
        step: the `GlobalStep`, made where there was none.
        train_ops: names of the train ops that were asked for, a list.
        fixed: {name: number} of the hyperparameters that are fixed.
        placed: {server: how many variables and tables it got}, see `placement.place`.
        statistics: the `Statistics` of its BatchNorms.
        shares: list of `shared.Shared`.
        unshaped: how many ops were stripped of their shapes, see `editor.forget_shapes`.
    """

    before: Any
    meta: Any
    training: Any
    step: Any
    train_ops: List[str]
    fixed: Dict[str, float]
    placed: Dict[str, int]
    statistics: Any
    shares: List[shared.Shared]
    unshaped: int


def report_on(rewrite, options):
    """The `Report`, without the entries that the edit of the training ops adds."""
    training, nodes = rewrite.training, rewrite.training.nodes
    trained = [
        Trained(
            variable=variable.node.name,
            kind="dense" if variable.indices is None else "sparse",
            by=[nodes[name].op for name in variable.ops],
            device=variable.node.device,
        )
        for variable in training.trained
    ]
    needs = [nodes[name] for name in training.chief.needs]
    asked, unasked = changed_at_once(rewrite, options)
    return Report(
        nodes=len(nodes),
        settings={
            "batches_per_step": options.batches_per_step,
            "staleness": None if options.staleness is None else str(options.staleness),
            "on_stale": options.on_stale,
            "on_nonfinite": options.on_nonfinite,
            "sparse_mean": options.sparse_mean,
            "paced": options.paced,
            "in_flight": options.in_flight,
        },
        trained=trained,
        chiefs=sorted(node.name for node in needs if training.traits.writes(node)),
        stand_ins=[name for name in training.stand_ins if nodes[name].op != "Const"],
        fed=list(training.hyperparameters),
        moved=training.waited_for,
        at_once=sorted({name for names, _ in unasked for name in names}),
        changes=_changes(rewrite),
        left=_left(rewrite) + [sentence.format(some(names)) for names, sentence in asked],
        warnings=_warnings(rewrite) + [sentence.format(some(names)) for names, sentence in unasked],
    )


def _changes(rewrite):
    sentences = _sync_replicas(rewrite.training.sync) + _placed(rewrite.placed)
    for name, value in sorted(rewrite.fixed.items()):
        sentences.append("{} keeps the value {:g}; feeding it is refused".format(name, value))
    sentences += _shared_batch_norms(rewrite.statistics) + _shared_updates(rewrite.shares)
    sentences += _removed_update_ops(rewrite)
    if rewrite.unshaped:
        sentences.append(
            "{} gradients of fused BatchNorms note no shapes: TensorFlow versions differ on "
            "them".format(rewrite.unshaped)
        )
    return sentences + _global_step(rewrite)


def _left(rewrite):
    training = rewrite.training
    asynchronous = [trained.node.name for trained in training.asynchronous]
    trained = {variable.node.name for variable in training.trained}
    unrelated = [name for name in training.unrelated if name not in trained]
    sentences = ["the devices: " + training.exporter.why] if training.exporter.why else []
    kinds = [
        (
            training.chief.left,
            "ops after the training stay each worker's own: they need a batch, reset what batches "
            "add up, or only read",
        ),
        (asynchronous, "variables are trained at once by each worker, as the policy says"),
        (unrelated, "variables are trained by another train op: asynchronous as before"),
        (training.untrained, "trainable variables have no gradient"),
    ]
    sentences += [
        "{} {} ({})".format(len(names), told, some(names)) for names, told in kinds if names
    ]
    statistics = rewrite.statistics
    for names, sentence in _alike(statistics.left):
        sentences.append("{}: {} ({})".format(_count(names), sentence, some(names)))
    if statistics.unmoved and statistics.move is False:
        sentences.append(
            "the statistics of {}, which no training moves, stay as they are ({})".format(
                *_counted(statistics.unmoved)
            )
        )
    return sentences + _kept_update_ops(rewrite)


def _warnings(rewrite):
    """Sentences on parts that will not train as meant, unless something is done, a list."""
    training, sentences = rewrite.training, []
    if placement.is_unplaced(rewrite.before) and not rewrite.placed:
        sentences.append(placement.UNPLACED)
    sentences += _several_train_ops(rewrite)
    if rewrite.statistics.unmoved and rewrite.statistics.move is None:
        sentences.append(
            "no training moves the statistics of {} ({}): they stay as they are, or every batch "
            "changes them at once where the job fetches their updates by name; --move-statistics "
            "has the chief move them, --no-move-statistics says that all is as meant".format(
                *_counted(rewrite.statistics.unmoved)
            )
        )
    if training.counted_elsewhere:
        sentences.append(
            "{} counts the global step {} too, which the chief counts now: do not fetch it any "
            "more".format(some(training.counted_elsewhere), rewrite.step.variable.op.name)
        )
    return sentences


def _several_train_ops(rewrite):
    trained = [variable.node.name for variable in rewrite.training.trained]
    sentences = []
    if len(rewrite.train_ops) > 1:
        sentences.append(
            "{} train together, each of them all {} variables: fetch them in one run, since every "
            "run is a batch".format(" and ".join(rewrite.train_ops), len(set(trained)))
        )
        twice = [name for name, count in collections.Counter(trained).items() if count > 1]
        if twice:
            sentences.append(
                "several of these ops train {}: every global step applies all of them, also where "
                "the job takes turns".format(some(twice))
            )
    elsewhere = [name for name in rewrite.training.unrelated if name in trained]
    if elsewhere:
        sentences.append(
            "another train op trains {}, too: each worker applies it at once with every batch for "
            "which the job fetches it".format(some(elsewhere))
        )
    return sentences


def _sync_replicas(sync):
    sizes = sorted(sync.replicas_to_aggregate)
    if not sizes:
        return []
    return [
        "SyncReplicasOptimizer of {} gradients a step: its accumulators, tokens and queue runner "
        "are not run any more".format(" or ".join(map(str, sizes)))
    ]


def _placed(placed):
    if not placed:
        return []
    counts = ["{} on {}".format(count, server) for server, count in placed.items()]
    return [
        "variables and tables without a device are on the parameter servers in turn ({}), their "
        "slots beside them; all else without one is on the workers".format(some(counts))
    ]


def _global_step(rewrite):
    step = rewrite.step
    name = step.variable.op.name
    if step.origin == COUNTED:
        return [
            "the global step is {}, since training counts it and no other whole number: name "
            "another with --global-step".format(name)
        ]
    if step.origin == MADE:
        runs = "from 0 in every run, since the saver does not know it"
        told = runs if has_saver(rewrite.meta) else "which no earlier checkpoint has"
        return ["the global step {} is new: the chief counts it, {}".format(name, told)]
    return [] if step.counts else ["the chief counts the global step {}, now".format(name)]


def _removed_update_ops(rewrite):
    before, after = update_ops(rewrite.before), update_ops(rewrite.meta)
    removed = [name for name in before if name not in after]
    if not removed:
        return []
    return [
        "{} of {} ops were taken out of UPDATE_OPS, since the chief does what they did: {}".format(
            len(removed), len(before), some(removed)
        )
    ]


def _kept_update_ops(rewrite):
    training, after = rewrite.training, update_ops(rewrite.meta)
    chiefs = training.chief.needs
    starts = gradients(training.trained) + training.waited_for + training.chief.left
    workers = training.nodes.ancestors(starts)
    kinds = [
        ("each worker still runs with every batch", workers - chiefs),
        ("the chief runs once per global step", chiefs),
        ("run where they are fetched", set(after) - workers - chiefs),
    ]
    kept = [(told, [name for name in after if name in names]) for told, names in kinds]
    sentence = "{} ops of UPDATE_OPS, which {} ({})"
    return [sentence.format(len(names), told, some(names)) for told, names in kept if names]


def _shared_updates(shares):
    if not shares:
        return []
    ops = some(["{} ({})".format(share.op, share.how) for share in shares])
    sentence = "{} updates of variables share the fate of their batch: {}"
    return [sentence.format(len(shares), ops)]


def _shared_batch_norms(statistics):
    aggregated = statistics.aggregated
    if not aggregated:
        return []
    sentence = "the moving statistics of {} share the fate of their batch: {}"
    sentences = [sentence.format(*_counted(aggregated))] + [
        "{}, as exported: {} ({})".format(_count(names), sentence, some(names))
        for names, sentence in _alike(statistics.moved)
    ]
    if statistics.unmoved and statistics.move:
        sentences.append(
            "no training moved the statistics of {} ({}): the chief does now, and to fetch their "
            "updates by name changes nothing".format(*_counted(statistics.unmoved))
        )
    return sentences


def _counted(batch_norms):
    """(the number of BatchNorms, their names), as text."""
    names = [batch_norm.name for batch_norm in batch_norms]
    return _count(names), some(names)


def _count(names):
    """How many BatchNorms these are; several of one name are copies that share their variables."""
    count = len(set(names))
    copies = ", {} copies".format(len(names)) if len(names) > count else ""
    return "{} BatchNorm{}{}".format(count, "s" if count > 1 else "", copies)


def _alike(batch_norms):
    """(names, sentence) for the findings or reasons of some `BatchNorm`s.

    A sentence names tensors relative to the BatchNorm's scope; of sentences that differ in names
    alone the first stands for all.
    """
    told: Dict[str, Tuple[List[str], str]] = collections.OrderedDict()
    for batch_norm in batch_norms:
        for sentence in filter(None, (batch_norm.left_alone, batch_norm.finding)):
            sentence = sentence.replace("'{}/".format(batch_norm.name), "'")
            names, _ = told.setdefault(_QUOTED.sub("", sentence), ([], sentence))
            names.append(batch_norm.name)
    return told.values()
