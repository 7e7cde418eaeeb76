"""Does a plan's hash table fit the source, and the target of its ids?"""

from __future__ import annotations

from typing import Mapping

import numpy

from migrate.hash_tables.hash_table import HashTable
from migrate.manifest.id_modes import DUPLICATES, MODES
from migrate.manifest.transforms import filler
from migrate.optimizers.registry import DYNAMICEMB
from migrate.planning.plan import IdMapping, Table
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BY_NAME, number_type, widened


def check_ids(table: Table, ids: IdMapping, sources: Mapping[str, HashTable], where: str) -> None:
    """Raises BadInput if the hash tables `sources` of the checkpoint `where` contradict `table`."""
    name = f"hash table {table.variable!r}"
    source = sources.get(table.variable)
    if source is None:
        raise BadInput(f"the plan names the {name}, which {where} does not hold")
    planned = f"{ids.kind}, {ids.stored} rows, {table.dtype} {[table.dim]}"
    stored = f"{source.kind}, {source.stored} rows, {source.dtype} {list(source.value_shape)}"
    if planned != stored:
        raise BadInput(f"the plan has {name} as {planned}, {where} as {stored}")
    if source.key_dtype not in ("int64", "int32") or not BY_NAME[source.dtype].is_floating:
        raise BadInput(f"{name} has {source.key_dtype} ids and rows of {source.dtype}; drop it")
    for key, value, known in (
        ("ids", ids.mode, tuple(MODES)),
        ("duplicates", ids.duplicates, DUPLICATES),
    ):
        if value not in known:
            raise BadInput(f"{name}: {key} {value!r}, expected one of {', '.join(known)}")
    if ids.buckets < 1 or (table.rows is not None and table.rows < 1):
        raise BadInput(f"{name}: rows and buckets are at least 1")
    if ids.mode == "mpzch" and table.rows is not None and table.rows % ids.buckets:
        raise BadInput(f"{name}: its {table.rows} rows do not divide into {ids.buckets} buckets")
    for slot, of_source in table.slots.items():
        if of_source not in source.slots:
            raise BadInput(
                f"the plan names slot {of_source!r} of {name}, which {where} does not hold"
            )
        if slot not in ids.fill:
            raise BadInput(f"{name}: the plan's fill has no value for slot {slot!r}")
    if ids.mode == "dynamicemb":
        _check_dynamicemb(table, source, name)
    _check_fill(table, ids, source, name)


def _check_dynamicemb(table: Table, source: HashTable, name: str) -> None:
    """Checks the limits of its files: float32, and the state of some optimizers."""
    if table.cast is not None or table.rows is not None or table.static not in (None, "float32"):
        raise BadInput(f"{name}: dynamicemb's files are float32 and have no free rows")
    if table.placement is not None:
        raise BadInput(f"{name}: TorchRec's planner does not place dynamicemb's tables")
    if table.written_slots and table.optimizer not in DYNAMICEMB:
        raise BadInput(
            f"{name}: dynamicemb keeps the state of {', '.join(DYNAMICEMB)} alone, these slots "
            f"are of {table.optimizer}; leave them out of the plan"
        )
    if any(source.slots[slot].dtype != "float32" for slot in table.written_slots.values()):
        raise BadInput(f"{name}: dynamicemb's optimizer state is float32; leave the slots out")


def _check_fill(table: Table, ids: IdMapping, source: HashTable, name: str) -> None:
    """Checks that the slots can hold their fills."""
    for slot, of_source in table.written_slots.items():
        dtype = source.slots[of_source].dtype
        with numpy.errstate(all="ignore"):  # a misfit is reported below
            written = widened(filler(ids.fill[slot], number_type(dtype)))
        if not numpy.isfinite(written):
            raise BadInput(
                f"{name}: fill has {ids.fill[slot]} for slot {slot!r}; "
                f"expected a number that {dtype} holds"
            )
