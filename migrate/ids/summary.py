"""What is said of hash tables: in the manifest, and of their sources."""

from __future__ import annotations

import dataclasses
from typing import Dict, List, Optional

from migrate.hash_tables.model import HashTable
from migrate.hash_tables.tensor_part import tensors_of
from migrate.ids.staging import StagedTable
from migrate.manifest.model import Ids, TableSummary
from migrate.planning.model import HashedTable, Plan
from migrate.planning.static import trained_bytes_of_ids, why_untrained
from migrate.stream.items import Item


def summaries(
    plan: Plan, sources: Dict[str, HashTable], staged: List[StagedTable], items: List[Item]
) -> List[TableSummary]:
    """The manifest's words on each hash table of the plan."""
    return [
        TableSummary(
            table.name,
            plan.fqn(table),
            one.merged.rows,
            table.dim,
            table.target_dtype,
            None if table.static else table.optimizer,
            {} if table.static else table.hyperparameters,
            False,
            table.features or [table.name],
            table.pooling,
            table.weighted,
            table.static,
            table.placement,
            _trained_bytes(table, sources[table.table], one.merged.rows),
            ids=Ids(
                table.ids,
                table.table,
                table.kind,
                one.merged.ids,
                table.written_slots,
                table.fill,
                one.merged.duplicates,
                table.buckets if table.ids == "mpzch" else 0,
                one.merged.max_probe if table.ids == "mpzch" else 0,
                one.merged.without,
                _columns(one, items),
                sorted(tensors_of(_written(table, sources[table.table]))),
            ),
        )
        for table, one in zip(plan.hash_tables, staged)
    ]


def _trained_bytes(table: HashedTable, source: HashTable, rows: int) -> Optional[int]:
    """Of a static table, what its rows take where it is trained; else None."""
    return trained_bytes_of_ids(source, table.slots.values(), rows) if table.static else None


def _written(table: HashedTable, source: HashTable) -> HashTable:
    """`source` without the slots that are not written as the table is static."""
    return dataclasses.replace(source, slots={}) if table.static else source


def unwritten_slots(plan: Plan, sources: Dict[str, HashTable]) -> Dict[str, str]:
    """Names of the checkpoint's tensors that static tables leave out, and why."""
    found = {}
    for table in plan.hash_tables:
        source = sources[table.table]
        left = tensors_of(source) - tensors_of(_written(table, source))
        found.update(dict.fromkeys(sorted(left), why_untrained(table)))
    return found


def _columns(staged: StagedTable, items: List[Item]) -> Dict[str, List[str]]:
    """What of the table stands in which item."""
    names = {staged.stem: "", f"{staged.stem}-map": ""}
    names.update({stem: f"slot {name}" for name, stem in staged.slots.items()})
    found: Dict[str, List[str]] = {}
    for item in items:
        for origin in item.origins:
            stem, _, column = origin.column.rpartition(".")
            if stem in names:
                found.setdefault(item.fqn, []).append(names[stem] or column)
    return found


def ids_notes(plan: Plan, staged: List[StagedTable]) -> List[str]:
    """What the user must know of the hash tables."""
    found = []
    for table, one in zip(plan.hash_tables, staged):
        merged = one.merged
        if table.ids == "mpzch":
            found.append(
                f"{table.name}: migrate.torchrec.build makes its HashZchManagedCollisionModule; by "
                f"hand give it zch_size={merged.rows}, total_num_buckets={table.buckets} and "
                f"max_probe={merged.max_probe} or more"
            )
        if table.ids == "mch":
            found.append(
                f"{table.name}: migrate.torchrec.build makes its MCHManagedCollisionModule; by "
                f"hand give it zch_size={merged.rows}"
            )
        if merged.duplicates:
            found.append(f"{table.name}: {merged.duplicates} rows had a newer one of the same id")
        for slot, count in merged.without.items():
            if count:
                found.append(
                    f"{table.name}: {count} ids have no {slot} in the source, and begin with "
                    f"{table.fill[slot]:g}"
                )
        for slot, count in merged.ownerless.items():
            if count:
                found.append(f"{table.name}: {count} rows of {slot} belong to no id, left out")
    return found


def files_of(plan: Plan, sources: Dict[str, HashTable]) -> List[str]:
    """The files of the plan's tables that are no checkpoint's."""
    return sorted(
        {
            file
            for table in plan.hash_tables
            for one in (sources[table.table], *sources[table.table].slots.values())
            for part in one.parts
            for file in part.files
        }
    )
