"""A hash table of contrib.lookup, from its trained state in torch.

    X-keys [n]         the ids that have a row, in the order of the rows
    X-values [n, dim]  their rows

1. The id of a row follows from how ids find their rows (`migrate.manifest.id_modes`): for `rows`
   from the converted directory, which no training changes; for `mch` and `mpzch` from the buffers
   of their modules, which take in and evict ids while they train.
2. Rows without an id, such as the one for unknown ids, have no place in the table.

Other tables have buckets, parts, counts or slots beside their rows, and cannot be written back.
Memory: the ids, 8 bytes each.
"""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

import numpy

from migrate.manifest.id_modes import MODES
from migrate.manifest.manifest import Manifest, TableSummary
from migrate.targets.reading import open_target
from migrate.targets.reading.dcp import Saved
from migrate.to_tensorflow.dcp_rows import blocks_of, joined
from migrate.to_tensorflow.held import Held, held_ids
from migrate.to_tensorflow.in_directory import checked_rows
from migrate.to_tensorflow.keys import Keys, Place, table_names
from semisync.common.errors import BadInput

_STATE = "_managed_collision_modules.{}.{}"


def leads_back(table: TableSummary) -> bool:
    """Whether a table is keys and values, and nothing else."""
    ids = table.ids
    plain = ids is not None and ids.kind == "MutableHashTable" and not ids.slots
    return plain and ids is not None and ids.tensors == [f"{ids.table}-keys", f"{ids.table}-values"]


def find_rows(
    table: TableSummary,
    manifest: Manifest,
    converted: str,
    keys: Keys,
    saved: Mapping[str, Saved],
    place: str,
) -> Tuple[Held, Held]:
    """The ids and rows of `table` in a DCP; raises BadInput if they are not there."""
    assert table.ids is not None
    names = [keys.find(name) for name in table_names(table.name)]
    key = next((name for name in names if name is not None), None)
    if key is None:
        raise BadInput(f"{place} has no rows of the table {table.name!r}; save the whole model")
    weight = joined([Place(key, key)], saved, False)
    if len(weight.shape) != 2 or weight.shape[1] != table.dim:
        raise BadInput(
            f"{place} has {key!r} as {list(weight.shape)}, expected [rows, {table.dim}]; it is of "
            "another model"
        )
    rows = weight.shape[0]
    if table.ids.mode == "rows":
        ids = _converted_ids(table, manifest, converted)
        if rows < len(ids):
            raise BadInput(
                f"{place} has {rows} rows of the table {table.name!r}, of {len(ids)} ids"
            )
        # The i-th id has row i; what follows is the row of unknown ids.
        return held_ids(ids), weight.some(numpy.arange(rows) < len(ids))
    free = MODES[table.ids.mode].reserved[0]
    if table.ids.mode == "mpzch":
        ids = _state(table, "_hash_zch_identities", keys, saved, place).reshape(-1)
    else:
        raw = _state(table, "_mch_sorted_raw_ids", keys, saved, place)
        row_of = _state(table, "_mch_remapped_ids_mapping", keys, saved, place)
        known = raw != free
        ids = numpy.full(rows, free)
        if ((row_of[known] < 0) | (row_of[known] >= rows)).any():
            raise BadInput(f"{place}: ids of the table {table.name!r} have rows beyond its {rows}")
        ids[row_of[known]] = raw[known]
    return held_ids(ids[ids != free]), weight.some(ids != free)


def _converted_ids(table: TableSummary, manifest: Manifest, converted: str) -> numpy.ndarray:
    """The ids of the rows of a conversion, in their order."""
    (written,) = [one for one in manifest.tensors if one.fqn == f"ids.{table.name}"]
    reader = open_target(converted, manifest.target)
    blocks = checked_rows(reader, written, converted)  # none of an empty table
    return numpy.concatenate([numpy.empty(0, numpy.int64), *blocks])


def _state(
    table: TableSummary, name: str, keys: Keys, saved: Mapping[str, Saved], place: str
) -> numpy.ndarray:
    key: Optional[str] = keys.find(_STATE.format(table.name, name))
    if key is None:
        raise BadInput(
            f"{place} has no {name} of the table {table.name!r}, which says the ids of its rows; "
            "save the whole model"
        )
    return numpy.concatenate(list(blocks_of(key, saved[key])))
