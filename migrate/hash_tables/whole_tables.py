"""A checkpoint with its tables by raw id as whole tensors, for a model that holds them in memory.

    TABLE        [n, dim], the rows of all parts by ascending id
    TABLE ids    [n] int64, the ids
    SLOT         [n, dim], the slot's rows of the same ids; where it lacks one, its first value

TABLE and SLOT are the names of the hash tables. Memory: a table, as it is read, and from then on
its ids, so that neither they nor a slot have the table read again.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.readers import tables_in_checkpoint
from migrate.hash_tables.table_slots import table_slots
from migrate.manifest.naming import ids_of
from semisync.common.errors import BadInput

_UNKNOWN = ("DeepRec", "MutableDenseHashTable")  # kinds whose look-ups in a graph are not known


class Made(NamedTuple):
    """The source of a made tensor.

    Attributes:
        of: "values", "ids" or the name of a slot of the table.
        fill: a slot's initial value, for ids that it lacks.
    """

    table: HashTable
    of: str = "values"
    fill: float = 0.0


class WithTables(Checkpoint):
    """`checkpoint` with these tensors for each table whose look-ups in a graph are known."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.prefix, checkpoint.stored, checkpoint.store)
        self.newer = checkpoint.newer
        self._source = checkpoint
        self.made: Dict[str, Made] = {}
        self._ids: Dict[str, numpy.ndarray] = {}  # by table, ascending
        self._infos = dict(checkpoint)
        for name, table in tables_in_checkpoint(checkpoint, {}, checkpoint.newer).items():
            if table.kind not in _UNKNOWN and len(table.value_shape) == 1:
                self._add(name, table)

    def read(self, name: str, rows: Optional[slice] = None) -> numpy.ndarray:
        """Reads as `Checkpoint.read`; raises BadInput if a table has an id twice."""
        made = self.made.get(name)
        if made is None:
            return self._source.read(name, rows)
        whole = self._values(made)
        return whole if rows is None else whole[rows]

    def _add(self, name: str, table: HashTable) -> None:
        self._make(name, Made(table), table.value_shape, table.dtype)
        self._make(ids_of(name), Made(table, "ids"), (), "int64")
        known = table_slots(table)
        for torch_name, slot in known.slots.items():
            fill = known.fill[torch_name]
            of = table.slots[slot]
            self._make(of.name, Made(table, slot, fill), of.value_shape, of.dtype)

    def _make(self, name: str, of: Made, shape: Tuple[int, ...], dtype: str) -> None:
        size = (of.table.stored, *shape)
        self._infos[name] = TensorInfo(
            size, dtype, (), "slot" if of.of in of.table.slots else "variable", 0
        )
        self.made[name] = of

    def _values(self, of: Made) -> numpy.ndarray:
        """The ids, ascending, or the rows of the table or the slot in their order."""
        name = of.table.name
        if of.of == "values" or name not in self._ids:
            self._ids[name], values = self._sorted(of.table)
            if of.of == "values":
                return values
        ids = self._ids[name]
        if of.of == "ids":
            return ids
        own, rows = self._sorted(of.table.slots[of.of])
        whole = numpy.full((len(ids), *rows.shape[1:]), of.fill, rows.dtype)
        places = numpy.searchsorted(own, ids)
        there = places < len(own)
        # searchsorted says where an id would stand, even if another one stands there.
        there[there] = own[places[there]] == ids[there]
        whole[there] = rows[places[there]]
        return whole

    def _sorted(self, table: HashTable) -> Tuple[numpy.ndarray, numpy.ndarray]:
        where = f"{self.prefix}: hash table {table.name!r}"
        if table.key_dtype not in ("int64", "int32") or table.dtype != "float32":
            raise BadInput(
                f"{where} has {table.key_dtype} keys and {table.dtype} values; a model takes "
                "tables of integer keys and float32 values"
            )
        keys, values, _, _ = table.read()
        if values is None:
            values = numpy.empty((0, *table.value_shape), numpy.float32)
        # Ascending: `_values` joins slots by searchsorted.
        order = numpy.argsort(keys, kind="stable")
        keys = keys[order].astype(numpy.int64)
        twice = keys[1:][keys[1:] == keys[:-1]]
        if len(twice):
            raise BadInput(
                f"{where} has the id {twice[0]} twice; `semisync convert --duplicates "
                "newest` takes such a table without a model, if its rows have versions"
            )
        return keys, values[order]


def with_tables(checkpoint: Checkpoint) -> Checkpoint:
    """`checkpoint` with its tables by raw id; itself if it has none, or has them already."""
    if checkpoint.made:
        return checkpoint
    found = WithTables(checkpoint)
    return found if found.made else checkpoint
