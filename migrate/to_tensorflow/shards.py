"""Tables by raw id, from their trained state in torch, dealt to TFRA's shards again.

    X_mht_1of2-keys [n]        the shard's ids, in the order of the rows
    X_mht_1of2-values [n, dim] their rows; the same of each slot

1. An id goes to the shard that TFRA looks for it in: id % shards, or, where TensorFlow was built
   for GPUs, (id & 0x7fffffff) % shards. The graph beside the original says which, or else the ids
   of the original do. If these fit neither rule, the job has a partitioner of its own; if they fit
   both and a new id has another shard by each, none can be inferred: both cases are refused.
2. The rows of a shard are written as they are read, in blocks. Memory: the ids, 16 bytes each.
"""

from __future__ import annotations

from typing import Callable, Dict, Mapping, Optional, Sequence

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import find_graph
from migrate.graph.lowering.by_id import dealing
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.tensors import TensorPart
from migrate.hash_tables.whole_tables import with_tables
from migrate.manifest.naming import ids_of
from migrate.to_tensorflow.held import Held, Side, held_ids
from semisync.common.errors import BadInput

_CHUNK = 1 << 20  # ids of the original that are read at a time

Rule = Callable[[numpy.ndarray, int], numpy.ndarray]
_RULES: Dict[bool, Rule] = {  # by whether the graph has a BitwiseAnd there
    False: lambda ids, shards: ids % shards,
    True: lambda ids, shards: (ids & 0x7FFFFFFF) % shards,
}


def with_shards(side: Side, original: Checkpoint, meta: Optional[str] = None) -> Side:
    """`side` with its tables by raw id replaced by their shards.

    Args:
        meta: the MetaGraph, where it is not beside the original.
    """
    held = dict(side.held)
    tables = [
        made.table
        for name, made in with_tables(original).made.items()
        if made.of == "values" and name in held
    ]
    graph = find_graph(original, meta) if tables else None
    told = {} if graph is None else dealing(graph)
    for table in tables:
        rules = list(_RULES.values())
        if table.name in told:
            rules = [_RULES["BitwiseAnd" in told[table.name]]]
        held.update(_of_table(table, held, original, rules))
    return side._replace(held=held)


def _of_table(
    table: HashTable, held: Dict[str, Held], original: Checkpoint, rules: Sequence[Rule]
) -> Mapping[str, Held]:
    """The shards of a table and its slots, which are taken out of `held`."""
    key = ids_of(table.name)
    if key not in held:
        raise BadInput(f"there are rows of {table.name!r} without their ids")
    ids = numpy.concatenate([numpy.empty(0, numpy.int64), *held.pop(key).blocks()])
    number = _shard_of(ids, table, original, rules)
    found: Dict[str, Held] = {}
    for one in (table, *table.slots.values()):
        whole = held.pop(one.name, None)
        for shard, part in enumerate(one.parts if whole is not None else ()):
            if not isinstance(part, TensorPart):
                raise BadInput(
                    f"{original.prefix}: the rows of {one.name!r} lie in {part.place}, in files "
                    "that are not written back; only tables in the checkpoint itself are"
                )
            assert whole is not None, part
            own = number == shard
            found[part.columns.keys] = held_ids(ids[own])
            assert part.columns.values is not None, part
            found[part.columns.values] = whole.some(own)
    return found


def _shard_of(
    ids: numpy.ndarray, table: HashTable, original: Checkpoint, rules: Sequence[Rule]
) -> numpy.ndarray:
    shards = len(table.parts)
    fit = [rule(ids, shards) for rule in rules if _fits(rule, table)]
    if not fit:
        raise BadInput(
            f"{original.prefix}: the ids of {table.name!r} are dealt to its {shards} shards "
            "otherwise than TFRA does by default; a partitioner of the job's own is not supported"
        )
    if any((other != fit[0]).any() for other in fit[1:]):
        raise BadInput(
            f"{original.prefix}: the ids of {table.name!r} do not tell whether its job takes the "
            f"remainder of an id or of its lower 31 bits, and new ids differ in that; it cannot be "
            "told which shard they belong to"
        )
    return fit[0]


def _fits(rule: Rule, table: HashTable) -> bool:
    shards = len(table.parts)
    return all(
        (rule(rows.keys.astype(numpy.int64), shards) == number).all()
        for number, part in enumerate(table.parts)
        for rows in part.chunks(_CHUNK)
    )
