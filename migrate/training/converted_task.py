"""A TensorFlow checkpoint with its graph as a task: the graph's loss, its scores, its optimizer.

The scores are logits: of the tensor that is named, or of the one that the graph's loss is given;
where that is a sigmoid, its input.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Sequence

from graph_rewrite.graph.ops import PASS
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.interface.signatures import input_keys
from migrate.graph.metagraph import Graph
from migrate.model.any_rows.free import free_rows
from migrate.model.features.table_rows import TableRows, table_rows
from migrate.model.inputs import cut_at
from migrate.model.load import read_meta_graph
from migrate.model.named_inputs import Named
from migrate.model.outputs import find_outputs
from migrate.model.training.build import build_training
from migrate.model.training.recipe import read_recipe
from migrate.training.task import Task
from semisync.common.errors import UsageError
from semisync.common.tensor_names import of_edge


class Converted(NamedTuple):
    """A task, with its module's inputs, by name (migrate.runtime.interface.Input).

    Attributes:
        loss, scores: the tensors' names; scores is None if none are wanted.
        tables: by input, those whose rows its values number.
    """

    task: Task
    inputs: Mapping[str, Any]
    loss: str
    scores: Optional[str]
    tables: Mapping[str, Sequence[TableRows]]


def open_converted(
    checkpoint: Checkpoint,
    meta: Optional[str] = None,
    output: Optional[str] = None,
    feeds: Optional[Mapping[str, Any]] = None,
    train_op: Optional[str] = None,
    loss: Optional[str] = None,
    scored: bool = True,
    assets: Sequence[str] = (),
    inputs: Named = None,
) -> Converted:
    """The task of a checkpoint.

    Args:
        checkpoint, meta, feeds, train_op, loss, assets, inputs: as in `migrate.build_training`.
        output: the tensor of the scores; by default the graph's own.
        scored: whether scores are wanted.

    Returns:
        A `Converted`: the `task`, the module's `inputs`, the names of `loss` and `scores`, and the
        `tables` that the inputs' values number.

    Raises:
        BadInput, UsageError: as in `migrate.build_training`.

    Examples:
        >>> from migrate.training import open_converted
        >>> converted = open_converted(migrate.open_checkpoint("model.ckpt-40000"))
        >>> sorted(converted.inputs), converted.scores
        (['city', 'clicked', 'item'], 'logits:0')
    """
    scores = None
    if scored:
        graph = read_meta_graph(checkpoint, meta).graph
        scores = _logits(graph, output)
    training = build_training(
        checkpoint, meta, train_op, loss, feeds, output=scores, assets=assets, inputs=inputs
    )
    module = training.module
    task = Task(module, training.optimizer)
    tables = table_rows(module.tensorflow_nodes.values(), module.tensorflow_features)
    return Converted(task, module.tensorflow_inputs, training.loss, scores, tables)


class FixedRows(NamedTuple):
    """The only number of rows that a graph trains on at a time, and why."""

    size: int
    why: str


def fixed_rows(
    checkpoint: Checkpoint,
    meta: Optional[str] = None,
    train_op: Optional[str] = None,
    loss: Optional[str] = None,
) -> Optional[FixedRows]:
    """How many rows a graph's steps have, if any other number is refused.

    It reads the graph, and nothing else of the checkpoint.

    Args:
        checkpoint, meta, train_op, loss: as in `migrate.build_training`.
    """
    graph = read_meta_graph(checkpoint, meta).graph
    name = None if loss is None else find_outputs(graph, loss)[loss]
    edge = read_recipe(graph, train_op).loss(graph) if name is None else name
    freed = free_rows(cut_at(graph, input_keys(graph)), [edge])
    return FixedRows(freed.size, freed.why) if freed.size is not None and freed.why else None


def _logits(graph: Graph, output: Optional[str]) -> str:
    """The name of the logits; raises UsageError if the scores are none."""
    found = find_outputs(graph, output)
    if len(found) != 1:
        raise UsageError(
            f"{graph.path} has several outputs, {', '.join(found)}; name one with --output"
        )
    (edge,) = found.values()
    edge = graph.beyond(edge, PASS)
    node = graph.nodes[edge[0]]
    if node.op == "Softmax":
        raise UsageError(
            f"{graph.path}: {edge[0]!r} are probabilities of classes; AUC is of one score per row: "
            "name its logits with --output"
        )
    if node.op == "Sigmoid":
        edge = node.inputs[0]
    return of_edge(edge)
