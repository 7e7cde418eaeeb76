"""Tables of contrib.lookup, which TensorFlow's Saver stores: `X-keys`, `X-values`.

    MutableHashTable        keys [N], values [N] or [N, D]
    MutableDenseHashTable   all of its buckets, keys [buckets] or [buckets, 1]: free and erased ones
                            too, whose keys are its sentinels

Only the graph has the sentinels (migrate.open).
"""

from __future__ import annotations

import dataclasses
from typing import Iterator, List, Mapping, NamedTuple, Optional, Union

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.hash_tables.tensors import Stem, TensorPart, assemble, columns_of
from semisync.common.errors import BadInput

Key = Union[int, bytes]


class Sentinels(NamedTuple):
    """Keys that a MutableDenseHashTable keeps for itself: of free and of erased buckets.

    Attributes:
        empty: the key of a free bucket.
        deleted: that of an erased one; None where the table has none.

    Examples:
        >>> sentinels = {"users": migrate.Sentinels(empty=-1, deleted=-2)}
        >>> tables = migrate.open_hash_tables("users.model", sentinels=sentinels)
    """

    empty: Key
    deleted: Optional[Key]


@dataclasses.dataclass(frozen=True)
class DensePart(TensorPart):
    """The buckets of a MutableDenseHashTable; those of its sentinels are left out."""

    sentinels: Optional[Sentinels] = None

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See Part."""
        if self.sentinels is None:
            raise BadInput(
                f"{self.checkpoint.prefix}: {self.columns.keys!r} holds the keys of a "
                "MutableDenseHashTable; only its empty_key tells free buckets: give the MetaGraph "
                "or the sentinels"
            )
        for rows in super().chunks(rows_per_chunk):
            used = rows.keys != self.sentinels.empty
            if self.sentinels.deleted is not None:
                used &= rows.keys != self.sentinels.deleted
            if used.any():
                yield rows.only(used)


def read_table(
    checkpoint: Checkpoint, stems: List[Stem], sentinels: Mapping[str, Sentinels]
) -> HashTable:
    """The table with the parts `stems`; sentinels are by the names of stems."""
    first = stems[0]
    columns = [columns_of(checkpoint, stem) for stem in stems]
    # Keys of one dimension are of either kind: only the sentinels, from the graph, tell them apart.
    if first.name not in sentinels and len(checkpoint[f"{first.name}-keys"].shape) == 1:
        parts = [TensorPart(checkpoint, names) for names in columns]
        return assemble(checkpoint, first, "MutableHashTable", parts)
    dense = [
        DensePart(checkpoint, names, sentinels.get(stem.name))
        for stem, names in zip(stems, columns)
    ]
    return assemble(checkpoint, first, "MutableDenseHashTable", dense)
