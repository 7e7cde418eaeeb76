"""`semisync inspect DIRECTORY` for a directory that `semisync convert` wrote: its tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List

from migrate.manifest.manifest import read_manifest
from migrate.planning.static import savings, static_bytes
from semisync.common.terminal import quoted
from semisync.storage.folders import absolute

SCHEMA = "semisync.inspect-converted/1"
COLUMNS = ("table", "dtype", "shape", "pooling", "optimizer", "static", "placement", "bytes")


def describe(path: str) -> Dict[str, Any]:
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
        "schema": SCHEMA,
        "directory": absolute(path),
        "source": manifest.source,
        "target": manifest.target,
        "tables": tables,
        "tensors": len(manifest.tensors),
        "dropped": manifest.dropped,
        "notes": manifest.notes,
    }


def rows(report: Dict[str, Any]) -> List[List[str]]:
    """The tables as rows of text under `COLUMNS`."""
    cells = []
    for table in report["tables"]:
        shape = f"{table['rows']}x{table['dim']}"
        words = [table[key] or "-" for key in ("pooling", "optimizer", "static", "placement")]
        cells.append([quoted(table["name"]), table["dtype"], shape, *words, f"{table['bytes']:,}"])
    return cells


def remarks(report: Dict[str, Any]) -> List[str]:
    """A static table's savings, the dropped tensors, and the notes."""
    lines = [f"{report['tensors']} tensors of {report['source']} ({report['target']})"]
    lines += [table["saved"] for table in report["tables"] if table["saved"]]
    lines += [f"dropped {name}: {reason}" for name, reason in report["dropped"].items()]
    return lines + [f"note: {note}" for note in report["notes"]]
