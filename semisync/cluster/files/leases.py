"""A root gives each chunk to one follower, who gives it to the others.

1. A chunk that a follower has been given is on lease: it is offered to no other one.
2. A lease lasts while its follower is heard of (a follower asks for the state of its sources every
   few seconds), at most LONGEST seconds, and twice as long each time that it is given anew.
3. The follower itself may ask again, as after a broken connection.

So a follower that dies, or that the others cannot reach, costs them a wait and no more. Followers
that give nothing to others are no part of this: they get whatever they ask for.
"""

import collections
import time
from typing import Callable, DefaultDict, Dict, NamedTuple

SILENCE = 15.0  # seconds after which a follower is taken for dead
LONGEST = 60.0  # seconds of a chunk's first lease
_EVERY = 0.5  # seconds between two looks for leases that have ended


class _Lease(NamedTuple):
    holder: str
    since: float
    seconds: float


class Leases:
    """The leases of one manifest's chunks; clock: seconds that only go up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._leases: Dict[int, _Lease] = {}
        self._heard: Dict[str, float] = {}
        self._all = 0  # the leases that last, as bits, and those of each holder
        self._of: DefaultDict[str, int] = collections.defaultdict(int)
        self._looked = clock()

    def hear(self, follower: str) -> None:
        """Notes that a follower, a URL, is there."""
        self._heard[follower] = self._clock()

    def grant(self, chunk: int, follower: str) -> bool:
        """Whether the follower may have the chunk; if so, it is on lease from now on."""
        lease = self._leases.get(chunk)
        again = lease is not None and lease.holder == follower
        if lease is not None and not again and self._lasts(lease):
            return False
        seconds = LONGEST
        if lease is not None:
            seconds = lease.seconds * (1 if again else 2)
            self._of[lease.holder] &= ~(1 << chunk)
        self._leases[chunk] = _Lease(follower, self._clock(), seconds)
        self._all |= 1 << chunk
        self._of[follower] |= 1 << chunk
        return True

    def on_lease(self, follower: str) -> int:
        """The chunks, as bits, that would be refused to a follower now, or were a moment ago."""
        if self._clock() - self._looked >= _EVERY:
            self._look()
        return self._all & ~self._of.get(follower, 0)

    def _look(self) -> None:
        self._looked = self._clock()
        self._all = 0
        self._of.clear()
        for chunk, lease in self._leases.items():
            if self._lasts(lease):
                self._all |= 1 << chunk
                self._of[lease.holder] |= 1 << chunk

    def _lasts(self, lease: _Lease) -> bool:
        now = self._clock()
        heard = self._heard.get(lease.holder, lease.since)
        return now - max(heard, lease.since) < SILENCE and now - lease.since < lease.seconds
