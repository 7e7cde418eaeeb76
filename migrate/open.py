"""Finding the hash tables of any format behind one path."""

from __future__ import annotations

import os
from typing import Dict, Mapping, Optional, Union

from migrate.checkpoint.bundle import Checkpoint, open_checkpoint
from migrate.checkpoint.directory import is_directory_of_checkpoints
from migrate.graph.find import find_graph
from migrate.graph.sentinels import find_sentinels
from migrate.hash_tables.increment import Overlaid
from migrate.hash_tables.model import HashTable
from migrate.hash_tables.monolith import monolith_tables
from migrate.hash_tables.raw_tables import raw_tables
from migrate.hash_tables.tensor_part import Sentinels
from migrate.hash_tables.tensor_tables import stored_tables, tensor_tables
from migrate.hash_tables.unread import refuse_unread
from migrate.storage.files import size_of
from semisync.common.errors import BadInput


def hash_tables(
    source: Union[str, os.PathLike, Checkpoint],
    meta: Optional[str] = None,
    sentinels: Optional[Mapping[str, Sentinels]] = None,
    newer: Union[str, os.PathLike, Checkpoint, None] = None,
    key_dtype: str = "int64",
    dtype: str = "float32",
) -> Dict[str, HashTable]:
    """The hash tables of `source` by name.

    source: an open checkpoint or its prefix (contrib.lookup, DeepRec, TFRA), a directory of raw
    files (TFRA's FileSystemSaver, HugeCTR, SOK), or the path of Monolith's dumps: their directory
    or what stands before `-00000-of-0000N`.
    meta: the MetaGraph, which has the sentinels of MutableDenseHashTables; without it
    migrate.graph.find looks for one. sentinels: the same by hand, by the table's name; they win.
    newer: a DeepRec incremental checkpoint to put on top, where `source` was not opened with it.
    key_dtype, dtype: of TFRA's raw files.
    Raises BadInput for damaged, incomplete or unknown files.
    """
    if not isinstance(source, Checkpoint) or not source:
        path = source.prefix if isinstance(source, Checkpoint) else source
        found = other_tables(path, key_dtype, dtype)
        if found is not None:
            return found
    if not isinstance(source, Checkpoint):
        source = open_checkpoint(os.fspath(source))
    if newer is not None and not isinstance(newer, Checkpoint):
        newer = open_checkpoint(os.fspath(newer))
    if newer is None and isinstance(source, Overlaid):
        newer = source.newer
    stored = stored_tables(source)
    graph = find_graph(source, meta) if stored else None
    known = {} if graph is None else find_sentinels(graph)
    known.update(sentinels or {})
    strange = sorted(set(known) - set(stored))
    if strange and sentinels:
        raise BadInput(f"{source.prefix} has no hash table {strange[0]!r} to give sentinels for")
    return tensor_tables(source, known, newer)


def other_tables(
    source: Union[str, os.PathLike], key_dtype: str = "int64", dtype: str = "float32"
) -> Optional[Dict[str, HashTable]]:
    """The hash tables of files that are no checkpoint; None where `source` is none of these."""
    path = os.fspath(source)
    if is_directory_of_checkpoints(path):
        return None  # whose files may be named alike
    found = raw_tables(path, key_dtype, dtype) if os.path.isdir(path) else None
    if found is None and size_of(path + ".index") is None:
        found = monolith_tables(path)
    if found is None and os.path.isdir(path):
        refuse_unread(path)
    return found
