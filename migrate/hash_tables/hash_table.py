"""Tables whose rows have ids of their own: hash tables, one interface for every format.

    tables = migrate.open_hash_tables("model.ckpt-40000")
    for rows in tables["user"].chunks(100_000):
        rows.keys, rows.values, rows.freqs, rows.versions

1. A table's parts are the partitions that a job kept on several servers or ranks. `chunks` reads
   one after the other; an id that two parts hold comes twice.
2. A slot is a table, too. Its rows have an order of their own: join them by the keys.
3. Nothing is guessed: a format that does not store a data type or a sentinel asks for it.
4. Memory: one chunk.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Dict, Iterator, List, NamedTuple, Optional, Protocol, Tuple

import numpy

from migrate.checkpoint.tensor_info import refuse_wide_rows
from semisync.common.errors import UsageError
from semisync.encoding.dtypes import BY_NAME


class Rows(NamedTuple):
    """Some rows of a table.

    Attributes:
        keys: ids [n]: int64, int32 or bytes (object).
        values: [n, ...]; None for ids that are counted but not yet admitted to the table.
        freqs: how often each id was seen [n] int64, if the format has it.
        versions: global step of each id's last update [n] int64, if the format has it.
    """

    keys: numpy.ndarray
    values: Optional[numpy.ndarray]
    freqs: Optional[numpy.ndarray] = None
    versions: Optional[numpy.ndarray] = None

    def only(self, kept: numpy.ndarray) -> Rows:
        """The rows that the mask `kept` [n] selects."""
        others = [None if column is None else column[kept] for column in self[1:]]
        return Rows(self.keys[kept], *others)


class Part(Protocol):
    """One partition of a table: the interface of each format's reader."""

    @property
    def stored(self) -> int:
        """Number of rows in the file, before sentinels are left out."""

    @property
    def place(self) -> str:
        """Its tensor or file, for messages."""

    @property
    def files(self) -> Tuple[str, ...]:
        """Its files, unless they are a checkpoint's."""

    def has(self, column: str) -> bool:
        """Whether its rows have the column, "freqs" or "versions"."""

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """The rows in the order of the file; raises BadInput if the file is damaged."""


@dataclasses.dataclass(frozen=True)
class HashTable:
    """A hash table: its ids, rows and slots.

    Attributes:
        name: as in the checkpoint, without its partitions.
        kind: the format: "MutableHashTable", "MutableDenseHashTable", "DeepRec", "TFRA",
            "Monolith", "HugeCTR".
        key_dtype: TensorFlow's name of the ids' type.
        dtype: of the values.
        value_shape: of one row, () or (dim,).
        parts: in the order of their number.
        slots: the optimizer's state by slot name, tables of their own.
        filtered: ids that were counted but have no vector yet (DeepRec's admission), or None.

    Examples:
        >>> table = migrate.open_hash_tables("users.model")["users.model"]
        >>> table.kind, table.stored, table.read().keys.tolist()
        ('HugeCTR', 3, [1099511627776, -7, 12])
    """

    name: str
    kind: str
    key_dtype: str
    dtype: str
    value_shape: Tuple[int, ...]
    parts: Tuple[Part, ...]
    slots: Dict[str, HashTable] = dataclasses.field(default_factory=dict)
    filtered: Optional[HashTable] = None

    def __post_init__(self) -> None:
        array = BY_NAME[self.dtype].array
        size = math.prod(self.value_shape) * (0 if array is None else array.itemsize)
        refuse_wide_rows(size, f"hash table {self.name!r}")

    @property
    def stored(self) -> int:
        """Number of stored rows, duplicates across parts and sentinels included."""
        return sum(part.stored for part in self.parts)

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """Yields the rows, each checked where its format allows.

        A wrong checksum shows when the last row that it covers has been read.

        Args:
            rows_per_chunk: at most this many rows at a time.

        Yields:
            `Rows`: keys, values and, where the format has them, frequencies and versions.

        Raises:
            UsageError: `rows_per_chunk` is less than 1.
            BadInput: the files are damaged.
        """
        if rows_per_chunk < 1:
            raise UsageError(f"rows_per_chunk is {rows_per_chunk}, expected at least 1")
        for part in self.parts:
            yield from part.chunks(rows_per_chunk)

    def read(self) -> Rows:
        """All rows at once, for tables that fit into memory.

        Returns:
            `Rows`, without the columns that some parts lack.
        """
        chunks = list(self.chunks(1 << 20))
        if not chunks:
            return Rows(numpy.empty(0, numpy.int64), None)
        columns: List[Optional[numpy.ndarray]] = []
        for column in zip(*chunks):
            known = [values for values in column if values is not None]
            # A column that some parts lack would have fewer rows than the keys.
            columns.append(numpy.concatenate(known) if len(known) == len(column) else None)
        return Rows(*columns)  # type: ignore[arg-type]
