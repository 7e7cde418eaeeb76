"""Tables by raw ids from the hash tables that TensorFlow's servers kept.

    with migrate.open_checkpoint("model.ckpt-40000") as checkpoint:
        source = migrate.open_hash_tables(checkpoint)["user"]
        fill(tables, "user", source, step=40_000)

1. Every process reads the source, a chunk at a time, and keeps the ids that are its own, in room
   that is made once. Memory: the table's, and a chunk.
2. Slots have an order of their own, and are joined by the ids. An id that a slot lacks begins with
   the optimizer's initial value; a slot's id without a vector is left out. Both are counted.
3. An id that the source has twice is refused. Ids that DeepRec counts but has not admitted are left
   out: they start over.
"""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Optional

import numpy
import torch

from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.hash_tables.table_slots import table_slots
from migrate.id_tables.embeddings import IdEmbeddings
from migrate.id_tables.exchange import Processes
from migrate.id_tables.store import Store
from semisync.common.errors import BadInput, UsageError

CHUNK = 1 << 16  # rows
_STEPS = ("DeepRec",)  # whose versions are global steps; Monolith's are times


class Filled(NamedTuple):
    """The result of filling a table, in all processes together.

    Attributes:
        rows: how many.
        begun: slots that the source lacks, which begin with the optimizer's values.
        without: ids that lack a slot's row, by slot.
        ownerless: rows of a slot whose id has no vector, by slot.

    Examples:
        >>> from migrate.id_tables import IdEmbeddings, IdTable, fill
        >>> tables = IdEmbeddings([IdTable("user", 2, ["user"])])
        >>> fill(tables, "user", migrate.open_hash_tables("users.model")["users.model"])
        Filled(rows=3, begun=[], without={}, ownerless={})
    """

    rows: int
    begun: List[str]
    without: Dict[str, int]
    ownerless: Dict[str, int]


def fill(tables: IdEmbeddings, name: str, source: HashTable, step: Optional[int] = None) -> Filled:
    """Fills an empty table with the rows of a hash table, their slots, counts and last steps.

    Make the optimizer first; without one the table takes vectors alone. Every process calls it.

    Args:
        tables: the module that has the table.
        name: of the table.
        source: from `migrate.open_hash_tables`.
        step: how many steps the source was trained for, from which ages count, and which Adam
            needs; by default the newest version.

    Returns:
        The result of the filling.

    Raises:
        UsageError: rows or slots do not fit.
        BadInput: the source is damaged.

    Examples:
        >>> from migrate.id_tables import IdEmbeddings, IdTable, fill
        >>> from migrate.torchrec.optimizers import Adagrad
        >>> tables = IdEmbeddings([IdTable("user", 2, ["user"])])
        >>> optimizer = tables.optimizer(Adagrad, lr=0.1)
        >>> fill(tables, "user", migrate.open_hash_tables("users.model")["users.model"]).begun
        ['sum']
    """
    processes = tables.processes
    store = tables.store(name)
    tables.agree()
    with processes.together():
        slots = _slots(store, source, step)
        steps = source.kind in _STEPS
        store.make_room(_share(source.stored, processes.ranks))
        for rows in source.chunks(CHUNK):
            _vectors(store, _own(rows, source, processes), steps, step or 0)
    if step is None:
        newest = int(store.versions.max(initial=0))
        step = processes.total([newest], largest=True)[0]
    store.step = step
    without, ownerless = {}, {}
    with processes.together():
        for slot, its in slots.items():
            missed, strange = _slot(store, slot, source.slots[its], processes)
            without[slot], ownerless[slot] = missed, strange
    if store.optimizer is None:
        store.left_out = sorted(source.slots)
    elif slots:
        store.updates = step
    counts = processes.total([store.count, *without.values(), *ownerless.values()])
    begun = sorted(set(store.fills()) - set(slots))
    return Filled(
        counts[0],
        begun,
        dict(zip(without, counts[1:])),
        dict(zip(ownerless, counts[1 + len(without) :])),
    )


def _share(count: int, ranks: int) -> int:
    """A bound, hardly ever exceeded, of the ids that a process gets of `count` dealt by hash."""
    # Six standard deviations above the mean: the variance of a binomial is at most count / ranks.
    return min(count, math.ceil(count / ranks + 6 * math.sqrt(count / ranks)))


def _slots(store: Store, source: HashTable, step: Optional[int]) -> Dict[str, str]:
    """{torch's name of a slot: the source's} to read; raises UsageError if one does not fit."""
    where = f"table {store.name!r}"
    if store.count:
        raise UsageError(f"{where} has {store.count} rows already")
    shape = source.value_shape or (1,)
    if shape != (store.dim,):
        raise UsageError(f"{where} has dim {store.dim}, and {source.name!r} rows of {list(shape)}")
    if source.key_dtype not in ("int64", "int32") or source.dtype not in ("float32", "float16"):
        raise UsageError(
            f"{source.name!r} has {source.key_dtype} ids and {source.dtype} rows; {where} takes "
            "integers and float32 or float16"
        )
    if store.optimizer is None:
        return {}
    names = table_slots(source, fused=False).slots
    if not names:
        return {}
    kind, wanted = type(store.optimizer).__name__, sorted(store.fills())
    if sorted(names) != wanted:
        raise UsageError(
            f"{source.name!r} has the slots {sorted(names)}, and {kind} of {where} has {wanted}"
        )
    if step is None and store.optimizer.record.steps is not None:
        raise UsageError(f"{kind} of {where} needs the number of steps that were taken; give step")
    return names


def _own(rows: Rows, source: HashTable, processes: Processes) -> Rows:
    """The rows of this process, with int64 ids."""
    rows = rows._replace(keys=numpy.ascontiguousarray(rows.keys, numpy.int64))
    if rows.values is None or len(rows.values) != len(rows.keys):
        raise BadInput(f"{source.name!r} has ids without rows")
    return rows.only(processes.own(rows.keys))


def _vectors(store: Store, rows: Rows, steps: bool, step: int) -> None:
    first = store.add(numpy.ascontiguousarray(rows.keys))
    store.weight.data[first:] = _float32(store, rows)
    if rows.freqs is not None:
        store.freqs[first:] = rows.freqs
    store.versions[first:] = rows.versions if steps and rows.versions is not None else step


def _slot(store: Store, slot: str, source: HashTable, processes: Processes) -> List[int]:
    """Fills one slot; returns how many ids it has no row for, and how many of its rows no id."""
    column, filled, strange = store.columns()[slot], numpy.zeros(store.count, bool), 0
    for chunk in source.chunks(CHUNK):
        rows = _own(chunk, source, processes)
        at = store.find(numpy.ascontiguousarray(rows.keys))
        known = at >= 0
        strange += int((~known).sum())
        at = at[known]
        again = filled[at].any() or len(numpy.unique(at)) < len(at)
        if again:
            raise BadInput(f"slot {source.name!r} of table {store.name!r} has an id twice")
        filled[at] = True
        column.index_copy_(0, torch.from_numpy(at), _float32(store, rows.only(known)))
    return [int((~filled).sum()), strange]


def _float32(store: Store, rows: Rows) -> torch.Tensor:
    values = numpy.asarray(rows.values, numpy.float32).reshape(-1, store.dim)
    return torch.from_numpy(numpy.ascontiguousarray(values))
