"""How far a long piece of work is, on stderr."""

from __future__ import annotations

import sys
import time
from typing import Optional

_QUIET_SECONDS = 2.0  # work that is over by then shows no progress


class Progress:
    """One line on stderr, rewritten once a second, only where the work takes long."""

    def __init__(self) -> None:
        self._start: Optional[float] = None
        self._next = 0.0
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._start is None:
            self._start, self._next = now, now + _QUIET_SECONDS
        if now < self._next:
            return
        self._next = now + 1
        self._shown = True
        speed = done / (now - self._start) / 1e6
        line = f"\r{done / 1e6:,.0f} of {total / 1e6:,.0f} MB, {speed:,.0f} MB/s"
        print(line, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Ends the line, where one was begun."""
        if self._shown:
            print(file=sys.stderr)
