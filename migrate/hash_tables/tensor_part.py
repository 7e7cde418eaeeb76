"""One partition of a hash table whose rows are tensors of a checkpoint."""

from __future__ import annotations

import dataclasses
from typing import Iterator, NamedTuple, Optional, Set, Tuple, Union

import numpy

from migrate.checkpoint.bundle import Checkpoint
from migrate.hash_tables.model import HashTable, Rows
from semisync.common.errors import BadInput

_COLUMNS = ("keys", "values", "freqs", "versions")
_DEEPREC = ("partition_offset", "keys_filtered", "versions_filtered", "freqs_filtered")

Key = Union[int, bytes]


class Sentinels(NamedTuple):
    """Keys that a MutableDenseHashTable keeps for itself: of free and of erased buckets."""

    empty: Key
    deleted: Optional[Key]


class Columns(NamedTuple):
    """Names of the tensors that hold a part; None where the format has none."""

    keys: str
    values: Optional[str]
    freqs: Optional[str] = None
    versions: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class TensorPart:
    """Rows that are tensors of `checkpoint`; those of `newer` and the sentinels are left out."""

    checkpoint: Checkpoint
    columns: Columns
    sentinels: Optional[Sentinels] = None
    newer: Tuple[TensorPart, ...] = ()

    @property
    def stored(self) -> int:
        """Number of rows in the file."""
        return self.checkpoint[self.columns.keys].shape[0]

    @property
    def place(self) -> str:
        """See `hashed.Part`."""
        return f"tensor {self.columns.keys!r}"

    @property
    def files(self) -> Tuple[str, ...]:
        """See `hashed.Part`."""
        return ()

    def has(self, column: str) -> bool:
        """See `hashed.Part`."""
        return getattr(self.columns, column) is not None

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See `hashed.Part`."""
        name = self.columns.keys
        if len(self.checkpoint[name].shape) == 2 and self.sentinels is None:
            raise BadInput(
                f"{self.checkpoint.prefix}: {name!r} holds the keys of a MutableDenseHashTable; "
                "only its empty_key tells free buckets: give the MetaGraph or the sentinels"
            )
        replaced = self._replaced()
        streams = [
            None if one is None else self.checkpoint.chunks(one, rows_per_chunk)
            for one in self.columns
        ]
        for _, keys in streams[0] or ():
            others = [None if one is None else next(one)[1] for one in streams[1:]]
            rows = Rows(keys.reshape(len(keys)), *others)
            if self.sentinels is not None:
                kept = rows.keys != self.sentinels.empty
                if self.sentinels.deleted is not None:
                    kept &= rows.keys != self.sentinels.deleted
                rows = rows.only(kept)
            if len(replaced):
                at = numpy.searchsorted(replaced, rows.keys).clip(max=len(replaced) - 1)
                rows = rows.only(replaced[at] != rows.keys)
            if rows.keys.size:
                yield rows

    def _replaced(self) -> numpy.ndarray:
        """The keys that newer parts hold, sorted: 8 bytes each in memory."""
        keys = [part.checkpoint.read(part.columns.keys) for part in self.newer]
        return numpy.sort(numpy.concatenate(keys)) if keys else numpy.empty(0, numpy.int64)


def tensors_of(table: HashTable) -> Set[str]:
    """Names of the checkpoint's tensors that the table and its slots are made of."""
    found: Set[str] = set()
    for one in (table, *table.slots.values()):
        for part in one.parts:
            if isinstance(part, TensorPart):
                stem = part.columns.keys[: -len("keys")]
                names = [stem + leaf for leaf in (*_COLUMNS, *_DEEPREC, "partition_filter_offset")]
                found.update(name for name in names if name in part.checkpoint)
    return found
