"""`semisync inspect PREFIX [--json]`: what a TensorFlow checkpoint holds. Reads its index alone."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, Dict, List

from migrate.sources.bundle import Checkpoint, open_checkpoint

SCHEMA = "semisync.inspect/1"
_COLUMNS = ("name", "dtype", "shape", "slices", "kind", "bytes")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("prefix", metavar="PREFIX", help="path of the checkpoint, without .index")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """Prints the listing; returns 0."""
    with open_checkpoint(args.prefix) as checkpoint:
        report = describe(checkpoint)
    print(json.dumps(report, indent=1, ensure_ascii=False) if args.json else _as_text(report))
    return 0


def describe(checkpoint: Checkpoint) -> Dict[str, Any]:
    """The listing as plain data; the size of a data file is None where it is missing."""
    tensors = [
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
    shards = [
        {"path": path, "bytes": os.path.getsize(path) if os.path.isfile(path) else None}
        for path in checkpoint.shard_paths()
    ]
    return {
        "schema": SCHEMA,
        "prefix": checkpoint.prefix,
        "tensors": tensors,
        "bytes": sum(info.nbytes for info in checkpoint.values()),
        "shards": shards,
    }


def _as_text(report: Dict[str, Any]) -> str:
    rows: List[List[str]] = [list(_COLUMNS)]
    for one in report["tensors"]:
        shape = "x".join(map(str, one["shape"])) or "scalar"
        slices = str(len(one["slices"]) or "-")
        rows.append([one["name"], one["dtype"], shape, slices, one["kind"], f"{one['bytes']:,}"])
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row[:-1], widths))
        + "  "
        + row[-1].rjust(widths[-1])
        for row in rows
    ]
    lines.append("")
    lines.append(f"{len(rows) - 1} tensors, {report['bytes']:,} bytes")
    for shard in report["shards"]:
        size = "missing" if shard["bytes"] is None else f"{shard['bytes']:,} bytes"
        lines.append(f"{shard['path']}: {size}")
    return "\n".join(lines)
