"""Builds the library's ops around the training ops of a graph, in that graph."""

from typing import Any, Dict, List, NamedTuple

from graph_rewrite.training import global_step as steps
from graph_rewrite.training.existing import ExistingStep, ExistingVariable
from semisync import builder
from semisync.common.compat import tf
from semisync.request import Extras, Request

TRAINED = "semisync/trained"  # the op that ends a worker's part


class Built(NamedTuple):
    """The ops that the library built around those of a `TrainingGraph`, in its tf.Graph.

    Attributes:
        handles: the `Handles`.
        step: the `GlobalStep`, made where there was none.
        put: {GradientInput: name of the tensor that it takes}.
        brought: {name of an op: name of the tensor that the chief takes instead of its value}.
        sent: name of the op that ends the library's part of the worker.
        summaries: names of the summaries that were added.
    """

    handles: Any
    step: Any
    put: Dict[Any, str]
    brought: Dict[str, str]
    sent: str
    summaries: List[str]


def build(training, batch_norms, shares, options):
    """Builds in the graph of a `TrainingGraph`, the default one; returns the `Built`."""
    op = training.graph.get_operation_by_name
    variables = [ExistingVariable(training.graph, trained) for trained in training.trained]
    step = training.global_step
    if step.origin == steps.MADE:
        step = step._replace(variable=steps.make(variables[0].device))
    existing = ExistingStep(
        last=list(map(op, training.chief.last)),
        counts=bool(step.counts),
        per_batch=training.hyperparameters,
        unfed=training.unfed,
        at_once=[op(name) for trained in training.asynchronous for name in trained.ops],
    )

    def add_updates(extras):
        extras.add_batch_norms(batch_norms, options.batch_norm)
        extras.add_updates(shares)

    with tf.device(training.exporter.device):
        built = builder.build(
            Request(
                options=options,
                optimizer=existing,
                pairs=[(variable.gradient(), variable) for variable in variables],
                extras=Extras(),
                add_updates=add_updates,
                global_step=step.variable,
            )
        )
        with tf.control_dependencies([built.train_op, *map(op, training.waited_for)]):
            tf.no_op(name=TRAINED)
    return Built(
        handles=built.handles,
        step=step,
        put=existing.put,
        brought=existing.brought,
        sent=built.train_op.name,
        summaries=[s.name for s in training.graph.get_collection(tf.GraphKeys.SUMMARIES)],
    )
