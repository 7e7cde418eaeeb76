"""Makes and writes the manifest, a conversion's record of its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.conversion.items import Hashed
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.tensors import tensors_of
from migrate.manifest import dynamicemb, model_json
from migrate.manifest.manifest import FILE, Ids, Manifest, Piece, TableSummary, Written
from migrate.manifest.transforms import Loss
from migrate.planning.plan import IdMapping, Plan, Table
from migrate.planning.semantics import notes
from migrate.planning.static import trained_bytes, why_untrained
from migrate.stream.item import Item
from migrate.stream.writing import Run
from migrate.targets import INDEXES
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import widened
from semisync.storage.files import read_whole


def manifest_of(
    plan: Plan,
    target: str,
    checkpoint: Checkpoint,
    hashed: Mapping[str, Hashed],
    items: List[Item],
    runs: List[Run],
) -> Manifest:
    """The manifest of a conversion that wrote `items` to format `target`.

    Args:
        hashed: the plan's hash tables by the table's name.
        runs: of all parts, by item and row.

    Raises:
        BadInput: a cast has overflowed.
    """
    summaries = [
        _summary(plan, table, checkpoint, hashed.get(table.name), items) for table in plan.tables
    ]
    manifest = Manifest(
        source=plan.source,
        target=target,
        module=plan.module,
        tables=summaries,
        tensors=_written(items, runs, checkpoint),
        scalars={name: _plain(checkpoint.read(name)) for name in plan.scalars},
        notes=[*plan.notes, *notes(plan, checkpoint), *_id_notes(plan, hashed)],
        meta=plan.meta,
        newer=plan.newer,
    )
    # Last: these are the tensors that no entry above was made from.
    manifest.dropped = _dropped(plan, checkpoint, hashed, manifest)
    manifest.notes += dynamicemb.missing_settings(manifest)
    return manifest


def write_manifest(manifest: Manifest, folder: str) -> None:
    """Writes the manifest, with the hash of the target's index in `folder`, and the files made from
    it."""
    index = read_whole(os.path.join(folder, INDEXES[manifest.target]))
    manifest.index_sha256 = hashlib.sha256(index).hexdigest()
    texts = {FILE: manifest.to_json(), model_json.FILE: model_json.to_json(manifest)}
    for path, settings in dynamicemb.settings_files(manifest):
        texts[path] = json.dumps(settings, indent=4) + "\n"
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def _written(items: List[Item], runs: List[Run], checkpoint: Checkpoint) -> List[Written]:
    """Each tensor with its pieces and its cast loss; raises BadInput if a value has no place."""
    pieces: Dict[int, List[Piece]] = {}
    losses: Dict[int, Loss] = {}
    for run in runs:
        item = items[run.item]
        pieces.setdefault(run.item, []).append(run.piece)
        if item.transform.lossy:
            losses.setdefault(run.item, Loss()).add(run.loss)
            if run.loss.overflowed:
                raise BadInput(
                    f"{item.source!r} has values that {item.transform.type_name(item.dtype)} "
                    f"cannot hold, in rows {run.piece.first} to "
                    f"{run.piece.first + run.piece.rows - 1}; cast it to bfloat16, or leave its "
                    "cast or static out of the plan"
                )
    return [
        Written(
            fqn=item.fqn,
            source=item.source,
            role=item.role,
            shape=list(item.shape),
            dtype=item.dtype,
            transform=item.transform.name,
            partition_strategy="mod" if item.interleave else None,
            value=item.value,
            pieces=pieces.get(index, []),
            loss=losses.get(index),
            slices=_slices(item, checkpoint),
        )
        for index, item in enumerate(items)
    ]


def _slices(item: Item, checkpoint: Checkpoint) -> Dict[str, List[List[List[int]]]]:
    """[start, sizes] of each slice of the tensor that `item` copies, by stored name (Written)."""
    if item.value is not None or item.origins:
        return {}
    names = [name for name, whole in checkpoint.parts.items() if whole == item.source]
    stored = {name: checkpoint.stored.as_stored[name] for name in names or [item.source]}
    return {
        name: [[list(piece.start), list(piece.shape)] for piece in tensor.pieces]
        for name, tensor in stored.items()
        if tensor.partitioned
    }


def _summary(
    plan: Plan,
    table: Table,
    checkpoint: Checkpoint,
    hashed: Optional[Hashed],
    items: List[Item],
) -> TableSummary:
    """The manifest's entry of a table, `hashed` if it is a hash table."""
    rows = table.rows if hashed is None else hashed.sorted.merged.rows
    assert rows is not None  # the plan was checked
    source = None if hashed is None else hashed.source
    return TableSummary(
        name=table.name,
        fqn=plan.fqn(table),
        rows=rows,
        dim=table.dim,
        dtype=table.target_dtype,
        optimizer=None if table.static else table.optimizer,
        hyperparameters={} if table.static else table.hyperparameters,
        row_wise=table.row_wise,
        features=table.features or [table.name],
        pooling=table.pooling,
        weighted=table.weighted,
        static=table.static,
        placement=table.placement,
        trained_bytes=trained_bytes(table, rows, checkpoint, source) if table.static else None,
        ids=None if hashed is None else _ids(table, hashed, items),
    )


def _ids(table: Table, hashed: Hashed, items: List[Item]) -> Ids:
    assert table.ids is not None
    ids, merged = table.ids, hashed.sorted.merged
    by_hash = ids.mode == "mpzch"
    return Ids(
        mode=ids.mode,
        table=table.variable,
        kind=ids.kind,
        count=merged.ids,
        slots=table.written_slots,
        fill=ids.fill,
        duplicates=merged.duplicates,
        buckets=ids.buckets if by_hash else 0,
        max_probe=merged.max_probe if by_hash else 0,
        without=merged.without,
        columns=_columns(hashed, items),
        tensors=sorted(tensors_of(_written_part(table, hashed.source))),
    )


def _columns(hashed: Hashed, items: List[Item]) -> Dict[str, List[str]]:
    """The table's content in each item."""
    stem = hashed.sorted.stem
    names = {stem: "", f"{stem}-map": ""}
    names.update({of_slot: f"slot {name}" for name, of_slot in hashed.sorted.slots.items()})
    columns: Dict[str, List[str]] = {}
    for item in items:
        for origin in item.origins:
            owner, _, column = origin.column.rpartition(".")
            if owner in names:
                columns.setdefault(item.fqn, []).append(names[owner] or column)
    return columns


def _written_part(table: Table, source: HashTable) -> HashTable:
    """`source` without its slots, which are not written, if the table is static."""
    return dataclasses.replace(source, slots={}) if table.static else source


def _dropped(
    plan: Plan, checkpoint: Checkpoint, hashed: Mapping[str, Hashed], manifest: Manifest
) -> Dict[str, str]:
    """The tensors not written, and why; an edited plan may leave some out without a word."""
    written = manifest.sources()
    reasons = {name: "the plan leaves it out" for name in checkpoint if name not in written}
    for table in plan.tables:
        if table.static:
            slots = _slot_tensors(table, hashed.get(table.name))
            reasons.update(dict.fromkeys(slots, why_untrained(table)))
    # A reason in the plan is the more precise one.
    return {**reasons, **plan.dropped}


def _slot_tensors(table: Table, hashed: Optional[Hashed]) -> List[str]:
    """Names of the checkpoint's tensors that the slots of a static table are made of."""
    if hashed is None:
        return list(table.slots.values())
    source = hashed.source
    return sorted(tensors_of(source) - tensors_of(_written_part(table, source)))


def _id_notes(plan: Plan, hashed: Mapping[str, Hashed]) -> Iterator[str]:
    """Notes for the user on the hash tables."""
    for table in plan.hash_tables:
        assert table.ids is not None
        merged = hashed[table.name].sorted.merged
        yield from _module_notes(table, table.ids, merged.rows, merged.max_probe)
        if merged.duplicates:
            yield f"{table.name}: {merged.duplicates} rows had a newer one of the same id"
        for slot, count in merged.without.items():
            if count:
                yield (
                    f"{table.name}: {count} ids have no {slot} in the source, and begin with "
                    f"{table.ids.fill[slot]:g}"
                )
        for slot, count in merged.ownerless.items():
            if count:
                yield f"{table.name}: {count} rows of {slot} belong to no id, left out"


def _module_notes(table: Table, ids: IdMapping, rows: int, max_probe: int) -> Iterator[str]:
    """A note on building by hand the module that finds the rows."""
    if ids.mode == "mpzch":
        yield (
            f"{table.name}: migrate.torchrec.build makes its HashZchManagedCollisionModule; by "
            f"hand give it zch_size={rows}, total_num_buckets={ids.buckets} and "
            f"max_probe={max_probe} or more"
        )
    if ids.mode == "mch":
        yield (
            f"{table.name}: migrate.torchrec.build makes its MCHManagedCollisionModule; by "
            f"hand give it zch_size={rows}"
        )


def _plain(stored: numpy.ndarray) -> Any:
    """A scalar as JSON can carry it: numbers as they are, others as text."""
    # Widened, since numpy has no number for the bits of a bfloat16.
    value = widened(stored).item()
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
