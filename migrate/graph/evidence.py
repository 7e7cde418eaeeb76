"""The evidence in a MetaGraph about its checkpoint: look-ups, partition strategies, optimizers."""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import find_meta_graph
from migrate.graph.lookups import Lookup, Saved, find_lookups, hidden_uses, remade_lookups
from migrate.graph.metagraph import Graph
from migrate.graph.pooling import Use, find_poolings
from migrate.graph.training import Training, find_training


class Evidence(NamedTuple):
    """The evidence found in a MetaGraph.

    Attributes:
        saved: variable nodes by name, with where they are stored.
        training: the optimizers of the variables.
        lookups: by the name in the checkpoint.
        poolings: how their vectors are pooled.
        hidden: variables that functions use, whose look-ups are not seen.
        remade: variables that are not looked up themselves, but as part of another tensor.
    """

    graph: Graph
    saved: Dict[str, Saved]
    training: Training
    lookups: Dict[str, Lookup]
    poolings: Dict[str, List[Use]]
    hidden: List[str]
    remade: List[str]


def find_evidence(
    checkpoint: Checkpoint,
    meta: Optional[str],
    left_out: Callable[[str], bool] = lambda name: False,
) -> Optional[Evidence]:
    """The evidence in the MetaGraph of `checkpoint`; None without a MetaGraph.

    Args:
        meta: its path, if the caller names it.
        left_out: whether the caller leaves a tensor out; it is not a slot then.

    Raises:
        BadInput: it cannot be read or is another model's.
    """
    meta_graph = find_meta_graph(checkpoint, meta)
    if meta_graph is None:
        return None
    graph, saved = meta_graph
    training = find_training(checkpoint, meta_graph, left_out)
    slots = {*training.slot_tensors(), *training.orphans}
    # LazyAdam gathers from its slots, too; that is not a look-up
    variables = {node: where for node, where in saved.items() if where.name not in slots}
    return Evidence(
        graph=graph,
        saved=saved,
        training=training,
        lookups=find_lookups(graph, variables),
        poolings=find_poolings(graph, variables),
        hidden=hidden_uses(graph, saved),
        remade=remade_lookups(graph, variables),
    )
