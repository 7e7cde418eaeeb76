"""Opening TensorFlow's files: checkpoints of every format, and hash tables of every writer.

A new format of checkpoints is one module in migrate/checkpoint and one line of `_CHECKPOINTS`; the
readers of hash tables are in migrate/hash_tables/readers.py.
"""

from __future__ import annotations

import os
from typing import Callable, Dict, Mapping, Optional, Tuple, Union

from graph_rewrite.graph.ops import VARIABLES
from migrate.checkpoint import bundle, v1
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.overlay import Overlaid
from migrate.checkpoint.paths import checkpoint_prefix, refuse_absent, saved_model_prefix, v1_tables
from migrate.graph.constants import constant_integer, constant_strings
from migrate.graph.find import find_graph
from migrate.graph.lookups import saved_tables
from migrate.graph.metagraph import Graph, Node, read_graph
from migrate.hash_tables.files import Types
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.lookup import Key, Sentinels
from migrate.hash_tables.readers import tables_in_checkpoint, tables_in_files
from migrate.hash_tables.tensors import stored_tables
from semisync.common.errors import BadInput
from semisync.storage.remote import is_remote

_DENSE = {"MutableDenseHashTable", "MutableDenseHashTableV2"}

# From a prefix, and whether to check the crc32c of data; the first that finds its format opens it.
_CHECKPOINTS: Tuple[Callable[[str, bool], Optional[Checkpoint]], ...] = (
    bundle.open_bundle,
    v1.open_v1,
    bundle.open_saved_model,
)


def open_checkpoint(
    prefix: Union[str, os.PathLike],
    checksums: bool = True,
    newer: Union[str, os.PathLike, None] = None,
) -> Checkpoint:
    """Opens the checkpoint whose files are `prefix`.index and `prefix`.data-*.

    Files of hash tables alone (Monolith, TFRA, HugeCTR, SOK) are a checkpoint without tensors:
    `migrate.open_hash_tables` lists the tables there.

    Args:
        prefix: as above, or that of a V1 checkpoint, the directory of a SavedModel, or a directory
            whose file `checkpoint` names one. It may be a URL that fsspec serves (s3://, gs://,
            hdfs://), except for V1.
        checksums: False reads data without checking its crc32c, for what was verified before; the
            index is always checked.
        newer: prefix of a DeepRec incremental checkpoint of a later step, to be laid over it.

    Returns:
        A `Checkpoint`.

    Raises:
        BadInput: there is no checkpoint, it is damaged or of another format, or `newer` is not an
            increment of it.

    Examples:
        >>> with migrate.open_checkpoint("model.ckpt-40000") as checkpoint:
        ...     print(sorted(name for name in checkpoint if "/" not in name))
        ['cities', 'global_step', 'kernel', 'products']
    """
    full = _open(prefix, checksums)
    if newer is None:
        return full
    return Overlaid(full, _open(newer, checksums), stored_tables(full))


def _open(path: Union[str, os.PathLike], checksums: bool) -> Checkpoint:
    prefix = checkpoint_prefix(os.fspath(path))
    prefix = prefix if is_remote(prefix) else os.path.abspath(prefix)
    for read in _CHECKPOINTS:
        checkpoint = read(prefix, checksums)
        if checkpoint is not None:
            return checkpoint
    if is_remote(prefix) or tables_in_files(prefix) is None:
        refuse_absent(prefix)
    return bundle.without_tensors(prefix)


def open_model(path: Union[str, os.PathLike]) -> Checkpoint:
    """As `open_checkpoint`, or without tensors and with a frozen graph's file as the prefix."""
    frozen = frozen_graph(path)
    return open_checkpoint(path) if frozen is None else bundle.without_tensors(frozen)


def frozen_graph(path: Union[str, os.PathLike]) -> Optional[str]:
    """The file of a frozen graph, a GraphDef or SavedModel; None if `path` names no graph.

    Raises:
        BadInput: a graph that has variables, whose values are then missing.
    """
    path = os.fspath(path)
    if path.endswith((".index", ".meta")) or v1_tables(path) or saved_model_prefix(path):
        return None
    files = (os.path.join(path, "saved_model.pb"), path)
    file = next((os.path.abspath(file) for file in files if os.path.isfile(file)), None)
    if file is None:
        return None
    for node in read_graph(file).nodes.values():
        if node.op in VARIABLES:
            raise BadInput(
                f"{file} has variables, such as {node.name!r}, but not their values; give the "
                "checkpoint that has them, and this file with --meta"
            )
    return file


def open_hash_tables(
    source: Union[str, os.PathLike, Checkpoint],
    meta: Optional[str] = None,
    sentinels: Optional[Mapping[str, Sentinels]] = None,
    newer: Union[str, os.PathLike, Checkpoint, None] = None,
    key_dtype: str = "int64",
    dtype: str = "float32",
) -> Dict[str, HashTable]:
    """The hash tables of `source` by name.

    Args:
        source: an open checkpoint or its prefix (contrib.lookup, DeepRec, TFRA), a directory of raw
            files (TFRA's FileSystemSaver, HugeCTR, SOK), or the path of Monolith's dumps: their
            directory or what stands before `-00000-of-0000N`.
        meta: the MetaGraph, which has the sentinels of MutableDenseHashTables; without it
            `migrate.graph.find` looks for one.
        sentinels: sentinels by the table's name, which take precedence over the MetaGraph's.
        newer: a DeepRec incremental checkpoint to lay over it, unless `source` was opened with it.
        key_dtype, dtype: of TFRA's raw files.

    Returns:
        {name: `HashTable`}.

    Raises:
        BadInput: files are damaged, incomplete or unknown.

    Examples:
        >>> for chunk in migrate.open_hash_tables("users.model")["users.model"].chunks(2):
        ...     print(chunk.keys.tolist(), chunk.values.shape)
        [1099511627776, -7] (2, 2)
        [12] (1, 2)
    """
    # One without tensors stands for a path of hash tables in files (`without_tensors`).
    if not isinstance(source, Checkpoint) or not source:
        path = source.prefix if isinstance(source, Checkpoint) else source
        tables = tables_in_files(os.fspath(path), Types(key_dtype, dtype))
        if tables is not None:
            return tables
    if not isinstance(source, Checkpoint):
        source = open_checkpoint(os.fspath(source))
    if newer is not None and not isinstance(newer, Checkpoint):
        newer = open_checkpoint(os.fspath(newer))
    if newer is None:
        newer = source.newer
    stored = stored_tables(source)
    graph = find_graph(source, meta) if stored else None
    known = {} if graph is None else _find_sentinels(graph)
    known.update(sentinels or {})
    strange = sorted(set(known) - set(stored))
    if strange and sentinels:
        raise BadInput(f"{source.prefix} has no hash table {strange[0]!r} to give sentinels for")
    return tables_in_checkpoint(source, known, newer)


def _find_sentinels(graph: Graph) -> Dict[str, Sentinels]:
    """The sentinels by the name of the table, that is the name of its keys without `-keys`.

    A Saver stores such a table through LookupTableExport; the table's own node takes its empty_key
    and deleted_key as constants.
    """
    return {
        name: _sentinels(graph, table) for table, name in saved_tables(graph) if table.op in _DENSE
    }


def _sentinels(graph: Graph, table: Node) -> Sentinels:
    keys = [_constant(graph, node) for node, _ in table.inputs[:2]]
    if not keys or keys[0] is None:
        raise BadInput(f"{graph.path}: the empty_key of table {table.name!r} is not a constant")
    if len(keys) == 2 and keys[1] is None:
        raise BadInput(f"{graph.path}: the deleted_key of table {table.name!r} is not a constant")
    return Sentinels(keys[0], keys[1] if len(keys) == 2 else None)


def _constant(graph: Graph, name: str) -> Optional[Key]:
    text = constant_strings(graph, name, 1)
    return text[0].encode() if text else constant_integer(graph, name)
