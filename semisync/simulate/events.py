"""Simulated time: a queue of events, and processors that share themselves among demands."""

import collections
import heapq
import itertools
from typing import Any, Deque, List


class Clock:
    """The event loop; `now` is the simulated time in seconds, from 0."""

    def __init__(self):
        self.now = 0.0
        self.events = 0
        self._waiting: List[Any] = []
        self._count = itertools.count()  # events of one instant happen in the order of `after`

    def after(self, seconds, call, *arguments):
        """Calls `call` in so many seconds."""
        heapq.heappush(self._waiting, (self.now + seconds, next(self._count), call, arguments))

    def run(self, going):
        """Lets events happen while `going()` is true and there are any."""
        waiting = self._waiting
        while waiting and going():
            self.now, _, call, arguments = heapq.heappop(waiting)
            self.events += 1
            call(*arguments)


class Processor:
    """Cores that share themselves evenly: each of n demands gets min(1, cores / n) of a core.

    In virtual time every demand advances by one second per second, so that it is done at the
    virtual instant at which it came plus its size, whatever arrives or ends meanwhile.

    Args:
        clock: the `Clock`.
        cores: their number; infinity for processes that each have a machine of their own.

    Attributes:
        busy: core seconds that were used.
    """

    def __init__(self, clock, cores):
        self._clock, self._cores = clock, cores
        self._virtual = 0.0
        self._at = 0.0  # when `_virtual` was
        self._demands: List[Any] = []
        self._count = itertools.count()
        self._alarm = 0  # the alarm that counts; earlier ones are void
        self.busy = 0.0

    def work(self, seconds, call, *arguments):
        """Calls `call` once a demand of so many core seconds is done."""
        self.busy += seconds
        if self._cores == float("inf"):
            self._clock.after(seconds, call, *arguments)
            return
        self._advance()
        demand = (self._virtual + seconds, next(self._count), call, arguments)
        heapq.heappush(self._demands, demand)
        if len(self._demands) > self._cores or self._demands[0] is demand:
            self._set_alarm()  # else the earlier timer still holds

    def _rate(self):
        return min(1.0, self._cores / len(self._demands))

    def _advance(self):
        if self._demands:
            self._virtual += (self._clock.now - self._at) * self._rate()
        self._at = self._clock.now

    def _set_alarm(self):
        self._alarm += 1
        left = max(0.0, self._demands[0][0] - self._virtual)
        self._clock.after(left / self._rate(), self._ring, self._alarm)

    def _ring(self, alarm):
        if alarm != self._alarm:
            return
        self._advance()
        # To the demand's own end, so that rounding errors of `_advance` do not add up.
        self._virtual, _, call, arguments = heapq.heappop(self._demands)
        if self._demands:
            self._set_alarm()
        call(*arguments)


class Lock:
    """Lets at most so many demands at a time onto a processor, in the order in which they come."""

    def __init__(self, work, slots):
        self._work, self._free = work, slots
        self._waiting: Deque[Any] = collections.deque()

    def work(self, seconds, call, *arguments):
        """As `Processor.work`, once there is a slot."""
        self._waiting.append((seconds, call, arguments))
        self._start()

    def _start(self):
        while self._free and self._waiting:
            self._free -= 1
            seconds, call, arguments = self._waiting.popleft()
            self._work(seconds, self._done, call, arguments)

    def _done(self, call, arguments):
        self._free += 1
        self._start()
        call(*arguments)
