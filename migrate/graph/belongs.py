"""Does a MetaGraph belong to a checkpoint?

1. A variable that both have must have the same shape and type in both.
2. They must have a variable in common.
3. One of them may have more than the other: a graph for evaluation has no optimizer, and a Saver
   may save only some variables. But if each has a variable that the other lacks, they are two
   models. Scalars, slots and hash tables do not count.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Set, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.objects import KEY
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.graph.attributes import Shape, dtypes, shapes
from migrate.graph.lookups import Saved
from migrate.graph.metagraph import Graph
from migrate.graph.updates import find_updates
from migrate.hash_tables.tensors import stored_tables
from migrate.optimizers.slots import slot_of
from semisync.common.errors import BadInput

_NAMED = 3  # differences per kind that the message lists

Type = Tuple[Optional[str], Shape]


def refuse_foreign(graph: Graph, saved: Mapping[str, Saved], checkpoint: Checkpoint) -> None:
    """Refuses the graph of another model.

    Args:
        saved: where its variable nodes are stored.

    Raises:
        BadInput: it is one; the message has the first differences.
    """
    known = {where.name for where in saved.values()}
    differences = _different(graph, saved, checkpoint)[:_NAMED]
    slots = (node for update in find_updates(graph) for node in update.slots)
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
    parts: Dict[str, List[Type]] = {}
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


def _type(graph: Graph, variable: str) -> Type:
    node = graph.nodes[variable]
    dtype, shape = dtypes(graph, node, "dtype"), shapes(graph, node, "shape")
    return next(iter(dtype), None), next(iter(shape), None)


def _fits(said: Type, info: TensorInfo) -> bool:
    """Whether a variable, or one slice of it, matches the checkpoint's shape and type."""
    dtype, shape = said
    stored = [info.shape, *(piece.shape for piece in info.slices)]
    alike = shape is None or any(
        len(shape) == len(sizes) and all(a in (None, b) for a, b in zip(shape, sizes))
        for sizes in stored
    )
    return alike and dtype in (None, info.dtype)


def _stored(checkpoint: Checkpoint) -> Set[str]:
    """The names of stored variables: all tensors but hash tables and the object graph."""
    hashed = tuple(f"{name}-" for name in stored_tables(checkpoint))
    return {name for name in checkpoint if name != KEY and not name.startswith(hashed)}


def _is_slot(name: str) -> bool:
    leaf = name.rpartition("/")[2]
    return "/.OPTIMIZER_SLOT/" in name or slot_of(leaf) is not None
