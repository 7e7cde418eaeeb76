"""The blocks of a window put into their order."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import numpy
import pyarrow as pa

from migrate.data.loading import Lost
from migrate.data.order.shuffling import Order
from migrate.data.rows import lists_of
from semisync.common.errors import BadInput

Block = Union[Any, Lost]  # a pyarrow.RecordBatch, or why there is none


class OrderedWindow:
    """The rows of a window, each at its place in the order.

    lost: the blocks that are missing.
    """

    def __init__(self, order: Order, number: int, blocks: Sequence[Block]) -> None:
        self._start = order.windows[number].start
        self.lost = [block for block in blocks if isinstance(block, Lost)]
        there = [block for block in blocks if not isinstance(block, Lost)]
        self._table = joined(there) if there else None
        self._places = order.permutation(number)
        if self._places is None and not self.lost:
            return
        if self.lost:
            kept = _numbers_of_kept(blocks)
            self._places = kept if self._places is None else kept[self._places]
        columns = () if self._table is None else self._table.columns
        self._columns = [_Equal.of(column) or column for column in columns]

    def part(self, start: int, stop: int) -> Optional[Any]:
        """A record batch of the rows of the order from `start` to before `stop`; fewer rows, or
        None, where some are lost."""
        if self._table is None:
            return None
        start, stop = start - self._start, stop - self._start
        if self._places is None:
            return self._table.slice(start, stop - start)
        places = self._places[start:stop]
        if self.lost:
            places = places[places >= 0]
        chosen = pa.array(places)
        columns = [
            column.take(places) if isinstance(column, _Equal) else column.take(chosen)
            for column in self._columns
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._table.schema)


class _Equal:
    """Lists of equal length as a matrix, of which rows are taken ten times faster."""

    def __init__(self, matrix: numpy.ndarray) -> None:
        self._matrix = matrix

    @classmethod
    def of(cls, array: Any) -> Optional[_Equal]:
        """The column as a matrix, if it is one."""
        if not pa.types.is_list(array.type) or not pa.types.is_integer(array.type.value_type):
            return None
        offsets, values = lists_of(array)
        width = len(values) // max(1, len(array))
        if not width or (numpy.diff(offsets) != width).any():
            return None
        return cls(values.to_numpy().reshape(-1, width))

    def take(self, places: numpy.ndarray) -> Any:
        """The lists at these places."""
        values = self._matrix.take(places, axis=0)
        offsets = numpy.arange(len(values) + 1, dtype=numpy.int32) * values.shape[1]
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.reshape(-1)))


def joined(parts: Sequence[Any]) -> Any:
    """Record batches one after the other; BadInput where their columns differ in type."""
    first = parts[0].schema
    for part in parts[1:]:
        for name, one, other in zip(first.names, first.types, part.schema.types):
            if one != other:
                raise BadInput(f"column {name!r} holds {one} in some files and {other} in others")
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_batches(parts)
    except pa.ArrowInvalid as error:
        rows = sum(part.num_rows for part in parts)
        raise BadInput(
            f"{rows} rows hold more than 2**31 values in a column of lists: shuffle with a smaller "
            f"buffer, or write smaller row groups ({error})"
        ) from error


def _numbers_of_kept(blocks: Sequence[Block]) -> numpy.ndarray:
    """For each row of the blocks, its number among those that are not lost, or -1: int64 [rows]."""
    rows = [block.rows if isinstance(block, Lost) else block.num_rows for block in blocks]
    kept = numpy.repeat([not isinstance(block, Lost) for block in blocks], rows)
    return numpy.where(kept, numpy.cumsum(kept) - 1, -1)
