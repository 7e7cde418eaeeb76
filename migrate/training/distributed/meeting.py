"""The meeting of the processes of one start, in a store with the leftovers of earlier starts.

torchrun keeps one store for all starts, and has no number for a start on which the agents of
several nodes agree: TORCHELASTIC_RESTART_COUNT is how often an agent's own processes failed. The
processes of an earlier start have ended before those of the next begin. So

    rank 0          makes up a name, and answers with it whatever any other rank calls itself,
                    until all of them have said that they know it
    another rank    calls itself by a name of its own, waits for the answer to that, and says so
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

import torch.distributed as dist

from migrate.launcher import Rank
from semisync.common.errors import SemisyncError

_PAUSE = 0.02  # seconds between two looks


def meet(store: dist.Store, own: Rank) -> dist.Store:
    """The part of the store that is this start's alone.

    Raises:
        SemisyncError: a rank does not join within `own.deadline` seconds.
    """
    start = uuid.uuid4().hex
    if own.number == 0:
        _answer(store, own, start)
    else:
        store.set_timeout(timedelta(seconds=own.deadline))
        store.set(_called(own.number), start)
        start = store.get(_answered(start)).decode()
        store.set(_known(start, own.number), "")
    return dist.PrefixStore(start, store)


def _answer(store: dist.Store, own: Rank, start: str) -> None:
    missing, late = set(range(1, own.size)), time.monotonic() + own.deadline
    while missing:
        for number in sorted(missing):
            if store.check([_called(number)]):
                # Perhaps an earlier start's call: nobody waits for an answer to that name now.
                store.set(_answered(store.get(_called(number)).decode()), start)
            if store.check([_known(start, number)]):
                missing.remove(number)
        if missing and time.monotonic() > late:
            raise SemisyncError(
                f"process {min(missing)} of {own.size} did not come in {own.deadline:.0f} s; start "
                "all of them, with --resume"
            )
        time.sleep(_PAUSE)


def _called(number: int) -> str:
    return f"semisync/called/{number}"


def _answered(name: str) -> str:
    return f"semisync/answered/{name}"


def _known(start: str, number: int) -> str:
    return f"semisync/known/{start}/{number}"
