"""What can be reached from where: along the edges of a graph, or of anything that has some."""

import collections
from typing import Callable, Deque, Hashable, Iterable, Iterator, Set, TypeVar

T = TypeVar("T", bound=Hashable)


def reachable(starts: Iterable[T], following: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """The starts, and what follows them and one another: each once, the nearest first.

    `following` is called lazily, so that a caller that has found enough may stop.
    """
    seen: Set[T] = set()
    waiting: Deque[T] = collections.deque(starts)
    while waiting:
        one = waiting.popleft()
        if one not in seen:
            seen.add(one)
            yield one
            waiting.extend(following(one))
