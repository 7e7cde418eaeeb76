"""Hash tables that are tensors of a checkpoint: `X-keys` beside `X-values`.

    contrib.lookup     X-keys [N], X-values [N] or [N, D]; a MutableDenseHashTable stores all of its
                       buckets, keys [buckets] or [buckets, 1], free and erased ones too
    DeepRec            also X-versions, X-freqs ([0] where not kept), X-keys_filtered (with its
                       versions and freqs), X-partition_offset; partitions X/part_0, slots X/Adagrad
                       or X/part_0/Adagrad
    TFRA               scope/X_mht_1of2 and so on; slots scope/X_Adam_m_mht_1of2

DeepRec: embedding_var_ckpt_data.cc, incr_save_restore_ops.h. TFRA: dynamic_embedding_variable.py.
Read from their sources; DeepRec's files have not been seen here, TFRA's have.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Dict, List, Mapping, Optional, Tuple

import numpy

from migrate.checkpoint.bundle import Checkpoint
from migrate.hash_tables.model import HashTable
from migrate.hash_tables.slots import with_slots
from migrate.hash_tables.tensor_part import Columns, Sentinels, TensorPart
from migrate.storage.files import starting_with
from semisync.common.errors import BadInput

_PART = re.compile(r"^(.+)/part_(\d+)(/.+)?$")
_MHT = re.compile(r"^(.+)_mht_(\d+)of(\d+)$")
_INCREMENTAL = "-sparse_incr_keys"


def tensor_tables(
    checkpoint: Checkpoint,
    sentinels: Optional[Mapping[str, Sentinels]] = None,
    newer: Optional[Checkpoint] = None,
) -> Dict[str, HashTable]:
    """The hash tables in `checkpoint` by name; slots stand with their table.

    sentinels: of MutableDenseHashTables, by the name before `-keys`. newer: a DeepRec incremental
    checkpoint of a later step, whose rows replace those of the same key.
    """
    found: Dict[str, List[Tuple[int, str]]] = {}
    for name in stored_tables(checkpoint):
        table, part = _identity(name)
        found.setdefault(table, []).append((part, name))
    tables = {
        table: _table(checkpoint, table, sorted(parts), dict(sentinels or {}), newer)
        for table, parts in found.items()
    }
    if newer is not None:
        _check_newer(tables, newer)
    return with_slots(tables)


def stored_tables(checkpoint: Checkpoint) -> List[str]:
    """Names before `-keys` of the parts of all hash tables: where `-values` stands beside ids."""
    return [
        name[:-5]
        for name, info in checkpoint.items()
        if name.endswith("-keys")
        and name[:-5] + "-values" in checkpoint
        and info.dtype in ("int32", "int64", "string")
        and (len(info.shape) == 1 or info.shape[1:] == (1,))
    ]


def _identity(name: str) -> Tuple[str, int]:
    """Name of the table, and the number of its part from 0 on."""
    mht = _MHT.match(name)
    if mht:
        return mht[1], int(mht[2]) - 1
    part = _PART.match(name)
    return (part[1] + (part[3] or ""), int(part[2])) if part else (name, 0)


def _table(
    checkpoint: Checkpoint,
    table: str,
    parts: List[Tuple[int, str]],
    sentinels: Dict[str, Sentinels],
    newer: Optional[Checkpoint],
) -> HashTable:
    where = f"{checkpoint.prefix}: hash table {table!r}"
    first = parts[0][1]
    mht = _MHT.match(first)
    count = int(mht[3]) if mht else len(parts)
    if [number for number, _ in parts] != list(range(count)):
        raise BadInput(
            f"{where} has the parts {[number for number, _ in parts]} of {count}; one is missing"
        )
    deeprec = any(first + suffix in checkpoint for suffix in ("-versions", "-freqs"))
    dense = first in sentinels or len(checkpoint[first + "-keys"].shape) == 2
    kind = "MutableDenseHashTable" if dense else "MutableHashTable"
    kind = "TFRA" if mht else "DeepRec" if deeprec else kind
    if deeprec:
        _refuse_ssd(checkpoint, parts, where)
    rows, filtered = [], []
    for _, name in parts:
        later = _newer_part(newer, name) if deeprec else ()
        columns = _columns(checkpoint, name, "", where)
        rows += [*later, TensorPart(checkpoint, columns, sentinels.get(name), later)]
        if name + "-keys_filtered" in checkpoint:
            without = _columns(checkpoint, name, "_filtered", where)
            filtered.append(TensorPart(checkpoint, without._replace(values=None), None, later))
    keys, values = (checkpoint[f"{first}-{one}"] for one in ("keys", "values"))
    for part in rows:
        assert part.columns.values is not None  # only the parts of `filtered` have none
        info = part.checkpoint[part.columns.values]
        if (info.dtype, info.shape[1:]) != (values.dtype, values.shape[1:]):
            raise BadInput(f"{where}: its parts have rows of different types or sizes")
    result = HashTable(
        table, kind, keys.dtype, values.dtype, values.shape[1:], tuple(rows), {}, None
    )
    if filtered:
        without_rows = dataclasses.replace(result, parts=tuple(filtered), value_shape=())
        result = dataclasses.replace(result, filtered=without_rows)
    return result


def _columns(checkpoint: Checkpoint, name: str, suffix: str, where: str) -> Columns:
    """The tensors of a part, of equal length; those of length 0 beside keys are not kept."""
    keys = checkpoint[f"{name}-keys{suffix}"]
    if not keys.shape or (len(keys.shape) > 1 and keys.shape[1:] != (1,)):
        raise BadInput(f"{where}: keys of shape {list(keys.shape)}, expected one a row")
    found: Dict[str, Optional[str]] = {"values": None, "freqs": None, "versions": None}
    for column in found:
        tensor = f"{name}-{column}" + ("" if column == "values" else suffix)
        if tensor not in checkpoint or (column == "values" and suffix):
            continue
        shape = checkpoint[tensor].shape
        if column != "values" and shape == (0,):
            continue
        if shape[:1] != keys.shape[:1]:
            raise BadInput(
                f"{where}: {tensor!r} has shape {list(shape)}, but there are {keys.shape[0]} keys"
            )
        found[column] = tensor
    _check_offsets(checkpoint, name, suffix, keys.shape[0], where)
    return Columns(f"{name}-keys{suffix}", **found)


def _check_offsets(checkpoint: Checkpoint, name: str, suffix: str, count: int, where: str) -> None:
    """DeepRec groups keys by key % 1000; the groups must end where the keys do."""
    tensor = name + ("-partition_filter_offset" if suffix else "-partition_offset")
    if tensor not in checkpoint:
        return  # an old checkpoint
    offsets = checkpoint.read(tensor)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != count:
        raise BadInput(f"{where}: {tensor!r} does not divide its {count} keys")
    if (numpy.diff(offsets) < 0).any():
        raise BadInput(f"{where}: {tensor!r} goes backwards; the checkpoint is damaged")


def _refuse_ssd(checkpoint: Checkpoint, parts: List[Tuple[int, str]], where: str) -> None:
    for _, name in parts:
        prefix = f"{checkpoint.prefix}-{name.replace('/', '_')}-ssd_record"
        if starting_with(prefix):
            raise BadInput(
                f"{where} keeps a part of its rows in SSD files ({prefix}*), whose layout has no "
                "description to read them by; restore it with storage type DRAM and save it again"
            )


def _newer_part(newer: Optional[Checkpoint], name: str) -> Tuple[TensorPart, ...]:
    """The rows of one part in an incremental checkpoint."""
    if newer is None or name + _INCREMENTAL not in newer:
        return ()
    names = [f"{name}-sparse_incr_{one}" for one in ("keys", "values", "freqs", "versions")]
    count = newer[names[0]].shape[:1]
    for one in names[:2]:
        if one not in newer or newer[one].shape[:1] != count:
            raise BadInput(
                f"{newer.prefix}: {one!r} does not have the {list(count)} rows of its keys"
            )
    others = [one if one in newer and newer[one].shape == count else None for one in names[2:]]
    return (TensorPart(newer, Columns(names[0], names[1], *others)),)


def _check_newer(tables: Dict[str, HashTable], newer: Checkpoint) -> None:
    """That every increment of a hash table has the table it belongs to."""
    known = {
        part.columns.keys
        for table in tables.values()
        for part in table.parts
        if isinstance(part, TensorPart)
    }
    for name in newer:
        versions = name[: -len(_INCREMENTAL)] + "-sparse_incr_versions"
        if name.endswith(_INCREMENTAL) and versions in newer and name not in known:
            raise BadInput(f"{newer.prefix}: {name!r} belongs to no table of the full checkpoint")
