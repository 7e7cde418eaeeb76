"""What the target should have of each column of a hash table, made from the source once more."""

from __future__ import annotations

import math
from typing import Iterator, NamedTuple, Optional

import numpy
import torch

from migrate.encoding.dtypes import number_type
from migrate.hash_tables.model import HashTable, Rows
from migrate.manifest.model import Ids, Written
from migrate.manifest.quantization import HEAD, quantized
from migrate.manifest.tensors import as_bytes, as_tensor
from migrate.manifest.transforms import cast, filler


class Column(NamedTuple):
    """A tensor of the target, or some columns of it, and what of the source must stand there.

    name         for messages
    table        the source's, or one of its slots; column: "values", "freqs" or "versions" of it
    fill         bytes of the row of an id that the source lacks; None where it has all ids
    free         bytes of a row of the target that has no id
    start, stop  its bytes in a row of the tensor
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
    """What stands side by side in the tensor `written`, but for the ids themselves."""
    start = 0
    for name in ids.columns[written.fqn]:
        if name == "ids":
            continue
        slot = name.partition("slot ")[2]
        table = source.slots[ids.slots[slot]] if slot else source
        column = "values" if slot else name
        shape = table.value_shape if column == "values" else ()
        array = number_type(written.dtype)
        width = math.prod(shape) + (HEAD if written.transform == "int8" else 0)
        stop = start + width * array.itemsize
        fill = None
        if slot:
            one = numpy.broadcast_to(filler(ids.fill[slot], array), (width,))
            fill = numpy.ascontiguousarray(one).view(numpy.uint8)
        free = _free_row(written, stop - start) if fill is None else fill
        yield Column(slot or name, written, table, column, fill, free, start, stop)
        start = stop


def _free_row(written: Written, size: int) -> numpy.ndarray:
    """Bytes [size] of a row that has no id, of what is no state of the optimizer."""
    if written.transform == "int8":
        return quantized(numpy.zeros((1, size - HEAD), numpy.float32))[0]
    # Times of Monolith have a mark for none; counts, steps and numbers are zero.
    return numpy.full(size, 0xFF if written.transform == "hours" else 0, numpy.uint8)


def expected_rows(rows: Rows, column: Column) -> numpy.ndarray:
    """`rows` of the source as `column` of the target should have them, uint8 [n, bytes a row]."""
    values = getattr(rows, column.column)
    if column.written.transform == "int8":
        return quantized(cast(values, "float32"))
    tensor = as_tensor(values)
    if column.written.transform == "hours":
        tensor = torch.div(tensor, 3600, rounding_mode="floor")
    return as_bytes(tensor.to(getattr(torch, column.written.dtype)))
