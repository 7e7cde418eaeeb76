"""Reachability and order along the edges of a graph, or of anything that has some.

    reachable   all that follows, however many ways lead there
    along       a chain of single successors
    Ends        where such ways end, of many starts
    in_order    all that comes before something, the first first

A graph is as its file has it: it may be circular, and as long as the file allows. No walk calls
itself, and each passes everything once.
"""

import collections
from typing import (
    Any,
    Callable,
    Container,
    Deque,
    Dict,
    Generic,
    Hashable,
    Iterable,
    Iterator,
    Optional,
    Set,
    TypeVar,
)

from semisync.common.errors import BadInput

T = TypeVar("T", bound=Hashable)


def reachable(starts: Iterable[T], following: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """The starts and all their successors: each once, the nearest first.

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


def along(start: T, following: Callable[[T], Optional[T]], where: str = "") -> Iterator[T]:
    """`start`, its successor, the successor's own, until `following` returns None.

    Args:
        where: the file that the error names, if it is known.

    Raises:
        BadInput: one is followed by itself.
    """
    seen: Set[T] = set()
    one: Optional[T] = start
    while one is not None:
        if one in seen:
            raise circle(one, where)
        seen.add(one)
        yield one
        one = following(one)


def in_order(
    starts: Iterable[T],
    before: Callable[[T], Iterable[T]],
    known: Container[T] = (),
    where: Optional[str] = None,
) -> Iterator[T]:
    """The starts and all their predecessors by `before`: each once, after its own predecessors.

    Args:
        known: nodes to leave out, with the predecessors that they alone have.
        where: the file of a graph that must not be circular; None: of a circle one comes before
            what it needs.

    Raises:
        BadInput: one comes before itself.
    """
    begun: Set[T] = set()
    done: Set[T] = set()
    # Each is met twice: first its predecessors are put on top of it, then it is yielded. The stack
    # is reversed, so that they are taken in the given order.
    waiting = [(one, False) for one in reversed(list(starts))]
    while waiting:
        one, ready = waiting.pop()
        if ready:
            done.add(one)
            yield one
        elif one not in begun and one not in known:
            begun.add(one)
            waiting.append((one, True))
            waiting += [(other, False) for other in reversed(list(before(one)))]
        elif where is not None and one in begun and one not in done:
            raise circle(one, where)


class Ends(Generic[T]):
    """The ends of the paths of `along`: each path is walked once, whatever starts on it."""

    def __init__(self, following: Callable[[T], Optional[T]], where: str = "") -> None:
        self._following, self._where = following, where
        self._known: Dict[T, T] = {}

    def __call__(self, start: T) -> T:
        """The end of the way from `start`; raises BadInput as `along`."""
        passed = []
        for one in along(start, self._following, self._where):
            passed.append(one)
            if one in self._known:
                break
        end = self._known.get(passed[-1], passed[-1])
        self._known.update((one, end) for one in passed)
        return end


def circle(one: Any, where: str) -> BadInput:
    """The error of a graph in which something is computed from itself; a tensor may be an edge."""
    name = one[0] if isinstance(one, tuple) else one
    place = f"{where}: " if where else ""
    return BadInput(f"{place}{name!r} is computed from itself; the graph is damaged")
