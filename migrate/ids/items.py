"""What a hash table becomes in the target: tensors, or files of its own.

For a table T at module path M, in mode

    rows        M.embedding_bags.T.weight; ids.T, sorted
    mch         M._embedding_module.embedding_bags.T.weight, and below
                M._managed_collision_collection._managed_collision_modules.T.
                    _mch_sorted_raw_ids, _mch_remapped_ids_mapping, _mch_counts (freqs, else 0),
                    _mch_last_access_iter (versions of DeepRec, else 0), _output_segments_tensor,
                    _current_iter_tensor
    mpzch       the same weight, and there _hash_zch_identities, _hash_zch_bucket; from Monolith's
                times also _hash_zch_metadata, in hours
    dynamicemb  files dynamicemb/model.M/T_emb_keys.rank_0.world_size_1, and so on

and the slots as those of other tables (`migrate.stream.items`).
Source: torchrec/modules/mc_modules.py, hash_mc_modules.py; dynamicemb/dump_load.py.
"""

from __future__ import annotations

from typing import Iterator, Tuple

from migrate.checkpoint.bundle import Checkpoint
from migrate.hash_tables.model import HashTable
from migrate.ids.staging import StagedTable
from migrate.planning.model import HashedTable, Plan
from migrate.stream.columns import Origin
from migrate.stream.items import Item, in_target_type, slot_path, step_items


def id_items(
    plan: Plan, table: HashedTable, source: HashTable, staged: StagedTable, checkpoint: Checkpoint
) -> Iterator[Item]:
    """Everything that is written of one hash table."""
    if table.ids == "dynamicemb":
        yield from _dynamicemb(plan, table, source, staged)
        return
    fqn = plan.fqn(table)
    rows = staged.merged.rows
    values = _column(staged.stem, "values")
    weight = _item((fqn,), table, "hashed", table.dtype, (rows, table.dim), values)
    yield in_target_type(weight, table)
    for name, slot in table.written_slots.items():
        stored = source.slots[slot]
        values = _column(staged.slots[name], "values", table.fill[name])
        shape = (rows, *stored.value_shape)
        path = slot_path(fqn, table, name)
        yield _item(path, table, "hashed slot", stored.dtype, shape, values)
    if not table.static:
        yield from step_items(plan, table, checkpoint)
    yield from _ID_ITEMS[table.ids](plan, table, staged)


def _rows(plan: Plan, table: HashedTable, staged: StagedTable) -> Iterator[Item]:
    ids = _placed_ids(staged)
    yield _item(("ids", table.name), table, "hashed ids", "int64", (staged.merged.ids,), ids)


def _mch(plan: Plan, table: HashedTable, staged: StagedTable) -> Iterator[Item]:
    rows = (staged.merged.rows,)
    versions = "versions" in staged.columns and table.kind == "DeepRec"  # others have times

    def item(name: str, shape: Tuple[int, ...], origin: Origin) -> Item:
        return _state(plan, table, name, "int64", shape, origin)

    ids = item("_mch_sorted_raw_ids", rows, _placed_ids(staged))
    yield ids._replace(role="hashed ids")
    yield item("_mch_remapped_ids_mapping", rows, Origin("", ""))
    for name, column, there in (
        ("_mch_counts", "freqs", "freqs" in staged.columns),
        ("_mch_last_access_iter", "versions", versions),
    ):
        found = item(name, rows, _column(staged.stem, column))
        yield found if there else found._replace(value=0, origins=())
    segments = Origin("", f"{staged.stem}-segments.ends")
    yield item("_output_segments_tensor", (1025,), segments)
    step = item("_current_iter_tensor", (1,), segments)
    yield step._replace(value=staged.newest if versions else 0, origins=())


def _mpzch(plan: Plan, table: HashedTable, staged: StagedTable) -> Iterator[Item]:
    rows = (staged.merged.rows, 1)
    ids = _placed_ids(staged)
    found = _state(plan, table, "_hash_zch_identities", "int64", rows, ids)
    yield found._replace(role="hashed ids")
    found = _state(plan, table, "_hash_zch_bucket", "int64", (1, 1), ids)
    yield found._replace(value=table.buckets, origins=())
    if "versions" in staged.columns and table.kind == "Monolith":
        times = _column(staged.stem, "versions", -1)
        found = _state(plan, table, "_hash_zch_metadata", "int32", rows, times)
        yield found._replace(transform="hours")


_ID_ITEMS = {"rows": _rows, "mch": _mch, "mpzch": _mpzch}


def _dynamicemb(
    plan: Plan, table: HashedTable, source: HashTable, staged: StagedTable
) -> Iterator[Item]:
    count = staged.merged.ids

    def item(name: str, role: str, dtype: str, width: Tuple[int, ...], *origins: Origin) -> Item:
        fqn = f"dynamicemb/model.{plan.module}/{table.name}_{name}.rank_0.world_size_1"
        found = _item((fqn,), table, role, dtype, (count, *width), Origin("", ""))
        return found._replace(origins=origins)

    yield item("emb_keys", "file ids", "int64", (), _placed_ids(staged))
    cast = {"transform": "cast", "dtype": "float32"} if table.dtype != "float32" else {}
    values = item("emb_values", "file", table.dtype, (table.dim,), _column(staged.stem, "values"))
    yield values._replace(**cast)  # type: ignore[arg-type]
    known = [name for name in ("freqs", "versions") if name in staged.columns]
    origins = [_column(staged.stem, name) for name in known[:1]]
    scores = item("emb_scores", "file state", "int64", (), *origins)
    yield scores if known else scores._replace(value=0)
    slots = table.written_slots
    if slots:
        origins = [_column(staged.slots[name], "values", table.fill[name]) for name in slots]
        width = sum(source.slots[slot].value_shape[0] for slot in slots.values())
        yield item("opt_values", "file slot", "float32", (width,), *origins)


def _state(
    plan: Plan,
    table: HashedTable,
    name: str,
    dtype: str,
    shape: Tuple[int, ...],
    origin: Origin,
) -> Item:
    fqn = (
        f"{plan.module}._managed_collision_collection._managed_collision_modules.{table.name}."
        f"{name}"
    )
    return _item((fqn,), table, "hashed state", dtype, shape, origin)


def _item(
    path: Tuple[str, ...],
    table: HashedTable,
    role: str,
    dtype: str,
    shape: Tuple[int, ...],
    origin: Origin,
) -> Item:
    """An item whose source is the hash table."""
    name = ".".join(path)
    return Item(name, path, table.table, role, False, "copy", dtype, shape, None, (origin,))


def _placed_ids(staged: StagedTable) -> Origin:
    """In the order of the target, with its mark where a row is free."""
    return Origin("", f"{staged.stem}-map.ids")


def _column(stem: str, column: str, fill: float = 0) -> Origin:
    """A column of the staged table or slot `stem`, `fill` where a row is free."""
    return Origin(f"{stem}-map.rows", f"{stem}.{column}", fill)
