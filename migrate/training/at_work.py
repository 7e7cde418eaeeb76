"""One training at a time in a folder: OUT/lock names the process at work there.

The lock is the system's, so that it ends with its holder, a killed one too.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator, Set

from migrate.targets.work_directory import locked
from migrate.training.distributed.processes import rank

_PATIENCE = 5.0  # seconds, for a restart that comes before a killed process has ended
_HELD: Set[str] = set()  # by this process


@contextmanager
def at_work(out: str) -> Iterator[None]:
    """Locks the folder, which is made, until the block ends, unless a block around it does; rank 0
    does it for all.

    Raises:
        UsageError: another process is at work there; the message names it and its host.
        SemisyncError: the folder cannot be made.
    """
    place = os.path.realpath(out)
    if rank() > 0 or place in _HELD:
        yield
        return
    with locked(out, out, _PATIENCE):
        _HELD.add(place)
        try:
            yield
        finally:
            _HELD.remove(place)
