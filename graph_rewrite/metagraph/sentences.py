"""The sentences of a report: changes, parts left alone and why, warnings."""

import collections
import re
from typing import Any, Dict, List, NamedTuple, Set, Tuple

from graph_rewrite.graph.meta_graph import update_ops
from graph_rewrite.metagraph import placement
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
        batch_norms: list of `BatchNorm`.
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
    batch_norms: List[Any]
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
        changes=_changes(rewrite),
        left=_left(rewrite),
        warnings=_warnings(rewrite),
    )


def _changes(rewrite):
    sentences = _sync_replicas(rewrite.training.sync) + _placed(rewrite.placed)
    for name, value in sorted(rewrite.fixed.items()):
        sentences.append("{} keeps the value {:g}; feeding it is refused".format(name, value))
    sentences += _shared_batch_norms(rewrite.batch_norms) + _shared_updates(rewrite.shares)
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
    sentences = ["the devices: " + training.exporter.why] if training.exporter.why else []
    kinds = [
        (
            training.chief.left,
            "ops after the training stay each worker's own: they need a batch, reset what batches "
            "add up, or only read",
        ),
        *_changed_by_batches(rewrite),
        (asynchronous, "variables are trained at once by each worker, as the policy says"),
        (training.unrelated, "variables are trained by another train op: asynchronous as before"),
        (training.untrained, "trainable variables have no gradient"),
    ]
    sentences += [
        "{} {} ({})".format(len(names), told, some(names)) for names, told in kinds if names
    ]
    unshared = [batch_norm for batch_norm in rewrite.batch_norms if not batch_norm.shareable]
    for names, sentence in _alike(unshared):
        sentences.append("{}: {} ({})".format(_count(names), sentence, some(names)))
    return sentences + _kept_update_ops(rewrite)


def _warnings(rewrite):
    """Sentences on what will not train as meant, unless something is done, a list."""
    training, sentences = rewrite.training, []
    if placement.is_unplaced(rewrite.before) and not rewrite.placed:
        sentences.append(placement.UNPLACED)
    if len(rewrite.train_ops) > 1:
        sentences.append(
            "{} train together, each of them all {} variables: fetch them in one run, since every "
            "run is a batch".format(" and ".join(rewrite.train_ops), len(training.trained))
        )
    if training.counted_elsewhere:
        sentences.append(
            "{} counts the global step {} too, which the chief counts now: do not fetch it any "
            "more".format(some(training.counted_elsewhere), rewrite.step.variable.op.name)
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


def _changed_by_batches(rewrite):
    """(names of variables, sentence) for those that every batch changes at once."""
    training = rewrite.training
    written: Dict[bool, Set[str]] = {True: set(), False: set()}
    known = shared.updates(rewrite.meta, training.nodes) if training.written_by_batches else ()
    shareable = {op for op, _ in known}
    for op, variable in training.written_by_batches.items():
        if variable not in training.summed:
            written[op in shareable].add(variable)
    at_once = (
        "other variables are changed by every batch at once, also by one that turns out too stale"
    )
    return [
        (sorted(written[True]), at_once + ", unless --share names them"),
        (sorted(written[False]), at_once + ", in a way that --share does not know"),
        (sorted(training.summed), at_once + ", and its gradients are made of them"),
    ]


def _shared_updates(shares):
    if not shares:
        return []
    ops = some(["{} ({})".format(share.op, share.how) for share in shares])
    sentence = "{} updates of variables share the fate of their batch: {}"
    return [sentence.format(len(shares), ops)]


def _shared_batch_norms(batch_norms):
    shareable = [batch_norm for batch_norm in batch_norms if batch_norm.shareable]
    if not shareable:
        return []
    names = [batch_norm.name for batch_norm in shareable]
    sentence = "the moving statistics of {} share the fate of their batch: {}"
    return [sentence.format(_count(names), some(names))] + [
        "{}, as exported: {}; the chief makes the updates now: do not fetch them by name any more "
        "({})".format(_count(names), sentence, some(names))
        for names, sentence in _alike(shareable)
    ]


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
