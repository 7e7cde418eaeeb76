"""Work shared between threads.

Reading, writing, hashing and numpy's copies let other threads run. Threads do the work of processes
here, without their start-up time and with shared memory.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from typing import (
    Callable,
    ContextManager,
    Generator,
    Generic,
    Iterable,
    Iterator,
    List,
    Optional,
    TypeVar,
)

from semisync.storage.remote import is_remote

A = TypeVar("A")
R = TypeVar("R")

_OF_DISK = 4  # threads at most
_OF_SERVER = 8  # the farther a server is, the longer each thread waits
_AHEAD = 4  # calls per thread, unless the caller gives a number


def default_count(*places: str) -> int:
    """Threads for these paths or URLs: eight if one is a server, else one per CPU, at most four."""
    return _OF_SERVER if any(map(is_remote, places)) else min(os.cpu_count() or 1, _OF_DISK)


def in_threads(
    function: Callable[[A], R], arguments: Iterable[A], count: int, at_once: Optional[int] = None
) -> Iterator[List[R]]:
    """Calls `function` for each of `arguments` in `count` threads; yields lists of the results that
    are ready, in any order.

    An exception of a call is raised here, after the calls that are running have ended.

    Args:
        at_once: calls that are running, waiting, or done and not taken yet.
    """
    left = iter(arguments)
    with ThreadPoolExecutor(count) as pool:
        pending = {pool.submit(function, item) for item in islice(left, at_once or count * _AHEAD)}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                # As many as are done, not more: the caller takes these before the next.
                pending |= {pool.submit(function, item) for item in islice(left, len(done))}
                yield [call.result() for call in done]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class PerThread(Generic[R]):
    """One object per thread that asks, such as open files; all are closed together.

    Args:
        make: called in the thread that asks first.
    """

    def __init__(self, make: Callable[[], ContextManager[R]]) -> None:
        self._make = make
        self._local = threading.local()
        self._lock = threading.Lock()
        self._closing = ExitStack()

    def __enter__(self) -> PerThread[R]:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def get(self) -> R:
        """The calling thread's object."""
        if not hasattr(self._local, "own"):
            made = self._make()
            with self._lock:  # an ExitStack is not safe for threads
                self._local.own = self._closing.enter_context(made)
        own: R = self._local.own
        return own


def one_ahead(items: Iterator[R]) -> Generator[R, None, None]:
    """Yields `items`; a thread makes the next one while the caller works on this one.

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
