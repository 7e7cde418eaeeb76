"""The MetaGraph of a checkpoint: where it is, and which of its variables the checkpoint holds.

It is the file that the caller names, else `PREFIX.meta`, else the `saved_model.pb` of the
SavedModel whose variables the checkpoint is; a frozen graph is its own. Nothing else decides it.

Variable nodes are joined to tensors of the checkpoint by the ops of the Saver, in a SavedModel of
TensorFlow 2 those of its function; a variable without such an op by its full name in the
checkpoint's object graph; without one, by its own name.

Does a MetaGraph belong to a checkpoint?

1. A variable that both have must have the same shape and type in both.
2. They must have a variable in common.
3. One of them may have more than the other: a graph for evaluation has no optimizer, and a Saver
   may save only some variables. But if each has a variable that the other lacks, they are two
   models. Scalars, slots and hash tables do not count.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from graph_rewrite.graph.ops import VARIABLES
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.objects import KEY
from migrate.checkpoint.paths import checkpoint_prefix, join, saved_model_file
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.graph.attributes import Shape, dtypes, shapes
from migrate.graph.lookups import Saved, saved_variables
from migrate.graph.lowering import lower
from migrate.graph.lowering.by_id import tables_by_id
from migrate.graph.lowering.by_server import served_nodes
from migrate.graph.metagraph import Graph, read_graph
from migrate.graph.updates import find_updates
from migrate.hash_tables.tensors import stored_tables
from migrate.manifest.naming import ids_of
from migrate.optimizers.slots import slot_of
from semisync.common.errors import BadInput
from semisync.storage.files import size_of
from semisync.storage.remote import is_remote
from semisync.storage.within import reachable

_NAMED = 3  # differences per kind that the message lists
_Type = Tuple[Optional[str], Shape]


class MetaGraph(NamedTuple):
    """A graph, with the place of each of its variable nodes that the checkpoint has."""

    graph: Graph
    saved: Dict[str, Saved]


def meta_path(checkpoint: Checkpoint, meta: Optional[str]) -> Optional[str]:
    """Path of the checkpoint's MetaGraph, which `meta` may name; None if there is none."""
    if meta is not None:
        meta = os.fspath(meta)
        return meta if is_remote(meta) else os.path.abspath(meta)
    return frozen_file(checkpoint) or _beside(checkpoint.prefix)


def frozen_file(checkpoint: Checkpoint) -> Optional[str]:
    """The file, if the checkpoint is a frozen graph, see `migrate.open.open_model`."""
    prefix = checkpoint.prefix
    return prefix if not checkpoint and size_of(prefix) is not None else None


def still_there(meta: Optional[str], *given: str) -> Optional[str]:
    """The path of the MetaGraph that a manifest records; None if the file has moved since, or lies
    on a server that occurs in none of `given`, the paths and URLs from the user."""
    if meta is None or not reachable(meta, *given):
        return None
    return meta if size_of(meta) is not None else None


def graph_file(path: str) -> str:
    """The file with the graph of a checkpoint, a SavedModel or a MetaGraph.

    Raises:
        BadInput: there is none; the checkpoint itself need not exist.
    """
    prefix = checkpoint_prefix(path)
    beside = _beside(prefix)
    if beside is not None:
        return beside
    for file in (join(path, "saved_model.pb"), path):
        if size_of(file) is not None:
            return file
    raise BadInput(f"{path} has no graph: there is no {prefix}.meta; --meta names another")


def find_graph(checkpoint: Checkpoint, meta: Optional[str]) -> Optional[Graph]:
    """The graph at `meta_path`, which may be another model's; raises BadInput if it is damaged."""
    path = meta_path(checkpoint, meta)
    return None if path is None else read_graph(path)


def find_meta_graph(checkpoint: Checkpoint, meta: Optional[str]) -> Optional[MetaGraph]:
    """The checkpoint's MetaGraph, if it has one.

    Raises:
        BadInput: it cannot be read or is another model's.
    """
    graph = find_graph(checkpoint, meta)
    if graph is None:
        return None
    saved = _saved(graph, checkpoint)
    _refuse_foreign(graph, saved, checkpoint)
    held = {node: where for node, where in saved.items() if where.name in checkpoint}
    return MetaGraph(graph, held)


def lowered(found: MetaGraph, assets: Iterable[str] = ()) -> MetaGraph:
    """The graph that a model is written from: without calls, its tables by id as variables.

    Args:
        assets: files that the graph may have though they lie elsewhere.
    """
    saved = dict(found.saved)
    for table in tables_by_id(found.graph):
        saved.update((name, Saved(name, 0)) for name in (table, ids_of(table)))
    saved.update((node, Saved(name, 0)) for node, name in served_nodes(found.graph).items())
    admitted = frozenset(map(os.path.abspath, assets))
    return MetaGraph(lower(found.graph).replace(admitted=admitted), saved)


def _beside(prefix: str) -> Optional[str]:
    meta = prefix + ".meta"
    return meta if size_of(meta) is not None else saved_model_file(prefix)


def _saved(graph: Graph, checkpoint: Checkpoint) -> Dict[str, Saved]:
    """The place of each variable node in the checkpoint, by the names of whole tensors."""
    saved = saved_variables(graph)
    if not saved:
        full_names = checkpoint.objects().full_names
        times = Counter(full_names.values())
        # A full name that several objects have identifies none of them.
        keys = {full: key for key, full in full_names.items() if times[full] == 1}
        variables = [node.name for node in graph.nodes.values() if node.op in VARIABLES]
        saved = {name: Saved(keys.get(name, name), 0) for name in variables}
        # TensorFlow 2 writes a SavedModel's Saver into functions.
        saved.update(saved_variables(lower(graph)))
    parts = checkpoint.parts
    return {
        node: where._replace(name=parts.get(where.name, where.name))
        for node, where in saved.items()
    }


def _refuse_foreign(graph: Graph, saved: Mapping[str, Saved], checkpoint: Checkpoint) -> None:
    """Refuses the graph of another model.

    Args:
        saved: where its variable nodes are stored.

    Raises:
        BadInput: it is one; the message has the first differences.
    """
    known = {where.name for where in saved.values()}
    differences = _different(graph, saved, checkpoint)[:_NAMED]
    slots = (node for update in find_updates(graph) for node in update.slots)
    # Slots in the graph alone, or stored alone, are usual: a graph for evaluation has none.
    state = {saved[node].name for node in slots if node in saved}
    stored = _stored(checkpoint)
    ours = {name for name in stored if checkpoint[name].shape and not _is_slot(name)} - state
    theirs = {
        where.name
        for node, where in saved.items()
        if not _is_slot(where.name) and _type(graph, node)[1] != ()
    } - state
    only_ours, only_theirs = sorted(ours - known), sorted(theirs - set(checkpoint))
    # Variables on one side alone are usual, as with a partial saver; on both they are not.
    strangers = bool(only_ours and only_theirs) or bool(ours and not ours & known)
    if strangers or (stored and not known & stored):
        differences += [f"{name!r} is in the checkpoint alone" for name in only_ours[:_NAMED]]
        differences += [f"{name!r} is in the MetaGraph alone" for name in only_theirs[:_NAMED]]
        differences = differences or [f"none of its {len(known)} variables is in the checkpoint"]
    if differences:
        raise BadInput(
            f"{graph.path} is not the MetaGraph of {checkpoint.prefix}: "
            f"{'; '.join(differences)}; give the .meta that was written with this checkpoint"
        )


def _different(graph: Graph, saved: Mapping[str, Saved], checkpoint: Checkpoint) -> List[str]:
    parts: Dict[str, List[_Type]] = {}
    for node, where in saved.items():
        parts.setdefault(where.name, []).append(_type(graph, node))
    differences = []
    for name, types in sorted(parts.items()):
        info = checkpoint.get(name)
        if info is not None and not all(_fits(said, info) for said in types):
            dtype, shape = types[0]
            said = "of another shape" if shape is None else str(list(shape))
            differences.append(
                f"{name!r} is {info.dtype} {list(info.shape)} in the checkpoint, {dtype} {said} in "
                "the MetaGraph"
            )
    return differences


def _type(graph: Graph, variable: str) -> _Type:
    node = graph.nodes[variable]
    dtype, shape = dtypes(graph, node, "dtype"), shapes(graph, node, "shape")
    return next(iter(dtype), None), next(iter(shape), None)


def _fits(said: _Type, info: TensorInfo) -> bool:
    """Whether a variable, or one slice of it, matches the checkpoint's shape and type."""
    dtype, shape = said
    stored = [info.shape, *(piece.shape for piece in info.slices)]
    alike = shape is None or any(
        len(shape) == len(sizes) and all(a in (None, b) for a, b in zip(shape, sizes))
        for sizes in stored
    )
    return alike and dtype in (None, info.dtype)


def _stored(checkpoint: Checkpoint) -> Set[str]:
    """The names of stored variables: all tensors except hash tables and the object graph."""
    # The keys and values of a table NAME are stored as NAME-keys and NAME-values.
    hashed = tuple(f"{name}-" for name in stored_tables(checkpoint))
    return {name for name in checkpoint if name != KEY and not name.startswith(hashed)}


def _is_slot(name: str) -> bool:
    leaf = name.rpartition("/")[2]
    return "/.OPTIMIZER_SLOT/" in name or slot_of(leaf) is not None
