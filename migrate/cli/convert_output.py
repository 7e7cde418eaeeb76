"""The output of `semisync convert`, for people or by --json: of the plan before the work, of the
manifest after it."""

from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple, Optional

from migrate.conversion.forecast import Forecast
from migrate.launcher import Rank
from migrate.manifest.manifest import Manifest
from migrate.manifest.transforms import named
from migrate.model.load import Written
from migrate.planning.plan import Plan, Table
from migrate.planning.static import savings
from migrate.to_tensorflow.write import Returned

PLANNED = "semisync.convert-plan/1"
CONVERTED = "semisync.convert/1"
RANK = "semisync.convert-rank/1"
FROZEN = "semisync.convert-frozen/1"
RETURNED = "semisync.to-tensorflow/1"


def of_dry_run(plan: Plan, work: Forecast) -> Dict[str, Any]:
    """The plan, with the keys of its YAML, and the bytes, files and threads that it will take."""
    return {"schema": PLANNED, "plan": plan.document(), "forecast": work._asdict()}


def of_conversion(
    out: str, manifest: Manifest, verified: bool, model: Optional[Written], path: str
) -> Dict[str, Any]:
    """The manifest, whether it was verified, and the contents of the module at `path`, if any."""
    written = None
    if model is not None:
        written = {"path": path, **counted(model)._asdict(), "notes": model.notes}
    document = {"schema": CONVERTED, "out": out, "verified": verified, "model": written}
    return {**document, "manifest": manifest.document()}


def of_rank(rank: Rank, parts: int) -> Dict[str, Any]:
    """How many parts a rank other than the first wrote; the first has the manifest."""
    return {"schema": RANK, "rank": rank.number, "ranks": rank.size, "parts": parts}


def of_frozen(path: Optional[str], constants: int) -> Dict[str, Any]:
    """The module that was written from a frozen graph; path: None in a dry run."""
    return {"schema": FROZEN, "path": path, "parameters": 0, "constants": constants}


def of_returned(written: Returned) -> Dict[str, Any]:
    """The checkpoint that --to-tensorflow wrote."""
    return {"schema": RETURNED, **written._asdict()}


def of_plan(plan: Plan) -> List[str]:
    """The planned conversion, a line per table."""
    lines = [f"{plan.source}: {len(plan.tables)} tables, {len(plan.dense)} dense variables"]
    lines += [_of_table(table) for table in plan.tables]
    return lines + [f"  note: {note}" for note in plan.notes]


def _of_table(table: Table) -> str:
    rows = table.rows if table.ids is None else table.ids.stored
    line = f"table {table.name}: {rows} x {table.dim} {table.dtype}"
    if table.ids is not None:
        line = f"hash {line}, {table.ids.kind}, ids by {table.ids.mode}"
    if table.partitions > 1:
        line += f", {table.partitions} partitions ({table.partition_strategy})"
    if table.optimizer:
        line += f", {table.optimizer}"
    if table.static:
        line += f", static {table.static}"
    return f"  {line}"


def of_forecast(work: Forecast, ranks: int) -> List[str]:
    """The lines of --dry-run about the work."""
    lines = [
        f"reads {work.read:,} bytes (files: {work.shards}), writes {work.written:,} "
        f"(files: about {work.files:,}, parts: {work.parts:,})"
    ]
    if ranks > 1:
        lines.append(f"each of {ranks} ranks {work.share:,} parts of {work.share_bytes:,} bytes")
    lines.append(f"{work.threads} threads take at most {work.memory >> 20:,} MiB of memory")
    if work.hashed:
        lines.append(f"hash tables take {work.hashed:,} bytes of disk at most")
    lack = "" if work.disk <= work.free else ", too little"
    lines.append(f"{work.place} needs {work.disk:,} bytes and has {work.free:,} free{lack}")
    return lines


def of_model(model: Written, path: str) -> List[str]:
    """The contents of the module written to `path`."""
    count, values, buffers = counted(model)
    has = f"{count} parameters of {values:,} values, {buffers} buffers"
    return [f"wrote {path}: {has}", *(f"  note: {note}" for note in model.notes)]


class Counts(NamedTuple):
    """How many parameters a module has, of how many values in all, and how many buffers."""

    parameters: int
    values: int
    buffers: int


def counted(model: Written) -> Counts:
    """The contents of the module."""
    trained = [parameter for parameter in model.parameters if parameter.trainable]
    values = sum(math.prod(parameter.shape) for parameter in trained)
    return Counts(len(trained), values, len(model.parameters) - len(trained))


def of_manifest(manifest: Manifest, plan: Plan, out: str, verified: bool) -> List[str]:
    """The written tensors, the loss by casts, the dropped tensors, and further notes."""
    lines = [
        f"wrote {len(manifest.tensors)} tensors to {out} ({manifest.target}, manifest.json)"
        + (", verified" if verified else ", not verified")
    ]
    for written in manifest.tensors:
        if written.loss is not None:
            type_name = named(written.transform).type_name(written.dtype)
            lines.append(
                f"  {written.fqn} cast to {type_name}: relative error {written.loss.relative:.2g}, "
                f"rms {written.loss.root_mean_square:.2g}, largest {written.loss.largest:.2g}, "
                f"{written.loss.vanished} values became zero"
            )
    lines += [f"  {savings(table)}" for table in manifest.tables if table.static]
    lines += [f"  not carried: {sentence}" for sentence in manifest.not_carried()]
    return lines + [f"  note: {note}" for note in manifest.notes if note not in plan.notes]
