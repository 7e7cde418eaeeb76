"""Work shared between threads.

Reading, writing, hashing and numpy's copies let other threads run, so that threads do here what
processes would, without their start and with one memory.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from typing import Callable, ContextManager, Generic, Iterable, Iterator, List, Optional, TypeVar

from migrate.storage.remote import is_remote

A = TypeVar("A")
R = TypeVar("R")

_OF_DISK = 4  # threads at most
_OF_SERVER = 8  # which answers each the slower, the farther it is
_AHEAD = 4  # calls a thread, unless the caller says how many


def default_count(source: str) -> int:
    """Threads that reading from `source`, a path or URL, is worth: from a disk one a processor, at
    most four; from a server eight."""
    return _OF_SERVER if is_remote(source) else min(os.cpu_count() or 1, _OF_DISK)


def in_threads(
    function: Callable[[A], R], arguments: Iterable[A], count: int, at_once: Optional[int] = None
) -> Iterator[List[R]]:
    """Calls `function` for each of `arguments` in `count` threads; yields the results as they
    come, in any order, all together that are there.

    at_once: calls that are begun, waiting, or done and not taken yet.
    An exception of a call is raised here; calls that have begun then come to their ends first.
    """
    left = iter(arguments)
    with ThreadPoolExecutor(count) as pool:
        pending = {pool.submit(function, one) for one in islice(left, at_once or count * _AHEAD)}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                pending |= {pool.submit(function, one) for one in islice(left, len(done))}
                yield [one.result() for one in done]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class PerThread(Generic[R]):
    """One thing for each thread that asks, such as open files; all are closed together.

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
        """That of the calling thread."""
        if not hasattr(self._local, "own"):
            made = self._make()
            with self._lock:
                self._local.own = self._closing.enter_context(made)
        own: R = self._local.own
        return own
