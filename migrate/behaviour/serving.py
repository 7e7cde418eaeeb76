"""The serving form of a graph that was built for training, in TensorFlow: BatchNorm by its moving
statistics.

Most jobs have no other graph: an Estimator's model_dir has that of its training, and so has a job
that says `training=True` in Python. In training a BatchNorm uses the batch's statistic, which is
averaged into the moving one; in serving it uses the moving one. So a batch's statistic that the
outputs depend on is replaced by the checkpoint's value of the moving one:

    a tensor, such as a Mean over the batch      is fed that value
    the same, where a cond only chooses later,   is fed that value too, so that nothing moves
    and the move runs with the outputs
    FusedBatchNorm with is_training              becomes the kernel's other mode, with both values

All the rest is computed by TensorFlow's own kernels, from the job's own graph, independently of the
conversion's BatchNorm.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional

from graph_rewrite.graph.ops import FUSED, VARIABLES
from migrate.behaviour import subject as subjects
from migrate.behaviour.setting import Setting
from migrate.behaviour.subject import Subject, upstream
from migrate.behaviour.tables_by_id import zeros_fed
from migrate.graph.attributes import flag
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.control.guards import NOWHERE
from migrate.model.layers.moves import find_moves
from migrate.model.load import Written
from semisync.common.errors import BadInput, UsageError
from semisync.common.tensor_names import join


class Serving(NamedTuple):
    """TensorFlow's inputs in place of a batch's statistics.

    Values are lists of numbers.

    Attributes:
        feeds: {tensor: value}; those of `as_it_serves` are all feeds besides the rows.
        fused: {node: (mean, variance)}, of FusedBatchNorms.
        changes: whether there is any statistic of a batch.
    """

    feeds: Dict[str, Any]
    fused: Dict[str, List[Any]]
    changes: bool


def as_it_serves(
    subject: Subject,
    written: Written,
    setting: Setting,
    taken: Mapping[str, Any],
    outputs: Iterable[Edge],
) -> Serving:
    """The serving form of `outputs`, with all feeds besides the rows: the caller's constants, the
    flags for training, set to False, and the rates at which dropouts drop nothing.

    Args:
        taken: the inputs of the module.

    Raises:
        UsageError: a constant says that the model trains.
        BadInput: as `serving_form`.
    """
    emitter = written.emitter
    told = subjects.training_feeds(emitter, setting, training=False)
    for switch in filter(told.get, told):
        raise UsageError(
            f"what is compared is how both sides score, and --feed {switch} says that the model "
            "trains; feed False"
        )
    serving = serving_form(subject, written, outputs)
    feeds = {
        **subjects.session_feeds(setting, taken, subjects.told_feeds(setting, taken)),
        **subjects.no_dropout(subject, emitter),
        **told,
        **serving.feeds,
        **zeros_fed(subject),
    }
    return serving._replace(feeds=feeds)


def serving_form(subject: Subject, written: Written, outputs: Iterable[Edge]) -> Serving:
    """The replacements that make a training graph serve `outputs`; none if it serves already.

    Raises:
        BadInput: the graph of a SavedModel, or a BatchNorm in a function.
    """
    graph, seen = subject.found.graph, written.emitter.subject
    # All nodes that the outputs depend on; without a cond's choice; and all that run with the
    # outputs.
    needed = upstream(_of_batches(graph), outputs, controls=False)
    direct = upstream(_without_merges(graph), outputs, controls=False)
    running = upstream(graph, outputs)
    always = {name for name, region in written.emitter.regions.of.items() if region == NOWHERE}
    feeds: Dict[str, Any] = {}
    fused: Dict[str, List[Any]] = {}
    for variable, moves in find_moves(seen).items():
        # If a cond chooses only afterwards, the statistics move in any case: feed them too.
        held = variable in needed
        moved = {seen.viewed(move.value) for move in moves if move.node in running}
        for edge in {seen.viewed(move.value) for move in moves}:
            node = graph.nodes[edge[0]]
            if node.name not in needed or node.op in VARIABLES:
                continue
            chosen = edge in moved and node.name in always and node.name not in direct
            # The outputs read the moving statistic itself: the graph serves already.
            if held and not (chosen and subject.has(edge)):
                continue
            _check(subject, edge)
            value = subject.checkpoint.read(subject.found.saved[variable].name).tolist()
            if held or node.op not in FUSED:
                feeds[join(*edge)] = value
            elif flag(graph, node, "is_training") and edge[1] in (1, 2):
                fused.setdefault(node.name, [None, None])[edge[1] - 1] = value
    # Mean and variance are replaced together or not at all.
    fused = {name: both for name, both in fused.items() if None not in both}
    return Serving(feeds, fused, bool(feeds or fused))


def _without_merges(graph: Graph) -> Graph:
    """The graph without the inputs from which a cond chooses."""
    nodes = {
        name: node._replace(inputs=()) if node.op == "Merge" else node
        for name, node in graph.nodes.items()
    }
    return graph.replace(nodes=nodes)


def _of_batches(graph: Graph) -> Graph:
    """The graph without the moving statistics as inputs of FusedBatchNorms that take the batch's:
    some versions of TensorFlow pass them, though they are not used."""

    def without(node: Node) -> Node:
        training = node.op in FUSED and flag(graph, node, "is_training")
        return node._replace(inputs=node.inputs[:3]) if training else node

    return graph.replace(nodes={name: without(node) for name, node in graph.nodes.items()})


def _check(subject: Subject, edge: Edge) -> None:
    path = subject.raw.path
    reason: Optional[str] = None
    if os.path.basename(path) == "saved_model.pb":
        reason = "which serves so, and not as the converted model does; export it for serving"
    elif not subject.has(edge):
        reason = "in a function, where they cannot be replaced; give the graph of the evaluation"
    if reason is not None:
        raise BadInput(
            f"{path}: BatchNorm takes the statistics of each batch, {edge[0]!r}, {reason}"
        )
