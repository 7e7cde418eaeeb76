"""The files of a Delta table: those that its log has added and not removed since.

The folder keeps the files of earlier versions, so reading all of it would count rows twice and
bring deleted ones back. The log has one commit per version, JSON lines of actions, and now and then
a checkpoint, Parquet files or a JSON file of all that still holds (the Delta transaction log
protocol, "Delta Log Entries" and "Checkpoints").
"""

import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple
from urllib.parse import unquote

from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.common.sentences import words_of
from semisync.storage import folders
from semisync.storage.sources import opened
from semisync.storage.unfolding import refuse_row_groups

LOG = "_delta_log"

_HUDI_LOG = ".hoodie"

_COMMIT = re.compile(r"(\d{20})\.json")  # of a version
_CHECKPOINT = re.compile(  # of a version: a part of many, or whole; V2 have a UUID
    r"(\d{20})\.checkpoint"
    r"(?:(?:\.\d{10}\.(\d{10}))?\.parquet|\.[0-9a-f-]{36}\.(?:json|parquet))"
)
_SIDECARS = "_sidecars"
_OF_FILES = ("add", "remove")


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
    live: Dict[Tuple[Any, ...], bool] = {}  # the keys are what counts: a set that keeps its order
    try:
        for action in _actions(log):
            if action.get("add"):
                live[_identity(action["add"])] = True
            if action.get("remove"):
                live.pop(_identity(action["remove"]), None)
        paths = [_checked(table, *identity) for identity in live]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise BadInput(
            f"{log} cannot be read, it may be cut short or corrupt: {words_of(error)}"
        ) from error
    return [folders.joined(table, os.path.normpath(unquote(path))) for path in paths]


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
    """The actions of the last whole checkpoint, if there is one, and of the commits after it."""
    commits: Dict[int, str] = {}
    checkpoints: Dict[Tuple[int, int], List[str]] = {}  # by version and number of parts
    for name in folders.names_in(log):
        commit, checkpoint = _COMMIT.fullmatch(name), _CHECKPOINT.fullmatch(name)
        if commit:
            commits[int(commit[1])] = name
        if checkpoint:
            of = int(checkpoint[1]), int(checkpoint[2] or 1)
            checkpoints.setdefault(of, []).append(name)
    # A writer may fail before the last part: "readers must only use a complete checkpoint".
    whole = [(number, parts) for (number, parts), n in checkpoints.items() if len(n) >= parts]
    version, parts = max(whole, default=(-1, 0))  # without one the commits start at version 0
    # Any of several whole ones: a table may have a classic and V2 checkpoints of a version.
    for name in checkpoints.get((version, parts), ())[:parts]:
        yield from _of_checkpoint(log, name)
    later = sorted(number for number in commits if number > version)
    # A checkpoint's version was committed, though parts of it may be missing.
    last = max([*commits, *(number for number, _ in checkpoints)], default=-1)
    if last < 0 or len(later) != last - version:
        raise BadInput(
            f"{log} lacks commits: {version + 1:020d}.json and those after it are expected without "
            "a gap; copy the whole log"
        )
    for number in later:
        yield from _of_lines(folders.joined(log, commits[number]))


def _of_lines(path: str) -> List[Dict[str, Any]]:
    with opened(path) as source:
        return [json_text.loads(line) for line in source.read().splitlines()]


def _of_checkpoint(
    folder: str, name: str, kinds: Sequence[str] = (*_OF_FILES, "sidecar")
) -> Iterator[Dict[str, Any]]:
    """A checkpoint's actions on files, those in its sidecar files too (V2 checkpoints)."""
    import pyarrow.parquet

    if name.endswith(".json"):
        actions = _of_lines(folders.joined(folder, name))
    else:
        with opened(folders.joined(folder, name)) as source:
            file = pyarrow.parquet.ParquetFile(source)
            held = file.schema_arrow.names
            wanted = [kind for kind in kinds if kind in held]
            refuse_row_groups(source, file.metadata, name, wanted)
            actions = file.read(columns=wanted).to_pylist()
    yield from actions
    for action in actions:
        if action.get("sidecar"):
            sidecar = os.path.basename(unquote(action["sidecar"]["path"]))
            yield from _of_checkpoint(folders.joined(folder, _SIDECARS), sidecar, _OF_FILES)


def _identity(file: Dict[str, Any]) -> Tuple[Any, ...]:
    """What tells one file of the table from another: its path and deletion vector.

    A commit may add a path with a new vector and remove it with the old one, in any order (the
    protocol, "Add File and Remove File").
    """
    vector = file.get("deletionVector") or {}
    return (file["path"], *map(vector.get, ("storageType", "pathOrInlineDv", "offset")))


def _checked(table: str, path: str, *vector: Any) -> str:
    if any(part is not None for part in vector):
        raise BadInput(
            f"{table} is a Delta table with rows marked as deleted in {path} (deletion vectors), "
            "which are not read; run REORG TABLE ... APPLY (PURGE), or rewrite the rows"
        )
    if path.startswith("/") or ":" in path.split("/")[0]:
        raise BadInput(f"{table} is a Delta table with files elsewhere ({path}); copy them into it")
    return path
