"""Files that are opened on first use, of which those used last stay open."""

from __future__ import annotations

from collections import OrderedDict
from typing import Callable, Generic, Protocol, TypeVar

_MOST = 64


class Closes(Protocol):
    """What is open until it is closed."""

    def close(self) -> None:
        """Closes it."""


Kind = TypeVar("Kind", bound=Closes)


class Opened(Generic[Kind]):
    """Numbered files, at most 64 of them open at a time.

    Args:
        open_one: opens the file of a number, again where it was closed in favour of others. It must
            not hold what owns this: the circle would keep the files open until it is collected.
    """

    def __init__(self, open_one: Callable[[int], Kind]) -> None:
        self._open_one = open_one
        self._open: OrderedDict[int, Kind] = OrderedDict()

    def __getitem__(self, number: int) -> Kind:
        # Taken out and put back last: the first in the dict is the one used longest ago.
        file = self._open.pop(number, None) or self._open_one(number)
        self._open[number] = file
        if len(self._open) > _MOST:
            self._open.popitem(last=False)[1].close()
        return file

    def close(self) -> None:
        """Closes all; a later use opens them again."""
        while self._open:
            self._open.popitem()[1].close()
