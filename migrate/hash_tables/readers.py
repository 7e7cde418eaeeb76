"""Finds the reader of each hash table, by the system that wrote it.

A new writer of tables in a checkpoint is one module and one branch of `_read`; a new writer of
files is one module and one line of `_FILES`.
"""

from __future__ import annotations

import glob
import os
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.paths import is_directory_of_checkpoints, v1_tables
from migrate.hash_tables import deeprec, hugectr, lookup, monolith, servers, tfra
from migrate.hash_tables.files import ASSUMED, Types
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.lookup import Sentinels
from migrate.hash_tables.table_slots import with_slots
from migrate.hash_tables.tensors import Stem, stem_of, stored_tables, where_is
from semisync.common.errors import BadInput

_DUMPS = {
    "PERSIA": ("replica_*_shard_*.emb", "s*/replica_*_shard_*.emb"),
    "XDL": ("*^[0-9]", "*^[0-9][0-9]", "*^[0-9][0-9][0-9]"),
}


def _refuse_dumps(path: str, types: Types) -> None:
    """Raises BadInput if the directory `path` holds a dump that has no reader.

    Only the code of one version describes these:

        PERSIA   s0/replica_0_shard_0.emb   linked lists of entries, as Rust's crate speedy has them
        XDL      <table>^0                  slicer, hash items and tensors of a part of a table
    """
    for server, patterns in _DUMPS.items():
        for pattern in patterns if os.path.isdir(path) else ():
            files = sorted(glob.glob(os.path.join(glob.escape(path), pattern)))
            if files:
                raise BadInput(
                    f"{files[0]} looks like a dump of {server}'s servers, whose layout is not "
                    "documented and cannot be read; give a plug-in that reads it with --plugin "
                    "(docs/servers.md), or load it there and save its ids and rows as tensors "
                    "NAME-keys and NAME-values of a TensorFlow checkpoint"
                )


# Each returns the tables at a path by name, None where they are not its own; the first that finds
# its files answers, so that a team's plug-in comes first and refusals come last.
_FILES: Tuple[Callable[[str, Types], Optional[Dict[str, HashTable]]], ...] = (
    lambda path, types: servers.server_tables(path),
    hugectr.read_sok,
    hugectr.read_hugectr,
    tfra.read_files,
    monolith.read_dumps,
    _refuse_dumps,
)


def tables_in_files(path: str, types: Types = ASSUMED) -> Optional[Dict[str, HashTable]]:
    """The hash tables of files that are not a checkpoint, by name; None if `path` has none.

    Args:
        types: of files that do not say theirs.
    """
    if is_directory_of_checkpoints(path) or v1_tables(path):
        return None  # a checkpoint's own files may be named like those of hash tables
    for read in _FILES:
        tables = read(path, types)
        if tables is not None:
            return tables
    return None


def tables_in_checkpoint(
    checkpoint: Checkpoint,
    sentinels: Mapping[str, Sentinels],
    newer: Optional[Checkpoint] = None,
) -> Dict[str, HashTable]:
    """The hash tables in `checkpoint` by name; slots stand with their table.

    Args:
        sentinels: of MutableDenseHashTables, by the name before `-keys`.
        newer: a DeepRec incremental checkpoint of a later step, whose rows replace those of the
            same key.
    """
    stems: Dict[str, List[Stem]] = {}
    for name in stored_tables(checkpoint):
        stem = tfra.stem_of(name) or stem_of(name)
        stems.setdefault(stem.table, []).append(stem)
    tables = {
        table: _read(checkpoint, sorted(parts, key=lambda stem: stem.number), sentinels, newer)
        for table, parts in stems.items()
    }
    if newer is not None:
        deeprec.check_increment(tables.values(), newer)
    found = {**with_slots(tables), **tfra.tables_beside(checkpoint)}
    told = servers.server_tables(checkpoint.prefix) or {}
    for name in told.keys() & checkpoint.keys():
        raise BadInput(f"{checkpoint.prefix} has a tensor {name!r}, and a plug-in a table")
    return {**found, **told}


def _read(
    checkpoint: Checkpoint,
    stems: List[Stem],
    sentinels: Mapping[str, Sentinels],
    newer: Optional[Checkpoint],
) -> HashTable:
    first = stems[0]
    where = where_is(checkpoint, first.table)
    numbers = [stem.number for stem in stems]
    count = len(stems) if first.parts is None else first.parts
    if numbers != list(range(count)):
        raise BadInput(f"{where} has the parts {numbers} of {count}; one is missing")
    of_tfra = tfra.stem_of(first.name) is not None
    if not of_tfra and not deeprec.is_deeprec(checkpoint, first):
        return lookup.read_table(checkpoint, stems, sentinels)
    if any(stem.name in sentinels for stem in stems):
        raise BadInput(f"{where} is not of contrib.lookup: it has no sentinels")
    if of_tfra:
        return tfra.read_table(checkpoint, stems)
    return deeprec.read_table(checkpoint, stems, newer)
