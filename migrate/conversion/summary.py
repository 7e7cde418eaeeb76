"""What a conversion says of what it wrote: its manifest."""

from __future__ import annotations

import math
from typing import Any, Dict, List

import numpy

from migrate.checkpoint.bundle import Checkpoint
from migrate.conversion.parts import Run
from migrate.hash_tables.model import HashTable
from migrate.ids.staging import StagedTable
from migrate.ids.summary import ids_notes, summaries, unwritten_slots
from migrate.manifest.model import Manifest, Piece, TableSummary, Written
from migrate.manifest.transforms import LOSSY, Loss, widened
from migrate.planning.model import Plan, Table
from migrate.planning.semantics import notes
from migrate.planning.static import trained_bytes, why_untrained
from migrate.stream.items import Item
from semisync.common.errors import BadInput


def manifest_of(
    plan: Plan,
    target: str,
    checkpoint: Checkpoint,
    sources: Dict[str, HashTable],
    staged: List[StagedTable],
    items: List[Item],
    runs: List[Run],
) -> Manifest:
    """The manifest of a conversion that wrote `items` to format `target`.

    sources: the checkpoint's hash tables by name; staged: those of the plan, as they were written.
    runs: of all parts, by item and row. Raises BadInput where a cast has overflowed.
    """
    pieces: Dict[int, List[Piece]] = {}
    losses = _losses(items, runs)
    for run in runs:
        pieces.setdefault(run.item, []).append(run.piece)
    manifest = Manifest(
        source=plan.source,
        target=target,
        module=plan.module,
        tables=[
            *(_summary(plan, table, checkpoint) for table in plan.tables),
            *summaries(plan, sources, staged, items),
        ],
        tensors=[
            Written(
                item.fqn,
                item.source,
                item.role,
                list(item.shape),
                item.dtype,
                item.transform,
                "mod" if item.interleave else None,
                item.value,
                pieces.get(index, []),
                losses.get(item.fqn),
            )
            for index, item in enumerate(items)
        ],
        scalars={name: _plain(checkpoint.read(name)) for name in plan.scalars},
        notes=[*plan.notes, *notes(plan, checkpoint), *ids_notes(plan, staged)],
        meta=plan.meta,
        newer=plan.newer,
    )
    manifest.dropped = _dropped(plan, checkpoint, sources, manifest)
    return manifest


def _summary(plan: Plan, table: Table, checkpoint: Checkpoint) -> TableSummary:
    """The manifest's words on a table whose ids are the numbers of its rows."""
    return TableSummary(
        table.name,
        plan.fqn(table),
        table.rows,
        table.dim,
        table.target_dtype,
        None if table.static else table.optimizer,
        {} if table.static else table.hyperparameters,
        table.row_wise,
        table.features or [table.name],
        table.pooling,
        table.weighted,
        table.static,
        table.placement,
        trained_bytes(table, checkpoint) if table.static else None,
    )


def _dropped(
    plan: Plan, checkpoint: Checkpoint, sources: Dict[str, HashTable], manifest: Manifest
) -> Dict[str, str]:
    """What is not written, and why; an edited plan may leave tensors out without a word."""
    written = manifest.sources()
    left_out = {name: "the plan leaves it out" for name in checkpoint if name not in written}
    for table in plan.tables:
        if table.static:
            left_out.update(dict.fromkeys(table.slots.values(), why_untrained(table)))
    return {**left_out, **plan.dropped, **unwritten_slots(plan, sources)}


def _losses(items: List[Item], runs: List[Run]) -> Dict[str, Loss]:
    """What casts cost, by the name of the tensor; BadInput where a value has no place in one."""
    found: Dict[str, Loss] = {}
    for run in runs:
        item = items[run.item]
        if item.transform in LOSSY:
            found.setdefault(item.fqn, Loss()).add(run.loss)
            if run.loss.overflowed:
                kind = "an int8 row" if item.transform == "int8" else item.dtype
                raise BadInput(
                    f"{item.source!r} has values that {kind} cannot hold, in rows "
                    f"{run.piece.first} to {run.piece.first + run.piece.rows - 1}; cast it to "
                    "bfloat16, or leave its cast or static out of the plan"
                )
    return found


def _plain(stored: numpy.ndarray) -> Any:
    """A scalar as JSON can carry it: numbers as they are, what JSON lacks as text."""
    value = widened(stored).item()
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
