"""What a MetaGraph says of a checkpoint: look-ups, partition strategies, optimizers."""

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional

from migrate.graph import Graph, read_graph
from migrate.lookups import Lookup, Saved, find_lookups, hidden_uses, saved_variables
from migrate.pooling import Use, find_poolings
from migrate.slots import find_slots, optimizer_names
from migrate.sources.bundle import Checkpoint
from migrate.sources.files import size_of
from migrate.sources.remote import is_remote
from semisync.errors import BadInput


class Evidence(NamedTuple):
    """saved: variable nodes by name, with where they are stored. lookups: by the name in the
    checkpoint; poolings: what becomes of their vectors. hidden: variables that functions use,
    whose look-ups are not seen."""

    graph: Graph
    saved: Dict[str, Saved]
    lookups: Dict[str, Lookup]
    poolings: Dict[str, List[Use]]
    hidden: List[str]


def meta_path(checkpoint: Checkpoint, meta: Optional[str]) -> Optional[str]:
    """`meta`, else `PREFIX.meta` where that exists."""
    if meta is not None:
        meta = os.fspath(meta)
        return meta if is_remote(meta) else os.path.abspath(meta)
    beside = checkpoint.prefix + ".meta"
    return beside if size_of(beside) is not None else None


def find_evidence(checkpoint: Checkpoint, meta: Optional[str]) -> Optional[Evidence]:
    """What the MetaGraph at `meta` says; None without one.

    BadInput where it cannot be read, or has no variable in common with the checkpoint.
    """
    if meta is None:
        return None
    graph = read_graph(meta)
    saved = {
        node: where for node, where in saved_variables(graph).items() if where.name in checkpoint
    }
    if not saved:
        raise BadInput(
            f"{graph.path} saves none of the {len(checkpoint)} tensors of {checkpoint.prefix}; "
            "give the .meta that was written with this checkpoint"
        )
    owners = find_slots(checkpoint, optimizer_names(graph, saved))
    slots = {source for of_one in owners.values() for source in of_one.sources.values()}
    # LazyAdam gathers from its slots too; that is no look-up
    variables = {node: where for node, where in saved.items() if where.name not in slots}
    return Evidence(
        graph,
        saved,
        find_lookups(graph, variables),
        find_poolings(graph, variables),
        hidden_uses(graph, saved),
    )
