"""The files of a Delta table: those that its log has added and not removed since.

The folder keeps the files of earlier versions, so reading all of it would count rows twice and
bring deleted ones back. The log has one commit per version, JSON lines of actions, and now and then
a checkpoint, a Parquet file of all that still holds (the Delta transaction log protocol, "Delta Log
Entries" and "Checkpoints").
"""

import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set
from urllib.parse import unquote

from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.sentences import words_of
from semisync.storage import folders
from semisync.storage.sources import opened
from semisync.storage.unfolding import refuse_row_groups

LOG = "_delta_log"

_HUDI_LOG = ".hoodie"

_DIGITS = 20  # of a version in a name
_COMMIT = re.compile(rf"\d{{{_DIGITS}}}\.json")
_CHECKPOINT = re.compile(rf"\d{{{_DIGITS}}}\.checkpoint(\.\d{{10}}\.\d{{10}})?\.parquet")


def live_files(table: str) -> List[str]:
    """The data files of the table's last version.

    Args:
        table: the folder that holds the log.

    Raises:
        BadInput: a log with gaps or damage, or a table of which this reads too much or too little:
            rows marked as deleted, files elsewhere.
    """
    import pyarrow as pa  # when there is a log: --help needs none

    log = folders.joined(table, LOG)
    live: Dict[str, bool] = {}  # the keys are what counts: a set that keeps its order
    try:
        for action in _actions(log):
            if action.get("add"):
                live[_checked(table, action["add"])] = True
            if action.get("remove"):
                live.pop(action["remove"]["path"], None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise BadInput(
            f"{log} cannot be read, it may be cut short or corrupt: {words_of(error)}"
        ) from error
    return [folders.joined(table, os.path.normpath(unquote(path))) for path in live]


def in_last_version(files: Iterable[str], whole: Optional[str] = None) -> List[str]:
    """The files that are in no table, or in the last version of theirs.

    Args:
        whole: the folder that these are all files of; it must have every live one.

    Raises:
        BadInput: as `live_files`, or a file of a Hudi table, whose log is not read.
    """
    live: Dict[str, Set[str]] = {}
    tables: Dict[str, Optional[str]] = {}  # by folder
    kept, seen = [], set()
    for file in files:
        place = folders.absolute(file)
        table = _table_of(folders.above(place), tables)
        if table is not None and table not in live:
            live[table] = set(live_files(table))
        if table is None or place in live[table]:
            kept.append(file)
            seen.add(place)
    if whole is not None:
        _refuse_missing(folders.absolute(whole), seen, live, tables)
    return kept


def _refuse_missing(
    folder: str, seen: Set[str], live: Dict[str, Set[str]], tables: Dict[str, Optional[str]]
) -> None:
    table = _table_of(folder, tables)
    if table is not None and table not in live:  # it has no file here
        live[table] = set(live_files(table))
    for table, files in live.items():
        missing = sorted(file for file in files - seen if file.startswith(folder + "/"))
        if missing:
            raise BadInput(
                f"{missing[0]} does not exist, but is part of the last version of the Delta table "
                f"{table}; copy the whole table"
            )


def _table_of(folder: Optional[str], tables: Dict[str, Optional[str]]) -> Optional[str]:
    """The nearest folder, this one or one above it, that has a log; `tables` caches the answers."""
    if folder is None:
        return None
    if folder not in tables:
        if folders.is_folder(folders.joined(folder, LOG)):
            tables[folder] = folder
        elif folders.is_folder(folders.joined(folder, _HUDI_LOG)):
            raise BadInput(
                f"{folder} is a Hudi table, whose folder may hold rows that are deleted or "
                "replaced; write the version that you mean to a folder of its own, or name its "
                "files"
            )
        else:
            tables[folder] = _table_of(folders.above(folder), tables)
    return tables[folder]


def _actions(log: str) -> Iterator[Dict[str, Any]]:
    """The actions of the last checkpoint, if there is one, and of the commits after it."""
    import pyarrow.parquet

    names = folders.names_in(log)
    commits: Dict[int, str] = {}
    checkpoints: Dict[int, List[str]] = {}
    for name in names:
        if _COMMIT.fullmatch(name):
            commits[int(name[:_DIGITS])] = name
        if _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault(int(name[:_DIGITS]), []).append(name)
    version = max(checkpoints, default=-1)
    for name in checkpoints.get(version, ()):
        with opened(folders.joined(log, name)) as source:
            file = pyarrow.parquet.ParquetFile(source)
            wanted = [column for column in ("add", "remove") if column in file.schema_arrow.names]
            refuse_row_groups(source, file.metadata, name, wanted)
            yield from file.read(columns=wanted).to_pylist()
    # Without a checkpoint the commits start at version 0.
    later = sorted(number for number in commits if number > version)
    if later != list(range(version + 1, version + 1 + len(later))) or version < 0 and not later:
        raise BadInput(
            f"{log} lacks commits: {version + 1:020d}.json and those after it are expected without "
            "a gap; copy the whole log"
        )
    for number in later:
        with opened(folders.joined(log, commits[number])) as source:
            yield from map(json_text.loads, source.read().splitlines())


def _checked(table: str, add: Dict[str, Any]) -> str:
    path: str = add["path"]
    if add.get("deletionVector"):
        raise BadInput(
            f"{table} is a Delta table with rows marked as deleted in {path} (deletion vectors), "
            "which are not read; run REORG TABLE ... APPLY (PURGE), or rewrite the rows"
        )
    if path.startswith("/") or ":" in path.split("/")[0]:
        raise BadInput(f"{table} is a Delta table with files elsewhere ({path}); copy them into it")
    return path
