"""The hash tables of a plan, sorted and merged in the directory of the conversion.

    DIRECTORY/ids/plan.json       the list of sorted tables: written first
    DIRECTORY/ids/0.ids, ...      columns of the tables, see migrate.ids.runs
    DIRECTORY/ids/0-map.rows, ... maps, see migrate.ids.merging
    DIRECTORY/ids/0.done          a table that is sorted as a whole, and its result

A conversion that resumes takes a table that is there as a whole, unless the machine was restarted
since: these files are never synced, so that they are only as good as its memory. They take the
bytes of the tables and 16 per row of the target.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable
from migrate.ids.hashing import places
from migrate.ids.merging import Merged, merge
from migrate.ids.placing import Target
from migrate.ids.runs import Places, write_runs
from migrate.manifest.id_modes import MODES
from migrate.planning.plan import IdMapping, Table
from migrate.stream.columns import FOLDER, describe
from migrate.stream.sorting import one_thread_a_sort
from migrate.targets.work_directory import begin, write_whole
from semisync.common import json_text
from semisync.common.errors import BadInput

_PLAN = "plan.json"
_LAYOUT = 3  # of the files: another version of the program does not take them for its own
_MORE = 1.25  # rows per id of a table by hash, unless the plan gives the number of rows


class SortedTable(NamedTuple):
    """A table of the plan as it lies on disk.

    Attributes:
        stem: of the names of its columns.
        slots: the same for each slot, by torch's name.
        merged: the result of the merge.
        columns: names of the columns that it has.
        newest: its largest version, 0 where there are none.
    """

    stem: str
    slots: Dict[str, str]
    merged: Merged
    columns: Tuple[str, ...]
    newest: int


def sort_tables(
    directory: str,
    tables: List[Table],
    sources: Mapping[str, HashTable],
    files: List[List[object]],
    workers: int,
) -> List[SortedTable]:
    """Sorts `tables` of `sources` in `directory`, each as its target wants it.

    Args:
        files: the evidence that the source is unchanged.
        workers: threads that sort.

    Raises:
        BadInput: a table is damaged or has an id twice.
        UsageError: another plan or source was sorted here before.
    """
    folder = os.path.join(directory, FOLDER)
    os.makedirs(folder, exist_ok=True)
    described = {
        "layout": _LAYOUT,
        "tables": [dataclasses.asdict(table) for table in tables],
        "files": files,
    }
    begin(os.path.join(folder, _PLAN), json.dumps(described, ensure_ascii=False), directory)
    return [
        _sort(folder, str(number), table, sources[table.variable], workers)
        for number, table in enumerate(tables)
    ]


def room(tables: List[Table], sources: Mapping[str, HashTable]) -> int:
    """Bytes that the sorted tables and what is written of them need at most, about."""
    total = 0
    for table in tables:
        source, rows = sources[table.variable], target_rows(table) or 0
        for part in (source, *source.slots.values()):
            row = math.prod(part.value_shape) * 4 + 8
            total += part.stored * row + max(part.stored, rows) * (row + 16)
    return total


def remove(directory: str) -> None:
    """Removes the sorted tables."""
    shutil.rmtree(os.path.join(directory, FOLDER), ignore_errors=True)


def target_rows(table: Table) -> Optional[int]:
    """The rows of the target, None where they follow from the ids."""
    ids = table.ids
    if ids is None or ids.mode != "mpzch" or table.rows is not None:
        return table.rows
    size = -(-int(ids.stored * _MORE) // ids.buckets)
    return max(size, 1) * ids.buckets


def _sort(folder: str, stem: str, table: Table, source: HashTable, workers: int) -> SortedTable:
    done = os.path.join(folder, stem + ".done")
    stems = {name: f"{stem}-{number}" for number, name in enumerate(table.written_slots)}
    known = _known(done)
    if known is not None:
        columns, newest = tuple(known.pop("columns")), known.pop("newest")
        return SortedTable(stem, stems, Merged(**known), columns, newest)
    assert table.ids is not None
    target = _target(table, table.ids)
    places_of = _places(target)
    where = f"hash table {table.variable!r}"
    partitions = [part.place for part in source.parts]
    with one_thread_a_sort():
        runs = write_runs(source, places_of, folder, stem, workers)
        slots = {
            name: write_runs(source.slots[table.slots[name]], places_of, folder, slot, workers)
            for name, slot in stems.items()
        }
        merged = merge(runs, slots, target, table.ids.duplicates == "newest", where, partitions)
    if merged.rows < merged.ids + target.spare:
        raise BadInput(
            f"{where} has {merged.ids} ids, more than the plan's {merged.rows} rows "
            f"(of which {target.spare} stays free); give it more, or leave `rows` out"
        )
    if table.ids.mode == "mch":
        _write_segments(folder, stem, merged.rows)
    described = {"boot": _boot(), "columns": runs.columns, "newest": runs.newest}
    # Last: a table without this file is sorted again.
    write_whole(done, json.dumps({**dataclasses.asdict(merged), **described}))
    return SortedTable(stem, stems, merged, runs.columns, runs.newest)


def _known(done: str) -> Optional[Dict[str, Any]]:
    """The result in the file `done` of a sorted table; None where it has to be sorted (again)."""
    if not os.path.exists(done):
        return None
    known: Dict[str, Any] = json_text.read(done)
    return known if known.pop("boot") == _boot() else None


def _target(table: Table, ids: IdMapping) -> Target:
    mode = MODES[ids.mode]
    return Target(
        rows=target_rows(table),
        spare=mode.spare,
        buckets=ids.buckets if ids.mode == "mpzch" else 0,
        reserved=mode.reserved,
        owner=mode.owner,
    )


def _places(target: Target) -> Places:
    """The sort key of a run's rows."""
    if not target.buckets:
        return lambda ids: ids
    rows, buckets = target.rows, target.buckets
    assert rows is not None
    return lambda ids: places(ids, rows, buckets)


def _write_segments(folder: str, stem: str, rows: int) -> None:
    """The buffer by which TorchRec shards the module: here one segment, and -1 for no more."""
    # 1,024 shards at most, and the end of the last one (mc_modules.py).
    segments = numpy.full(1025, -1)
    segments[:2] = 0, rows
    with open(os.path.join(folder, f"{stem}-segments.ends"), "wb") as file:
        file.write(segments.data)
    describe(folder, f"{stem}-segments", {"ends": ("int64", [])})


def _boot() -> str:
    """A value that changes when the machine is restarted."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
