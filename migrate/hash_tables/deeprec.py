"""DeepRec's EmbeddingVariables: keys and values in a checkpoint, and DeepRec's counters.

    X-keys, X-values             the ids and their rows
    X-versions, X-freqs          global step of the last update, how often seen; [0] if not kept
    X-keys_filtered              ids that are counted but not admitted, with versions and freqs
    X-partition_offset           bounds of the groups by key % 1000; partition_filter_offset, too
    X-sparse_incr_keys           in an incremental checkpoint: the rows that changed, with -values,
                                 -versions and -freqs
    PREFIX-X-ssd_record*         rows on an SSD tier, refused

X is the variable or its part, `user/part_0`, and so are its slots: `user/Adagrad`,
`user/part_0/Adagrad`. What an increment has of other variables, `migrate.checkpoint.overlay` lays.

Source: embedding_var_ckpt_data.cc, incr_save_restore_ops.h. These sources are all that was read: no
file that DeepRec wrote.
"""

from __future__ import annotations

import dataclasses
from typing import Iterable, Iterator, List, Optional, Tuple

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.hash_tables.tensors import (
    Columns,
    Stem,
    TensorPart,
    assemble,
    columns_of,
    where_is,
)
from semisync.common.errors import BadInput
from semisync.storage.files import starting_with

_INCREMENT = "-sparse_incr_keys"


@dataclasses.dataclass(frozen=True)
class EmbeddingPart(TensorPart):
    """Rows of one part; those that an increment, `newer`, replaces are left out."""

    newer: Tuple[TensorPart, ...] = ()

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See Part. Memory: the keys of the increment, too, 8 bytes each."""
        keys = [part.checkpoint.read(part.columns.keys) for part in self.newer]
        replaced = numpy.sort(numpy.concatenate(keys)) if keys else numpy.empty(0, numpy.int64)
        for rows in super().chunks(rows_per_chunk):
            if len(replaced):
                at = numpy.searchsorted(replaced, rows.keys).clip(max=len(replaced) - 1)
                # Row by row: an increment has the present row of each of its ids.
                rows = rows.only(replaced[at] != rows.keys)
            if rows.keys.size:
                yield rows


def is_deeprec(checkpoint: Checkpoint, stem: Stem) -> bool:
    """Whether the part has tensors that only DeepRec writes."""
    return any(stem.name + suffix in checkpoint for suffix in ("-versions", "-freqs"))


def read_table(checkpoint: Checkpoint, stems: List[Stem], newer: Optional[Checkpoint]) -> HashTable:
    """The table with the parts `stems`; the rows of an increment, `newer`, replace its own."""
    _refuse_ssd(checkpoint, stems)
    rows: List[TensorPart] = []
    filtered: List[TensorPart] = []
    for stem in stems:
        later = _increment(newer, stem.name)
        part = EmbeddingPart(checkpoint, columns_of(checkpoint, stem), later)
        _check_offsets(part, stem, "-partition_offset")
        rows += [*later, part]
        if stem.name + "-keys_filtered" in checkpoint:
            # An id that waited for admission and has a row in the increment was admitted since.
            ids = EmbeddingPart(checkpoint, columns_of(checkpoint, stem, "_filtered"), later)
            _check_offsets(ids, stem, "-partition_filter_offset")
            filtered.append(ids)
    table = assemble(checkpoint, stems[0], "DeepRec", rows)
    if not filtered:
        return table
    without_rows = dataclasses.replace(table, parts=tuple(filtered), value_shape=())
    return dataclasses.replace(table, filtered=without_rows)


def check_increment(tables: Iterable[HashTable], newer: Checkpoint) -> None:
    """Checks that every increment of a hash table has its table."""
    known = {
        part.columns.keys
        for table in tables
        for part in table.parts
        if isinstance(part, TensorPart)
    }
    for name in newer:
        versions = name[: -len(_INCREMENT)] + "-sparse_incr_versions"
        # Only EmbeddingVariables have versions; rows of plain variables are `overlay`'s to check.
        if name.endswith(_INCREMENT) and versions in newer and name not in known:
            raise BadInput(f"{newer.prefix}: {name!r} belongs to no table of the full checkpoint")


def _check_offsets(part: TensorPart, stem: Stem, suffix: str) -> None:
    """The groups by key % 1000 must end where the keys do."""
    checkpoint, tensor = part.checkpoint, stem.name + suffix
    if tensor not in checkpoint:
        return  # an old checkpoint
    where = where_is(checkpoint, stem.table)
    offsets = checkpoint.read(tensor)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != part.stored:
        raise BadInput(f"{where}: {tensor!r} does not divide its {part.stored} keys")
    if (numpy.diff(offsets) < 0).any():
        raise BadInput(f"{where}: {tensor!r} goes backwards; the checkpoint is damaged")


def _refuse_ssd(checkpoint: Checkpoint, stems: List[Stem]) -> None:
    for stem in stems:
        prefix = f"{checkpoint.prefix}-{stem.name.replace('/', '_')}-ssd_record"
        if starting_with(prefix):
            raise BadInput(
                f"{where_is(checkpoint, stem.table)} keeps a part of its rows in SSD files "
                f"({prefix}*), whose layout is not documented; restore it with storage type DRAM "
                "and save it again"
            )


def _increment(newer: Optional[Checkpoint], name: str) -> Tuple[TensorPart, ...]:
    if newer is None or name + _INCREMENT not in newer:
        return ()
    names = [f"{name}-sparse_incr_{column}" for column in ("keys", "values", "freqs", "versions")]
    count = newer[names[0]].shape[:1]
    for tensor in names[:2]:
        if tensor not in newer or newer[tensor].shape[:1] != count:
            raise BadInput(
                f"{newer.prefix}: {tensor!r} does not have the {list(count)} rows of its keys"
            )
    # As in a full checkpoint, a counter that is not kept has length 0.
    freqs, versions = (
        tensor if tensor in newer and newer[tensor].shape == count else None for tensor in names[2:]
    )
    return (TensorPart(newer, Columns(names[0], names[1], freqs, versions)),)
