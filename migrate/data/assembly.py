"""A rank's batches, put together from windows of the order that threads have read ahead."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import (
    Any,
    Callable,
    Generator,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy
import pyarrow as pa

from migrate.data.loading import Loader, Lost
from migrate.data.position import Range
from migrate.data.rows import lists_of
from migrate.data.shuffling import Order
from semisync.common.compiled.jit import compiled
from semisync.common.errors import BadInput

_Block = Union[Any, Lost]  # a pyarrow.RecordBatch, or the record of its loss
Piece = Tuple[int, int, int]  # rows of the order within one window: its number, start, stop


def tables(
    order: Order,
    runs: Callable[[], Iterable[Tuple[range, List[Range]]]],
    loader: Loader,
    readers: int,
) -> Generator[Tuple[range, Any, List[Lost]], None, None]:
    """The numbers of batches, a record batch of their rows, and the blocks that could not be read.

    Two windows are in memory at a time, or more if they have fewer than `readers` blocks.

    Args:
        runs: starts the sequence of numbers and ranges of the order; it is called twice, first to
            find the blocks to read.
        loader: reads blocks in `readers` threads.
    """
    number, window = -1, None
    needed = _needed(order, (ranges for _, ranges in runs()))
    with contextlib.closing(_windows(order, needed, loader.load, readers)) as windows:
        for numbers, ranges in runs():
            parts, lost = [], []
            for wanted, start, stop in _pieces(order, ranges):
                if wanted != number:
                    window = None  # frees its memory before the next one is assembled
                    number, window = next(windows)
                    lost += window.lost
                parts.append(window.part(start, stop))  # type: ignore[union-attr]
            there = [part for part in parts if part is not None and part.num_rows]
            yield numbers, _joined(there) if there else loader.empty(), lost


def _windows(
    order: Order, needed: Iterator[int], load: Callable[[int], Any], readers: int
) -> Generator[Tuple[int, _OrderedWindow], None, None]:
    """The needed windows, in turn; at least `readers` blocks are read ahead."""
    ahead: List[Tuple[int, List[Future]]] = []
    with ThreadPoolExecutor(readers) as pool:
        try:
            while True:
                # The first is due now, so only the blocks of those after it are ahead.
                while len(ahead) < 2 or sum(len(one) for _, one in ahead[1:]) < readers:
                    number = next(needed, -1)
                    if number < 0:
                        break
                    blocks = order.windows[number].blocks
                    ahead.append((number, [pool.submit(load, block) for block in blocks]))
                if not ahead:
                    return
                number, reading = ahead.pop(0)
                read = [block.result() for block in reading]
                # These names would otherwise keep a window in memory beyond the two.
                del reading
                window = _OrderedWindow(order, number, read)
                del read
                yield number, window
                del window
        finally:
            # Waits, so that no thread reads on once the iteration has ended.
            pool.shutdown(wait=True, cancel_futures=True)


def _needed(order: Order, batches: Iterable[List[Range]]) -> Iterator[int]:
    """The windows that the batches touch, each once for as long as it is in use."""
    last = -1
    for ranges in batches:
        for number, _, _ in _pieces(order, ranges):
            if number != last:
                yield number
                last = number


def _pieces(order: Order, ranges: Iterable[Range]) -> Iterator[Piece]:
    for start, stop in ranges:
        while start < stop:
            number = order.window_of(start)
            window = order.windows[number]
            upto = min(stop, window.start + window.rows)
            yield number, start, upto
            start = upto


class _OrderedWindow:
    """The rows of a window, each at its position in the order.

    Attributes:
        lost: the blocks that are missing.
    """

    def __init__(self, order: Order, number: int, blocks: Sequence[_Block]) -> None:
        self._start = order.windows[number].start
        self.lost = [block for block in blocks if isinstance(block, Lost)]
        there = [block for block in blocks if not isinstance(block, Lost)]
        self._table = _joined(there) if there else None
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
            # -1 stands for a row of a lost block.
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
        offsets, wanted = taken(self._offsets, places)
        parts = [pa.array(part.take(wanted)) for part in self._parts]
        values = parts[0]
        if len(parts) > 1:
            values = pa.StructArray.from_arrays(parts, ["id", "weight"])
        return pa.ListArray.from_arrays(pa.array(offsets), values)


def _joined(parts: Sequence[Any]) -> Any:
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


def _numbers_of_kept(blocks: Sequence[_Block]) -> numpy.ndarray:
    """For each row of the blocks, its number among those that are not lost, or -1: int64 [rows]."""
    rows = [block.rows if isinstance(block, Lost) else block.num_rows for block in blocks]
    kept = numpy.repeat([not isinstance(block, Lost) for block in blocks], rows)
    return numpy.where(kept, numpy.cumsum(kept) - 1, -1)


@compiled
def taken(offsets, places):
    """The lists at these places, one after the other; Arrow's `take` needs several times as long.

    Gives their offsets, int32 [n + 1], and the positions of their values, int64 [values].

    Args:
        offsets: int32 [lists + 1].
        places: int64 [n], each from 0.
    """
    begins, size = numpy.empty(len(places) + 1, numpy.int32), 0
    begins[0] = 0
    for k in range(len(places)):
        size += offsets[places[k] + 1] - offsets[places[k]]
        begins[k + 1] = size
    # The values' places rather than the values, whose copying LLVM makes a call for each list.
    values, at = numpy.empty(size, numpy.int64), 0
    for k in range(len(places)):
        for place in range(offsets[places[k]], offsets[places[k] + 1]):
            values[at] = place
            at += 1
    return begins, values
