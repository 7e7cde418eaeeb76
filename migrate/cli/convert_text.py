"""What `semisync convert` prints: of the plan before the work, of the manifest after it."""

from __future__ import annotations

from migrate.manifest.model import Manifest
from migrate.planning.model import Plan
from migrate.planning.static import savings


def of_plan(plan: Plan) -> str:
    """What is going to be converted, a line a table."""
    tables = len(plan.tables) + len(plan.hash_tables)
    lines = [f"{plan.source}: {tables} tables, {len(plan.dense)} dense variables"]
    for table in plan.tables:
        parts = f", {table.partitions} partitions ({table.partition_strategy})"
        lines.append(
            f"  table {table.name}: {table.rows} x {table.dim} {table.dtype}"
            + (parts if table.partitions > 1 else "")
            + (f", {table.optimizer}" if table.optimizer else "")
            + (f", static {table.static}" if table.static else "")
        )
    for one in plan.hash_tables:
        lines.append(
            f"  hash table {one.name}: {one.stored} x {one.dim} {one.dtype}, {one.kind}, "
            f"ids by {one.ids}"
            + (f", {one.optimizer}" if one.optimizer else "")
            + (f", static {one.static}" if one.static else "")
        )
    lines += [f"  dropped {name}: {reason}" for name, reason in plan.dropped.items()]
    lines += [f"  note: {note}" for note in plan.notes]
    return "\n".join(lines)


def of_manifest(manifest: Manifest, plan: Plan, out: str, verified: bool) -> str:
    """What was written into `out`, what casts cost, and the notes that the plan did not have."""
    lines = [
        f"wrote {len(manifest.tensors)} tensors to {out} ({manifest.target}, manifest.json)"
        + (", verified" if verified else ", not verified")
    ]
    for one in manifest.tensors:
        if one.loss is not None:
            lines.append(
                f"  {one.fqn} cast to {'int8' if one.transform == 'int8' else one.dtype}: relative "
                f"error {one.loss.relative:.2g}, rms {one.loss.root_mean_square:.2g}, largest "
                f"{one.loss.largest:.2g}, {one.loss.vanished} values became zero"
            )
    lines += [f"  {savings(table)}" for table in manifest.tables if table.static]
    lines += [f"  note: {note}" for note in manifest.notes if note not in plan.notes]
    return "\n".join(lines)
