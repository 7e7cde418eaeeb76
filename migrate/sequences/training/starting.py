"""A warm start: vectors of items and users from a table that `semisync convert` wrote, by raw id.

1. Of a hash table, converted with --ids rows, the ids come along; of another table an id is the
   number of its row.
2. Those that the table lacks keep their fresh vectors, and rows of others are left out.
3. The optimizer's state starts over: the old model minimised another loss.
"""

from __future__ import annotations

from typing import Any

import numpy
import torch

from migrate.manifest.manifest import TableSummary, read_manifest
from migrate.targets.reading import open_target
from migrate.torchrec.ids import id_map
from semisync.common.errors import UsageError

_CHUNK = 1 << 16  # rows


def warm(
    table: Any, kind: str, wanted: numpy.ndarray, dim: int, directory: str, name: str
) -> float:
    """Copies a converted table's vectors into a new `table`; every process calls it.

    Args:
        table: of `migrate.sequences.training.tables`.
        kind: "item" or "user".
        wanted: their raw ids, all different.
        dim: of the table.
        directory: a converted checkpoint.
        name: the name of the converted table.

    Returns:
        The share of the wanted ids that it has.

    Raises:
        UsageError: there is no such table, or it does not fit.
    """
    manifest = read_manifest(directory)
    summary = {one.name: one for one in manifest.tables}.get(name)
    if summary is None:
        raise UsageError(
            f"{directory} has no table {name!r}, expected one of "
            f"{sorted(one.name for one in manifest.tables)}"
        )
    _check(summary, dim, f"{directory}: table {name!r}")
    ids = _ids(summary, directory)
    found, reader = 0, open_target(directory, manifest.target)
    for first in range(0, len(ids), _CHUNK):
        some = ids[first : first + _CHUNK]
        own = numpy.isin(some, wanted)
        found += int(own.sum())
        if own.any():
            rows = reader.rows(summary.fqn, first, len(some))[torch.from_numpy(own)]
            table.begin(kind, some[own], rows.float())
    return found / len(wanted)


def _check(summary: TableSummary, dim: int, where: str) -> None:
    if summary.dim != dim:
        raise UsageError(
            f"{where} has vectors of {summary.dim} numbers; set dim to that, not {dim}"
        )
    if summary.dtype not in ("float32", "float16", "bfloat16"):
        raise UsageError(f"{where} is of {summary.dtype}; convert it as floats")
    if summary.ids is not None and summary.ids.mode != "rows":
        raise UsageError(f"{where} has its ids as {summary.ids.mode}; convert with --ids rows")


def _ids(summary: TableSummary, directory: str) -> numpy.ndarray:
    """The raw id of each row, int64."""
    if summary.ids is None:
        return numpy.arange(summary.rows)
    found: numpy.ndarray = id_map(directory, summary.name).ids.numpy()
    return found
