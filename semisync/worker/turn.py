"""A worker's turn: the steps before a run that trains an optimizer without one of its siblings.

The protocol is `semisync.wrapped.turns`. To wait for a global step the worker asks the parameter
server: first after half of the previous wait, and then again after each eighth of the time that it
has waited.
"""

import time

from semisync.worker.trains_in import TrainsIn

SOONEST, LATEST = 0.0005, 0.05  # seconds between two questions


class Turn:
    """The turn of one worker, for one optimizer in one session.

    Args:
        ops: the `Turns` of the optimizer.
        draws_between_runs: whether a ticket is drawn just before the run.
    """

    def __init__(self, ops, draws_between_runs):
        self._ops, self._draws_between_runs = ops, draws_between_runs
        self._trained_with = [TrainsIn(other.state) for other in ops.others]
        self._noted = set()
        self._takes_turns = self._waits = self._has_failed = False
        self._waited = 0.0  # the last time

    def wait(self, session):
        """Waits until the batch of the last turn is applied, where the optimizer is paced."""
        if not self._waits:
            return
        began = time.monotonic()
        time.sleep(min(self._waited / 2, LATEST))
        while not session.run(self._ops.settled):
            time.sleep(min(max((time.monotonic() - began) / 8, SOONEST), LATEST))
        self._waited, self._waits = time.monotonic() - began, False

    def begin(self, session, fetches):
        """Before a run that trains the optimizer: records which siblings it leaves out.

        Args:
            fetches: of the run.
        """
        left_out = {
            number for number, trains in enumerate(self._trained_with) if not trains(fetches)
        }
        new = left_out - self._noted
        if new:
            session.run([self._ops.others[number].note for number in new])
            self._noted |= new
        self._takes_turns = bool(left_out)

    def renew(self, session):
        """Reads the token of the ticket anew, in a turn, where that is of an earlier run."""
        if self._takes_turns and (self._has_failed or not self._draws_between_runs):
            session.run(self._ops.renew)
        self._has_failed = True  # until `end`, which a run that fails does not reach

    def end(self):
        """Called after each run that has succeeded."""
        self._waits = self._waits or (self._takes_turns and self._ops.waits)
        self._takes_turns = self._has_failed = False
