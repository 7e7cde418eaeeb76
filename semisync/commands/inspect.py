"""`semisync inspect PATH [--json]`: the contents of a TensorFlow checkpoint, and rows worth a look.

The listing comes from the index and the MetaGraph; norms and suspicious rows from reading all the
data once, in a stream and verified, unless --index asks for the listing only. Of a directory that
`semisync convert` wrote the tables are listed.
With --graph the graph's inputs and outputs are listed instead (migrate.cli.inspect_graph).
With --newer a DeepRec incremental checkpoint is laid over the full one
(migrate.checkpoint.overlay).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from typing import Any, Dict, List, Optional

from migrate.cli import inspect_graph
from migrate.hash_tables.readers import tables_in_files
from migrate.inspection.listing import describe, describe_tables, empty
from migrate.manifest.manifest import is_converted, read_manifest
from migrate.model.vocabulary_files import add_assets
from migrate.open import open_checkpoint
from migrate.planning.static import savings, static_bytes
from migrate.servers import add_plugins
from semisync.answers import add_json, answer
from semisync.common.terminal import quoted
from semisync.storage.folders import absolute

_CONVERTED_SCHEMA = "semisync.inspect-converted/1"
_CONVERTED_COLUMNS = (
    "table",
    "dtype",
    "shape",
    "pooling",
    "optimizer",
    "static",
    "placement",
    "bytes",
)
_COLUMNS = ("name", "dtype", "shape", "slices", "kind", "bytes")
_ROW_COLUMNS = ("rows of", "rows", "slots", "mean norm", "NaN or inf", "all zero", "never updated")
_EXAMPLES = """examples:
  semisync inspect model.ckpt-1
  semisync inspect model.ckpt-1 --index --json
  semisync inspect model.ckpt-1 --graph"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "prefix",
        metavar="PATH",
        help="a checkpoint without .index, or a directory: of checkpoints, of a SavedModel, of "
        "hash tables or of a conversion",
    )
    parser.add_argument(
        "--newer", metavar="PREFIX", help="a DeepRec incremental checkpoint to lay over it"
    )
    parser.add_argument(
        "--meta",
        metavar="FILE",
        help="the MetaGraph, which identifies slots; default as for convert",
    )
    add_plugins(parser)
    add_assets(parser)
    add_json(parser, "the listing")
    parser.add_argument(
        "--index", action="store_true", help="read the index alone: no norms, no suspicious rows"
    )
    parser.add_argument(
        "--graph",
        action="store_true",
        help="list what the graph can be fed and its likely outputs, for `semisync score`",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the listing; returns 0."""
    if args.graph:
        return inspect_graph.run(args.prefix, args.meta, args.json, args.asset)
    if args.newer is None and is_converted(args.prefix):
        return _converted(args.prefix, args.json)
    tables = tables_in_files(args.prefix) if args.newer is None else None
    if tables is not None:
        report = empty(os.path.abspath(args.prefix))
        report["hash_tables"] = describe_tables(tables, not args.index)
    else:
        with open_checkpoint(args.prefix, newer=args.newer) as checkpoint:
            report = describe(checkpoint, not args.index, args.meta)
    answer(args.json, report, _lines(report))
    return 0


def _converted(path: str, as_json: bool) -> int:
    report = _describe_converted(path)
    lines = _aligned([list(_CONVERTED_COLUMNS), *_converted_rows(report)])
    answer(as_json, report, [*lines, "", *_remarks(report)])
    return 0


def _lines(report: Dict[str, Any]) -> List[str]:
    lines: List[str] = []
    if report["tensors"]:
        lines += _listing(report)
    rows = [list(_ROW_COLUMNS)]
    rows += [_row(entry) for entry in (report["variables"] or []) + (report["hash_tables"] or [])]
    if len(rows) > 1:
        lines += ([""] if lines else []) + _aligned(rows)
    for table in report["hash_tables"] or []:
        if table["unread"]:
            lines.append(f"{quoted(table['name'])}: {table['unread']}")
    return lines + [f"note: {note}" for note in report["notes"]]


def _listing(report: Dict[str, Any]) -> List[str]:
    rows: List[List[str]] = [list(_COLUMNS)]
    for tensor in report["tensors"]:
        shape = "x".join(map(str, tensor["shape"])) or "scalar"
        slices = str(len(tensor["slices"]) or "-")
        name, size = quoted(tensor["name"]), f"{tensor['bytes']:,}"
        rows.append([name, tensor["dtype"], shape, slices, tensor["kind"], size])
    lines = _aligned(rows)
    lines += ["", _total(report)]
    for shard in report["shards"]:
        size = "missing" if shard["bytes"] is None else f"{shard['bytes']:,} bytes"
        lines.append(f"{shard['path']}: {size}")
    return lines


def _total(report: Dict[str, Any]) -> str:
    read = ", all read and verified" if report["verified"] else ""
    return f"{len(report['tensors'])} tensors, {report['bytes']:,} bytes{read}"


def _row(entry: Dict[str, Any]) -> List[str]:
    slots = ", ".join(entry["slots"]) or "-"
    rows = entry.get("rows", entry.get("stored"))
    norm: Optional[float] = entry.get("norm_mean")
    cells = [quoted(entry["name"]), f"{rows:,}", slots, "-" if norm is None else f"{norm:.4g}"]
    for key in ("not_finite", "all_zero", "never_updated"):
        suspects = entry.get(key)
        if suspects is None:
            cells.append("-")
            continue
        first = ", ".join(map(str, suspects["first"]))
        more = ", ..." if suspects["count"] > len(suspects["first"]) else ""
        cells.append(f"{suspects['count']:,}" + f" ({first}{more})" * bool(first))
    return cells


def _aligned(rows: List[List[str]]) -> List[str]:
    width = max(len(row[-1]) for row in rows)
    return inspect_graph.aligned([[*row[:-1], row[-1].rjust(width)] for row in rows])


def _describe_converted(path: str) -> Dict[str, Any]:
    """The manifest without its hashes, and of each table the size of its weights in bytes; of a
    static one also that in a GPU's memory, where rows may be padded."""
    manifest = read_manifest(path)
    tables = []
    for table in manifest.tables:
        gpu = static_bytes(table, gpu=True) if table.static else None
        saved = savings(table) if table.static else None
        sizes = {"bytes": static_bytes(table), "gpu_bytes": gpu, "saved": saved}
        tables.append({**asdict(table), **sizes})
    return {
        "schema": _CONVERTED_SCHEMA,
        "directory": absolute(path),
        "source": manifest.source,
        "target": manifest.target,
        "tables": tables,
        "tensors": len(manifest.tensors),
        "dropped": manifest.dropped,
        "notes": manifest.notes,
    }


def _converted_rows(report: Dict[str, Any]) -> List[List[str]]:
    """The tables as rows of text under `_CONVERTED_COLUMNS`."""
    cells = []
    for table in report["tables"]:
        shape = f"{table['rows']}x{table['dim']}"
        words = [table[key] or "-" for key in ("pooling", "optimizer", "static", "placement")]
        cells.append([quoted(table["name"]), table["dtype"], shape, *words, f"{table['bytes']:,}"])
    return cells


def _remarks(report: Dict[str, Any]) -> List[str]:
    """A static table's savings, the dropped tensors, and the notes."""
    lines = [f"{report['tensors']} tensors of {report['source']} ({report['target']})"]
    lines += [table["saved"] for table in report["tables"] if table["saved"]]
    lines += [f"dropped {name}: {reason}" for name, reason in report["dropped"].items()]
    return lines + [f"note: {note}" for note in report["notes"]]
