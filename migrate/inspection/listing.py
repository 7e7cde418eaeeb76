"""A checkpoint's contents as plain data: its tensors, and statistics of their rows.

1. The listing comes from the index. `migrate.graph.training` finds which tensors are slots, and of
   which variables.
2. Reading the data gives the rows' statistics, and verifies: every tensor is read to its end once,
   with the statistics or without, so that no corrupt or missing piece goes unseen.
"""

from __future__ import annotations

from typing import Any, Container, Dict, List, NamedTuple, Optional, Set

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.objects import KEY
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.graph.find import find_meta_graph
from migrate.graph.training import Training, find_training
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.tensors import TensorPart, stored_tables
from migrate.inspection import row_statistics
from migrate.open import open_hash_tables
from migrate.optimizers.slots import initial_value
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BY_NAME
from semisync.storage.files import size_of

SCHEMA = "semisync.inspect/1"


def describe(
    checkpoint: Checkpoint, values: bool = True, meta: Optional[str] = None
) -> Dict[str, Any]:
    """The listing as plain data; the size of a data file is None where it is missing.

    Args:
        values: read the data too; "variables" and "hash_tables" are None where it was not, and
            "verified" says whether it was.
        meta: path of the MetaGraph; without it migrate.graph.find looks for one.

    Raises:
        BadInput: the MetaGraph is another model's, or data that is to be read is missing or
            corrupt.
    """
    report = empty(checkpoint.prefix)
    if checkpoint.newer is not None:
        report["newer"] = checkpoint.newer.prefix
    report["shards"] = [{"path": path, "bytes": size_of(path)} for path in checkpoint.shard_paths()]
    report["bytes"] = sum(info.nbytes for info in checkpoint.values())
    missing = [shard["path"] for shard in report["shards"] if shard["bytes"] is None]
    if values and missing:
        raise BadInput(
            f"{missing[0]} does not exist, so that the data cannot be read; put it there, or give "
            "--index for the listing alone"
        )
    training = None
    if not missing or KEY not in checkpoint:  # else the object graph is missing too
        graph = find_meta_graph(checkpoint, meta)
        training = find_training(checkpoint, graph, conflicts=True)
        report["notes"] = training.notes()
    slots = None if training is None else training.slot_tensors()
    kinds = {name: _kind(name, info, slots) for name, info in checkpoint.items()}
    report["tensors"] = [_tensor(name, info, kinds[name]) for name, info in checkpoint.items()]
    if values and training is not None:
        _read(checkpoint, training, kinds, meta, report)
    return report


def empty(prefix: str) -> Dict[str, Any]:
    """A listing that has no contents yet."""
    return {
        "schema": SCHEMA,
        "prefix": prefix,
        "newer": None,
        "tensors": [],
        "bytes": 0,
        "shards": [],
        "verified": False,
        "variables": None,
        "hash_tables": None,
        "notes": [],
    }


class _Read(NamedTuple):
    """A checkpoint's listing, and the tensors that were read to their ends for it."""

    data: Dict[str, Any]
    tensors: Set[str]


def describe_tables(tables: Dict[str, HashTable], values: bool) -> List[Dict[str, Any]]:
    """An entry for each table; "unread" says why its rows were not read."""
    return [_table(name, table, values).data for name, table in tables.items()]


def _tensor(name: str, info: TensorInfo, kind: str) -> Dict[str, Any]:
    return {
        "name": name,
        "dtype": info.dtype,
        "shape": list(info.shape),
        "slices": [{"start": list(s.start), "shape": list(s.shape)} for s in info.slices],
        "kind": kind,
        "bytes": info.nbytes,
    }


def _kind(name: str, info: TensorInfo, slots: Optional[Container[str]]) -> str:
    """The kind by TensorInfo, except that slots are those in `slots`, where these are known."""
    if slots is None:
        return info.kind
    if name in slots:
        return "slot"
    return "variable" if info.kind == "slot" else info.kind


def _read(
    checkpoint: Checkpoint,
    training: Training,
    kinds: Dict[str, str],
    meta: Optional[str],
    report: Dict[str, Any],
) -> None:
    # Their rows are described with their tables.
    hashed = {name + "-values" for name in stored_tables(checkpoint)}
    variables = [
        _variable(checkpoint, name, training)
        for name, info in checkpoint.items()
        if kinds[name] == "variable" and BY_NAME[info.dtype].is_floating and name not in hashed
    ]
    tables = [
        _table(name, table, True) for name, table in open_hash_tables(checkpoint, meta).items()
    ]
    done = {name for read in [*variables, *tables] for name in read.tensors}
    for name, info in checkpoint.items():
        if BY_NAME[info.dtype].array is None and info.dtype != "string":
            report["notes"].append(f"{name} is of type {info.dtype}, which has no reader: not read")
        elif name not in done:
            checkpoint.verify(name)
    report["variables"] = [read.data for read in variables]
    report["hash_tables"] = [read.data for read in tables]
    report["verified"] = True


def _variable(checkpoint: Checkpoint, name: str, training: Training) -> _Read:
    objects = checkpoint.objects().slots
    slots = training.slots.get(name)
    sources = {} if slots is None else slots.sources
    optimizer = "" if slots is None else slots.optimizer
    begins = {source: initial_value(optimizer, k) for k, source in sources.items()}
    told = {source: value for source, value in begins.items() if value is not None}
    labels = [
        objects[source].name if source in objects else source.rpartition("/")[2]
        for source in sources.values()
    ]
    statistics = row_statistics.of_variable(checkpoint, name, told)
    data = {"name": name, "slots": sorted(labels), **row_statistics.described(statistics)}
    # Slots without a known initial value were not read: they are verified like the rest.
    return _Read(data, {name, *told})


def _table(name: str, table: HashTable, values: bool) -> _Read:
    entry: Dict[str, Any] = {"name": name, "kind": table.kind, "slots": sorted(table.slots)}
    entry.update(key_dtype=table.key_dtype, dtype=table.dtype, parts=len(table.parts))
    entry.update(stored=table.stored, value_shape=list(table.value_shape), unread=None)
    if not values or not BY_NAME[table.dtype].is_floating:
        return _Read(entry, set())
    try:
        entry.update(row_statistics.described(row_statistics.of_table(table)))
    except BadInput as error:
        if table.kind != "MutableDenseHashTable":
            raise
        entry["unread"] = str(error)
        return _Read(entry, set())
    parts = [part.columns for part in table.parts if isinstance(part, TensorPart)]
    return _Read(entry, {columns.values for columns in parts if columns.values is not None})
