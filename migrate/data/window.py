"""The rows of a window's blocks in their order."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import numpy
import pyarrow as pa

from migrate.data.compiled import lists
from migrate.data.loading import Lost
from migrate.data.order.shuffling import Order
from migrate.data.rows import lists_of
from semisync.common.errors import BadInput

Block = Union[Any, Lost]  # a pyarrow.RecordBatch, or the record of its loss


class OrderedWindow:
    """The rows of a window, each at its position in the order.

    Attributes:
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
        self._columns = [_Lists.of(column) or column for column in columns]

    def part(self, start: int, stop: int) -> Optional[Any]:
        """A record batch of the order's rows in [start, stop), without those that are lost."""
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
            column.take(places) if isinstance(column, _Lists) else column.take(chosen)
            for column in self._columns
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._table.schema)


class _Lists:
    """A column of lists of numbers, or of pairs of numbers."""

    def __init__(self, offsets: numpy.ndarray, parts: Sequence[numpy.ndarray]) -> None:
        self._offsets, self._parts = offsets, parts

    @classmethod
    def of(cls, array: Any) -> Optional[_Lists]:
        """The column, if it is one."""
        if not pa.types.is_list(array.type) or pa.types.is_large_binary(array.type.value_type):
            return None
        offsets, values = lists_of(array)
        parts = values.flatten() if pa.types.is_struct(values.type) else [values]
        return cls(offsets, [part.to_numpy() for part in parts])

    def take(self, places: numpy.ndarray) -> Any:
        """The lists at these places."""
        offsets, wanted = lists.taken(self._offsets, places)
        parts = [pa.array(part.take(wanted)) for part in self._parts]
        values = parts[0]
        if len(parts) > 1:
            values = pa.StructArray.from_arrays(parts, ["id", "weight"])
        return pa.ListArray.from_arrays(pa.array(offsets), values)


def joined(parts: Sequence[Any]) -> Any:
    """Record batches of the same types, concatenated."""
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
