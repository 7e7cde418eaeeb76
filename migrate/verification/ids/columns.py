"""The columns of a hash table in the target, and the source of each."""

from __future__ import annotations

import math
from typing import Iterator, NamedTuple, Optional

import numpy

from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.manifest.manifest import Ids, Written
from migrate.manifest.transforms import filler, named
from migrate.verification.expected import as_bytes, expected
from semisync.encoding.dtypes import number_type


class Column(NamedTuple):
    """A tensor of the target, or some columns of it, and its source.

    Attributes:
        name: for messages.
        table: the source's, or one of its slots.
        column: "values", "freqs" or "versions" of it.
        fill: bytes of the row of an id that the source lacks; None where it has all ids.
        free: bytes of a row of the target that has no id.
        start, stop: its bytes in a row of the tensor.
    """

    name: str
    written: Written
    table: HashTable
    column: str
    fill: Optional[numpy.ndarray]
    free: numpy.ndarray
    start: int
    stop: int


def columns_of(written: Written, ids: Ids, source: HashTable) -> Iterator[Column]:
    """The columns side by side in the tensor `written`, but for the ids themselves."""
    start = 0
    for name in ids.columns[written.fqn]:
        if name == "ids":
            continue
        slot = name.partition("slot ")[2]
        table = source.slots[ids.slots[slot]] if slot else source
        column = "values" if slot else name
        shape = table.value_shape if column == "values" else ()
        array = number_type(written.dtype)
        width = math.prod(named(written.transform).shape((1, math.prod(shape))))
        stop = start + width * array.itemsize
        fill = None
        if slot:
            row = numpy.broadcast_to(filler(ids.fill[slot], array), (width,))
            fill = numpy.ascontiguousarray(row).view(numpy.uint8)
        free = _free_row(written, table, column) if fill is None else fill
        yield Column(
            name=slot or name,
            written=written,
            table=table,
            column=column,
            fill=fill,
            free=free,
            start=start,
            stop=stop,
        )
        start = stop


def _free_row(written: Written, table: HashTable, column: str) -> numpy.ndarray:
    """Bytes of a row that has no id, but for the optimizer's states."""
    if column == "values":
        values = numpy.zeros((1, *table.value_shape), number_type(table.dtype))
    else:  # Monolith's times have a mark for none; counts and steps are zero
        values = numpy.full(1, -1 if written.transform == "hours" else 0)
    row: numpy.ndarray = as_bytes(expected(values, written))[0]
    return row


def expected_column(rows: Rows, column: Column) -> numpy.ndarray:
    """`rows` of the source as `column` of the target should have them, uint8 [n, bytes per row]."""
    values = getattr(rows, column.column)
    if column.column != "values":
        values = values.astype(numpy.int64, copy=False)
    return as_bytes(expected(values, column.written))
