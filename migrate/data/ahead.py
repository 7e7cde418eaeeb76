"""Items made in a thread while their user works on earlier ones.

The thread ends when the items do, when they raise, when `close` is called, when the `Ahead` is no
longer referenced, and at the end of the process; it is never killed in the middle of a read.
"""

from __future__ import annotations

import collections
import logging
import threading
import weakref
from typing import Deque, Generator, Generic, Optional, TypeVar

T = TypeVar("T")

_PATIENCE = 60  # seconds between two warnings that no item arrives

logger = logging.getLogger(__name__)


class _Shared(Generic[T]):
    """The state that both threads share, under the condition's lock."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.ready: Deque[T] = collections.deque()
        self.ended = self.closed = False
        self.error: Optional[BaseException] = None


class Ahead(Generic[T]):
    """An iterator over `items` that makes at most `most` of them ahead.

    An error of `items` is raised here, after the items before it.
    """

    def __init__(self, items: Generator[T, None, None], most: int) -> None:
        self._shared: _Shared[T] = _Shared()
        thread = threading.Thread(target=_make, args=(items, most, self._shared), daemon=True)
        # At the end of the process too, before the interpreter is taken down under the thread.
        self.close = weakref.finalize(self, _end, thread, self._shared)
        thread.start()

    def __iter__(self) -> Ahead[T]:
        return self

    def __next__(self) -> T:
        shared = self._shared
        with shared.changed:
            while not shared.changed.wait_for(lambda: shared.ready or shared.ended, _PATIENCE):
                logger.warning("no batch for %d s: files are read slowly, or not at all", _PATIENCE)
            if shared.ready:
                item = shared.ready.popleft()
                shared.changed.notify_all()
                return item
            error, shared.error = shared.error, None
        if error is not None:
            raise error
        raise StopIteration


def _make(items: Generator[T, None, None], most: int, shared: _Shared[T]) -> None:
    try:
        for item in items:
            with shared.changed:
                # Without a deadline: the user may take any time between two items.
                shared.changed.wait_for(lambda: shared.closed or len(shared.ready) < most)
                if shared.closed:
                    break
                shared.ready.append(item)
                shared.changed.notify_all()
        items.close()
    except BaseException as error:  # raised again where the items are used
        shared.error = error
    with shared.changed:
        shared.ended = True
        shared.changed.notify_all()


def _end(thread: threading.Thread, shared: _Shared[T]) -> None:
    with shared.changed:
        shared.closed = True
        shared.changed.notify_all()
    if thread is not threading.current_thread():  # which may collect the garbage
        thread.join()
