"""Working one item ahead, so that reading and writing overlap."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Generator, Iterator, TypeVar

T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yields `items`; the next one is made in a thread while the caller works on this one.

    An exception of `items` is raised here, in its place. Two items exist at a time.
    """
    end = object()
    with ThreadPoolExecutor(max_workers=1) as pool:
        pending = pool.submit(next, items, end)
        while True:
            item = pending.result()
            if item is end:
                return
            pending = pool.submit(next, items, end)
            yield item  # type: ignore[misc]
