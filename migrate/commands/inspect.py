"""`semisync inspect PATH [--json]`: what a TensorFlow checkpoint holds, and rows worth a look.

The listing comes from the index alone; norms and suspicious rows from reading all the data once, in
a stream and verified, unless --index asks for the listing only or a data file is not there. Of a
directory that `semisync convert` wrote the tables are listed (migrate.commands.converted).
With --newer a DeepRec incremental checkpoint is laid over the full one (migrate.sources.increment).
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, Dict, List, Optional

from migrate import rowstats
from migrate.commands import converted
from migrate.sources.bundle import Checkpoint, open_checkpoint
from migrate.sources.dtypes import BY_NAME
from migrate.sources.files import size_of
from migrate.sources.hashed import HashTable
from migrate.sources.increment import Overlaid
from migrate.tables import hash_tables, other_tables
from semisync.errors import BadInput

SCHEMA = "semisync.inspect/1"
_COLUMNS = ("name", "dtype", "shape", "slices", "kind", "bytes")
_ROW_COLUMNS = ("rows of", "rows", "slots", "mean norm", "NaN or inf", "all zero", "never updated")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "prefix",
        metavar="PATH",
        help="a checkpoint without .index, or the directory of a SavedModel, of hash tables or of "
        "a conversion",
    )
    parser.add_argument(
        "--newer", metavar="PREFIX", help="a DeepRec incremental checkpoint to lay over it"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--index", action="store_true", help="read the index alone: no norms, no suspicious rows"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the listing; returns 0."""
    if args.newer is None and converted.is_converted(args.prefix):
        return _converted(args.prefix, args.json)
    tables = other_tables(args.prefix) if args.newer is None else None
    if tables is not None:
        report = _empty(os.path.abspath(args.prefix))
        report["hash_tables"] = _tables(tables, not args.index)
    else:
        with open_checkpoint(args.prefix, newer=args.newer) as checkpoint:
            report = describe(checkpoint, not args.index)
    print(json.dumps(report, indent=1, ensure_ascii=False) if args.json else _as_text(report))
    return 0


def _converted(path: str, as_json: bool) -> int:
    report = converted.describe(path)
    if as_json:
        print(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        lines = _aligned([list(converted.COLUMNS), *converted.rows(report)])
        print("\n".join([*lines, "", *converted.remarks(report)]))
    return 0


def describe(checkpoint: Checkpoint, values: bool = True) -> Dict[str, Any]:
    """The listing as plain data; the size of a data file is None where it is missing.

    values: read the data too. "variables" and "hash_tables" are None where it was not.
    """
    report = _empty(checkpoint.prefix)
    if isinstance(checkpoint, Overlaid):
        report["newer"] = checkpoint.newer.prefix
    report["tensors"] = [
        {
            "name": name,
            "dtype": info.dtype,
            "shape": list(info.shape),
            "slices": [{"start": list(s.start), "shape": list(s.shape)} for s in info.slices],
            "kind": info.kind,
            "bytes": info.nbytes,
        }
        for name, info in checkpoint.items()
    ]
    report["shards"] = [{"path": path, "bytes": size_of(path)} for path in checkpoint.shard_paths()]
    report["bytes"] = sum(info.nbytes for info in checkpoint.values())
    if values and all(shard["bytes"] is not None for shard in report["shards"]):
        slots = rowstats.slots_of(checkpoint)
        report["variables"] = [
            _variable(checkpoint, name, slots.get(name, {}))
            for name in rowstats.variables(checkpoint)
        ]
        report["hash_tables"] = _tables(hash_tables(checkpoint), True)
    return report


def _empty(prefix: str) -> Dict[str, Any]:
    return {
        "schema": SCHEMA,
        "prefix": prefix,
        "newer": None,
        "tensors": [],
        "bytes": 0,
        "shards": [],
        "variables": None,
        "hash_tables": None,
    }


def _variable(checkpoint: Checkpoint, name: str, slots: Dict[str, str]) -> Dict[str, Any]:
    found = rowstats.of_variable(checkpoint, name, slots)
    return {"name": name, "slots": sorted(slots), **rowstats.described(found)}


def _tables(tables: Dict[str, HashTable], values: bool) -> List[Dict[str, Any]]:
    """Each table; "unread" says why its rows were not read."""
    found = []
    for name, table in tables.items():
        one: Dict[str, Any] = {"name": name, "kind": table.kind, "slots": sorted(table.slots)}
        one.update(key_dtype=table.key_dtype, dtype=table.dtype, parts=len(table.parts))
        one.update(stored=table.stored, value_shape=list(table.value_shape), unread=None)
        if values and BY_NAME[table.dtype].is_floating:
            try:
                one.update(rowstats.described(rowstats.of_table(table)))
            except BadInput as error:
                if table.kind != "MutableDenseHashTable":
                    raise
                one["unread"] = str(error)
        found.append(one)
    return found


def _as_text(report: Dict[str, Any]) -> str:
    lines: List[str] = []
    if report["tensors"]:
        lines += _listing(report)
    rows = [list(_ROW_COLUMNS)]
    rows += [_row(one) for one in (report["variables"] or []) + (report["hash_tables"] or [])]
    if len(rows) > 1:
        lines += ([""] if lines else []) + _aligned(rows)
    for one in report["hash_tables"] or []:
        if one["unread"]:
            lines.append(f"{one['name']}: {one['unread']}")
    return "\n".join(lines)


def _listing(report: Dict[str, Any]) -> List[str]:
    rows: List[List[str]] = [list(_COLUMNS)]
    for one in report["tensors"]:
        shape = "x".join(map(str, one["shape"])) or "scalar"
        slices = str(len(one["slices"]) or "-")
        rows.append([one["name"], one["dtype"], shape, slices, one["kind"], f"{one['bytes']:,}"])
    lines = _aligned(rows)
    lines += ["", f"{len(rows) - 1} tensors, {report['bytes']:,} bytes"]
    for shard in report["shards"]:
        size = "missing" if shard["bytes"] is None else f"{shard['bytes']:,} bytes"
        lines.append(f"{shard['path']}: {size}")
    return lines


def _row(one: Dict[str, Any]) -> List[str]:
    slots = ", ".join(one["slots"]) or "-"
    rows = one.get("rows", one.get("stored"))
    norm: Optional[float] = one.get("norm_mean")
    cells = [one["name"], f"{rows:,}", slots, "-" if norm is None else f"{norm:.4g}"]
    for key in ("not_finite", "all_zero", "never_updated"):
        found = one.get(key)
        first = ", ".join(map(str, found["first"])) if found else ""
        more = ", ..." if found and found["count"] > len(found["first"]) else ""
        cells.append(
            "-" if found is None else f"{found['count']:,}" + f" ({first}{more})" * bool(first)
        )
    return cells


def _aligned(rows: List[List[str]]) -> List[str]:
    """Columns of equal width, the last one to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row[:-1], widths))
        + "  "
        + row[-1].rjust(widths[-1])
        for row in rows
    ]
