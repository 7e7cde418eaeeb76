"""Hash tables that are tensors of a checkpoint: `X-keys` beside `X-values`.

1. X is the name of the table, or of one of its parts: `table/part_0`, `table/part_0/Adagrad`; TFRA
   numbers its parts in another way (migrate.hash_tables.tfra).
2. Keys are ids, [N] or [N, 1]; values have a row per key. Other variables may be named alike, such
   as the projections of an attention layer, and have other types or shapes.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.hash_tables.hash_table import HashTable, Rows
from semisync.common.errors import BadInput

_PART = re.compile(r"^(.+)/part_(\d+)(/.+)?$")
_COLUMNS = ("keys", "values", "freqs", "versions")
_OF_DEEPREC = (
    "partition_offset",
    "partition_filter_offset",
    "keys_filtered",
    "versions_filtered",
    "freqs_filtered",
)


class Stem(NamedTuple):
    """The prefix before `-keys`: part `number` of the table, of `parts` if the name says so."""

    name: str
    table: str
    number: int = 0
    parts: Optional[int] = None


class Columns(NamedTuple):
    """Names of the tensors that hold a part; None for those that the format lacks."""

    keys: str
    values: Optional[str]
    freqs: Optional[str] = None
    versions: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class TensorPart:
    """Rows that are tensors of `checkpoint`."""

    checkpoint: Checkpoint
    columns: Columns

    @property
    def stored(self) -> int:
        """Number of rows in the file."""
        return self.checkpoint[self.columns.keys].shape[0]

    @property
    def place(self) -> str:
        """See Part."""
        return f"tensor {self.columns.keys!r}"

    @property
    def files(self) -> Tuple[str, ...]:
        """See Part."""
        return ()

    def has(self, column: str) -> bool:
        """See Part."""
        return getattr(self.columns, column) is not None

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See Part."""
        streams = [
            None if column is None else self.checkpoint.chunks(column, rows_per_chunk)
            for column in self.columns
        ]
        # Streams of equal chunks go on together: `columns_of` has compared their lengths.
        for _, keys in streams[0] or ():
            others = [None if stream is None else next(stream)[1] for stream in streams[1:]]
            yield Rows(keys.reshape(len(keys)), *others)


def stored_tables(checkpoint: Checkpoint) -> List[str]:
    """The prefixes of `-keys` of all parts of hash tables: ids with `-values` beside them."""
    return [
        name[:-5]
        for name, info in checkpoint.items()
        if name.endswith("-keys")
        and name[:-5] + "-values" in checkpoint
        and info.dtype in ("int32", "int64", "string")
        # [N, 1]: so a MutableDenseHashTable may store its keys.
        and (len(info.shape) == 1 or info.shape[1:] == (1,))
    ]


def stem_of(name: str) -> Stem:
    """The part of a partitioned variable, or a table in one part."""
    part = _PART.match(name)
    return Stem(name, part[1] + (part[3] or ""), int(part[2])) if part else Stem(name, name)


def where_is(checkpoint: Checkpoint, table: str) -> str:
    """The table in messages."""
    return f"{checkpoint.prefix}: hash table {table!r}"


def columns_of(checkpoint: Checkpoint, stem: Stem, suffix: str = "") -> Columns:
    """The tensors of a part, of equal length; those of length 0 beside keys are not kept.

    Args:
        suffix: of the names, "_filtered" for DeepRec's ids without values.
    """
    where = where_is(checkpoint, stem.table)
    keys = checkpoint[f"{stem.name}-keys{suffix}"]
    if not keys.shape or (len(keys.shape) > 1 and keys.shape[1:] != (1,)):
        raise BadInput(f"{where}: keys of shape {list(keys.shape)}, expected one per row")
    names: Dict[str, Optional[str]] = {"values": None, "freqs": None, "versions": None}
    for column in names:
        tensor = f"{stem.name}-{column}" + ("" if column == "values" else suffix)
        if tensor not in checkpoint or (column == "values" and suffix):
            continue
        shape = checkpoint[tensor].shape
        if column != "values" and shape == (0,):
            continue
        if shape[:1] != keys.shape[:1]:
            raise BadInput(
                f"{where}: {tensor!r} has shape {list(shape)}, but there are {keys.shape[0]} keys"
            )
        names[column] = tensor
    return Columns(f"{stem.name}-keys{suffix}", **names)


def assemble(
    checkpoint: Checkpoint, first: Stem, kind: str, parts: Sequence[TensorPart]
) -> HashTable:
    """A table of these parts; raises BadInput unless all have types and sizes of the `first`."""
    keys, values = (checkpoint[f"{first.name}-{column}"] for column in ("keys", "values"))
    expected = (keys.dtype, values.dtype, values.shape[1:])
    for part in parts:
        assert part.columns.values is not None  # only ids that are filtered have none
        ids, rows = part.checkpoint[part.columns.keys], part.checkpoint[part.columns.values]
        if (ids.dtype, rows.dtype, rows.shape[1:]) != expected:
            where = where_is(checkpoint, first.table)
            raise BadInput(f"{where}: its parts have ids or rows of different types or sizes")
    return HashTable(
        name=first.table,
        kind=kind,
        key_dtype=keys.dtype,
        dtype=values.dtype,
        value_shape=values.shape[1:],
        parts=tuple(parts),
    )


def tensors_of(table: HashTable) -> Set[str]:
    """Names of the checkpoint's tensors that the table and its slots are made of."""
    tensors: Set[str] = set()
    for part in (part for of in (table, *table.slots.values()) for part in of.parts):
        if isinstance(part, TensorPart):
            stem = part.columns.keys[: -len("keys")]
            names = [stem + leaf for leaf in (*_COLUMNS, *_OF_DEEPREC)]
            tensors.update(name for name in names if name in part.checkpoint)
    return tensors
