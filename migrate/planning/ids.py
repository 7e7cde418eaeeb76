"""Does a plan's hash table fit the source?"""

from __future__ import annotations

from typing import Mapping

import numpy

from migrate.encoding.dtypes import BY_NAME, number_type
from migrate.hash_tables.model import HashTable
from migrate.manifest.modes import DUPLICATES, MANAGED, MODES
from migrate.manifest.transforms import filler, widened
from migrate.planning.model import CASTS, POOLINGS, HashedTable
from migrate.planning.static import check_static
from semisync.common.errors import BadInput

_DYNAMICEMB = ("Adagrad", "Adam")  # optimizers whose state it keeps as TensorFlow does


def check_hashed(table: HashedTable, sources: Mapping[str, HashTable], where: str) -> None:
    """Raises BadInput where `sources`, those of `where`, do not have `table` as said."""
    name = f"hash table {table.table!r}"
    source = sources.get(table.table)
    if source is None:
        raise BadInput(f"the plan names the {name}, which {where} does not hold")
    said = f"{table.kind}, {table.stored} rows, {table.dtype} {[table.dim]}"
    found = f"{source.kind}, {source.stored} rows, {source.dtype} {list(source.value_shape)}"
    if said != found:
        raise BadInput(f"the plan has {name} as {said}, {where} as {found}")
    if source.key_dtype not in ("int64", "int32") or not BY_NAME[source.dtype].is_floating:
        raise BadInput(f"{name} has {source.key_dtype} ids and rows of {source.dtype}; drop it")
    for one, allowed in (
        (table.ids, tuple(MODES)),
        (table.duplicates, DUPLICATES),
        (table.cast, (None, *CASTS)),
        (table.pooling, (None, *POOLINGS)),
    ):
        if one not in allowed:
            raise BadInput(f"{name}: {one!r}, expected one of {', '.join(map(str, allowed))}")
    if table.buckets < 1 or (table.rows is not None and table.rows < 1):
        raise BadInput(f"{name}: rows and buckets are at least 1")
    if table.ids == "mpzch" and table.rows is not None and table.rows % table.buckets:
        raise BadInput(f"{name}: its {table.rows} rows do not divide into {table.buckets} buckets")
    for slot, stored in table.slots.items():
        if stored not in source.slots:
            raise BadInput(f"the plan names slot {stored!r} of {name}, which {where} does not hold")
        if slot not in table.fill:
            raise BadInput(f"{name}: the plan's fill has no value for slot {slot!r}")
    check_static(table)
    if table.static == "int8" and table.ids in MANAGED:
        raise BadInput(
            f"{name}: the module of ids {table.ids} has a collection of floats below it, which "
            "cannot hold int8 rows; use static fp16, or ids rows"
        )
    if table.weighted and table.pooling == "none":
        raise BadInput(f"{name} has weights, but pooling none; weights are for pooled vectors")
    if table.ids == "dynamicemb":
        _check_dynamicemb(table, source, name)
    _check_fill(table, source, name)


def _check_dynamicemb(table: HashedTable, source: HashTable, name: str) -> None:
    """What its files can hold: float32, and the state of some optimizers."""
    if table.cast is not None or table.rows is not None or table.static not in (None, "float32"):
        raise BadInput(f"{name}: dynamicemb's files are float32 and have no free rows")
    if table.placement is not None:
        raise BadInput(f"{name}: TorchRec's planner does not place dynamicemb's tables")
    if table.written_slots and table.optimizer not in _DYNAMICEMB:
        raise BadInput(
            f"{name}: dynamicemb keeps the state of {' and '.join(_DYNAMICEMB)} alone, these slots "
            f"are of {table.optimizer}; leave them out of the plan"
        )
    if any(source.slots[slot].dtype != "float32" for slot in table.written_slots.values()):
        raise BadInput(f"{name}: dynamicemb's optimizer state is float32; leave the slots out")


def _check_fill(table: HashedTable, source: HashTable, name: str) -> None:
    """That the slots can hold what they are filled with."""
    for slot, stored in table.written_slots.items():
        dtype = source.slots[stored].dtype
        with numpy.errstate(all="ignore"):  # what does not fit is said below
            written = widened(filler(table.fill[slot], number_type(dtype)))
        if not numpy.isfinite(written):
            raise BadInput(
                f"{name}: fill has {table.fill[slot]} for slot {slot!r}; "
                f"expected a number that {dtype} holds"
            )
