"""A rank's batches, put together from windows that threads have read ahead."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Generator, Iterable, Iterator, List, Optional, Tuple

from migrate.data.loading import Lost
from migrate.data.order.position import Range
from migrate.data.order.shuffling import Order
from migrate.data.window import OrderedWindow, joined

Piece = Tuple[int, int, int]  # rows of the order within one window: its number, start, stop


def tables(
    order: Order,
    batches: Callable[[], Iterable[List[Range]]],
    load: Callable[[int], Any],
    readers: int,
    lost: Callable[[Lost], None],
) -> Generator[Optional[Any], None, None]:
    """A record batch for each of the batches, None for one without rows.

    Two windows are in memory at a time, or more if they have fewer than `readers` blocks.

    Args:
        batches: starts the sequence of batches, each a list of ranges of the order; it is called
            twice, first to find the columns to read.
        load: reads a block, see `Loader`; called in `readers` threads.
        lost: called with each block that could not be read.
    """
    number, window = -1, None
    with contextlib.closing(_windows(order, _needed(order, batches()), load, readers)) as windows:
        for ranges in batches():
            parts = []
            for wanted, start, stop in _pieces(order, ranges):
                if wanted != number:
                    window = None  # frees its memory before the next one is assembled
                    number, window = next(windows)
                    for one in window.lost:
                        lost(one)
                parts.append(window.part(start, stop))  # type: ignore[union-attr]
            there = [part for part in parts if part is not None and part.num_rows]
            yield joined(there) if there else None


def _windows(
    order: Order, needed: Iterator[int], load: Callable[[int], Any], readers: int
) -> Generator[Tuple[int, OrderedWindow], None, None]:
    """The needed windows, in turn; at least `readers` blocks are read ahead."""
    ahead: List[Tuple[int, List[Future]]] = []
    with ThreadPoolExecutor(readers) as pool:
        try:
            while True:
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
                del reading
                window = OrderedWindow(order, number, read)
                del read
                yield number, window
                del window
        finally:
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
