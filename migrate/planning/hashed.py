"""Which hash tables become tables of the target, and how."""

from __future__ import annotations

from typing import List, Mapping, Optional, Set

from migrate.encoding.dtypes import BY_NAME
from migrate.hash_tables.model import HashTable
from migrate.hash_tables.tensor_part import tensors_of
from migrate.optimizers.states import find_states
from migrate.planning.model import HashedTable, Plan
from migrate.planning.options import Options


def plan_hash_tables(hashed: Mapping[str, HashTable], options: Options, result: Plan) -> Set[str]:
    """Enters the hash tables in `result`; returns the names of their tensors."""
    taken = set()
    for name, table in hashed.items():
        tensors = tensors_of(table)
        taken |= tensors
        reason = _why_not(table)
        if any(map(options.drops, (name, *tensors))):
            reason = options.reason
        if reason is None:
            result.hash_tables.append(_planned(table, options))
            result.notes += _notes(table)
        else:
            result.dropped.update(dict.fromkeys(sorted(tensors) or [name], reason))
    return taken


def _planned(table: HashTable, options: Options) -> HashedTable:
    states = find_states(table)
    return HashedTable(
        name=options.table_name_of(table.name),
        table=table.name,
        kind=table.kind,
        stored=table.stored,
        dim=table.value_shape[0],
        dtype=table.dtype,
        ids=options.ids,
        duplicates=options.duplicates,
        optimizer=states.optimizer,
        slots=states.slots,
        fill=states.fill,
        cast=options.cast_of(table.dtype),
    )


def _notes(table: HashTable) -> List[str]:
    if table.filtered is None:
        return []
    return [
        f"{table.name}: {table.filtered.stored} ids that were counted, but not admitted yet, have "
        "no rows: they are left out"
    ]


def _why_not(table: HashTable) -> Optional[str]:
    """Why a hash table is not converted, or None."""
    if table.key_dtype not in ("int64", "int32"):
        return f"a hash table by {table.key_dtype} keys: TorchRec's ids are integers"
    if table.value_shape == (0,):
        return "an empty hash table, whose files do not tell the size of a row"
    if len(table.value_shape) != 1 or not BY_NAME[table.dtype].is_floating:
        return (
            f"a hash table of {table.dtype} {list(table.value_shape)}: only rows of floats become "
            "an embedding table"
        )
    return None
