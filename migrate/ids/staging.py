"""The hash tables of a plan, sorted and merged in the directory of the conversion.

    DIRECTORY/ids/plan.json       what is staged: written first
    DIRECTORY/ids/0.ids, ...      columns of the tables, see migrate.ids.runs
    DIRECTORY/ids/0-map.rows, ... maps, see migrate.ids.merging
    DIRECTORY/ids/0.done          a table that is staged as a whole, and what became of it

A conversion that resumes takes a table that is there as a whole, if the machine has not been
started anew since: these files are never synced, so that they are only as good as its memory.
The bytes that they take are those of the tables and 16 for each row of the target.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy

from migrate.hash_tables.model import HashTable
from migrate.ids.hashing import places
from migrate.ids.merging import Merged, merge
from migrate.ids.placing import Target
from migrate.ids.runs import Places, write_runs
from migrate.manifest.modes import MODES
from migrate.planning.model import HashedTable
from migrate.stream.columns import describe
from migrate.stream.sorting import one_thread_a_sort
from migrate.targets.staging import begin, write_whole
from semisync.common.errors import BadInput

FOLDER = "ids"
_PLAN = "plan.json"
_LAYOUT = 2  # of the files: another version of the program does not take them for its own
_MORE = 1.25  # rows of a table by hash, times its ids, unless the plan says otherwise


class StagedTable(NamedTuple):
    """A table of the plan: stem of its columns, stems of its slots' by torch's name, what became
    of it, and the columns that it has."""

    stem: str
    slots: Dict[str, str]
    merged: Merged
    columns: Tuple[str, ...]
    newest: int


def stage(
    directory: str,
    tables: List[HashedTable],
    sources: Dict[str, HashTable],
    files: List[List[object]],
    workers: int,
) -> List[StagedTable]:
    """Stages `tables` in `directory`. files: what tells whether the source is still the same.
    workers: threads that sort.

    Raises BadInput where a table is damaged or has an id twice, UsageError where another plan or
    source was staged here before.
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
        _stage(folder, str(number), table, sources[table.table], workers)
        for number, table in enumerate(tables)
    ]


def room(tables: List[HashedTable], sources: Dict[str, HashTable]) -> int:
    """Bytes that the staged tables and what is written of them need at most, about."""
    total = 0
    for table in tables:
        for one in (sources[table.table], *sources[table.table].slots.values()):
            row = math.prod(one.value_shape) * 4 + 8
            total += one.stored * row + max(one.stored, target_rows(table) or 0) * (row + 16)
    return total


def remove(directory: str) -> None:
    """Takes the staged tables away."""
    shutil.rmtree(os.path.join(directory, FOLDER), ignore_errors=True)


def target_rows(table: HashedTable) -> Optional[int]:
    """The rows of the target, None where they follow from the ids."""
    if table.ids != "mpzch" or table.rows is not None:
        return table.rows
    size = -(-int(table.stored * _MORE) // table.buckets)
    return max(size, 1) * table.buckets


def _stage(
    folder: str, stem: str, table: HashedTable, source: HashTable, workers: int
) -> StagedTable:
    done = os.path.join(folder, stem + ".done")
    stems = {name: f"{stem}-{number}" for number, name in enumerate(table.written_slots)}
    if os.path.exists(done):
        with open(done, encoding="utf-8") as file:
            found = json.load(file)
        if found.pop("boot") == _boot():
            columns = tuple(found.pop("columns"))
            newest = found.pop("newest")
            return StagedTable(stem, stems, Merged(**found), columns, newest)
    target = _target(table)
    places_of = _places(target)
    where = f"hash table {table.table!r}"
    partitions = [part.place for part in source.parts]
    with one_thread_a_sort():
        runs = write_runs(source, places_of, folder, stem, workers)
        slots = {
            name: write_runs(source.slots[table.slots[name]], places_of, folder, slot, workers)
            for name, slot in stems.items()
        }
        merged = merge(runs, slots, target, table.duplicates == "newest", where, partitions)
    if merged.rows < merged.ids + target.spare:
        raise BadInput(
            f"{where} has {merged.ids} ids, more than the plan's {merged.rows} rows "
            f"(of which {target.spare} stays free); give it more, or leave `rows` out"
        )
    if table.ids == "mch":
        _write_segments(folder, stem, merged.rows)
    staged = StagedTable(stem, stems, merged, runs.columns, runs.newest)
    known = {"boot": _boot(), "columns": runs.columns, "newest": runs.newest}
    write_whole(done, json.dumps({**dataclasses.asdict(merged), **known}))
    return staged


def _target(table: HashedTable) -> Target:
    mode = MODES[table.ids]
    buckets = table.buckets if table.ids == "mpzch" else 0
    return Target(target_rows(table), mode.spare, buckets, mode.reserved, mode.owner)


def _places(target: Target) -> Places:
    """What the rows of a run are sorted by."""
    if not target.buckets:
        return lambda ids: ids
    rows, buckets = target.rows, target.buckets
    assert rows is not None
    return lambda ids: places(ids, rows, buckets)


def _write_segments(folder: str, stem: str, rows: int) -> None:
    """The buffer by which TorchRec shards the module: here one segment, and -1 for no more."""
    segments = numpy.full(1025, -1)
    segments[:2] = 0, rows
    with open(os.path.join(folder, f"{stem}-segments.ends"), "wb") as file:
        file.write(segments.data)
    describe(folder, f"{stem}-segments", {"ends": ("int64", [])})


def _boot() -> str:
    """What changes when the machine is started anew."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
