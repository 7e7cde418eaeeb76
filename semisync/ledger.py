"""The chief's account of every batch, in plain Python: what is out, what came, what became of it.

A *ticket* is the permission for one batch and its key on every PS: the chief issues each number
once. It comes back once, in a message:

    (member, ticket, token >= 0)   the batch stands staged on every PS; `token` is its token
    (member, ticket, GIVEN_BACK)   the worker ends and did not use the ticket
    (member, NO_TICKET, JOINED)    a worker's session begins

A run's tickets count on from the microsecond at which it began, so that a message of an earlier run
of the chief is known as such and never mixes with this one.

How many tickets are out decides the mode. Unpaced: there are always some waiting to be drawn, and
no worker ever waits. Paced: exactly M a global step, so that every batch of a step is computed from
that step's parameters and the staleness is zero.

Unpaced, max(M, workers) tickets are kept undrawn; besides, a worker holds one at most and fewer
than M batches are pending. So a PS holds at most max(M, workers) + workers + M payloads, and one
more for each run of a worker that failed or was killed between staging and telling, or that began
under an earlier chief, until the next chief begins.
"""

import collections
import time
from typing import Counter, Deque, Dict, Set

JOINED = -1
GIVEN_BACK = -2
NO_TICKET = -1

Commit = collections.namedtuple("Commit", "member ticket token")
Applied = collections.namedtuple("Applied", "step commits staleness weights")


class Ledger:
    """Tickets issued, batches pending, fates decided.

    Args:
      batches_per_step: M, the number of batches of a global step.
      paced: True issues M tickets a step (zero staleness), False always keeps some undrawn.
      first: the first ticket, greater than any of an earlier run; default: microseconds since 1970.
      clock: a function that returns seconds, monotonic.
    """

    def __init__(self, batches_per_step, paced=False, first=None, clock=time.monotonic):
        self.batches_per_step = batches_per_step
        self.paced = paced
        # Tickets in the order of issue, which is the order in which they are drawn.
        self.outstanding: Dict[int, None] = {}
        self.presumed_lost: Set[int] = set()
        self.pending: Deque[Commit] = collections.deque()
        self.members: Set[str] = set()
        self.fates: Counter[str] = collections.Counter()
        self.staleness: Counter[int] = collections.Counter()
        self._next = int(time.time() * 1e6) if first is None else first
        self._owed = batches_per_step  # paced: tickets to issue as soon as possible
        self._clock = clock
        self.last_news = clock()

    def issue(self, count):
        """Returns `count` new tickets, a list of ints."""
        tickets = list(range(self._next, self._next + count))
        self._next += count
        self.outstanding.update(dict.fromkeys(tickets))
        self.fates["issued"] += count
        return tickets

    def tickets_due(self, undrawn):
        """How many tickets to issue now, given that `undrawn` stand in the queue."""
        if self.paced:
            due = max(0, self._owed)
            self._owed -= due
            return due
        return max(0, max(self.batches_per_step, len(self.members)) - undrawn)

    def receive(self, member, ticket, token):
        """Books one message; a batch of an earlier run, or a second message, changes nothing."""
        self.last_news = self._clock()
        if token == GIVEN_BACK:
            self.members.discard(member)
        else:
            self.members.add(member)
        if token == JOINED:
            return
        if ticket in self.presumed_lost:
            self.presumed_lost.remove(ticket)
            self._owed -= 1  # another ticket was issued in its place
        elif ticket in self.outstanding:
            del self.outstanding[ticket]
        else:
            self.fates["foreign"] += 1
            return
        if token == GIVEN_BACK:
            self.fates["given back"] += 1
            self._owed += 1
            return
        self.pending.append(Commit(member, ticket, token))

    def next_global_batch(self):
        """The M batches to apply next, in order of arrival; None while there are fewer."""
        if len(self.pending) < self.batches_per_step:
            return None
        return [self.pending.popleft() for _ in range(self.batches_per_step)]

    def padding(self, count):
        """`count` numbers that no batch has, for the empty places of a partial global batch."""
        self._next += count
        return list(range(self._next - count, self._next))

    def last_batches(self):
        """Everything still pending, for the partial global batch at the end."""
        rest = list(self.pending)
        self.pending.clear()
        return rest

    def book(self, applied):
        """Books the fate of each batch of one `Applied` global step."""
        for staleness, weight in zip(applied.staleness, applied.weights):
            self.staleness[int(staleness)] += 1
            self.fates["admitted" if weight == 1 else "stale" if weight == 0 else "decayed"] += 1
        self._owed += self.batches_per_step

    def in_hands(self, undrawn):
        """The tickets that workers hold, when the last `undrawn` of those issued are undrawn."""
        return list(self.outstanding)[: len(self.outstanding) - undrawn]

    def presume_lost(self, tickets):
        """Counts tickets as lost; a paced run then issues as many anew.

        The batch of such a ticket that comes after all is still taken, with its exact staleness.
        """
        for ticket in tickets:
            del self.outstanding[ticket]
        self.presumed_lost.update(tickets)
        self._owed += len(tickets)

    def seconds_since_news(self):
        """Seconds since the last message."""
        return self._clock() - self.last_news

    def balance(self):
        """True when every ticket issued is accounted for: applied, pending, back, lost or out."""
        settled = sum(self.fates[name] for name in ("admitted", "decayed", "stale", "given back"))
        unsettled = len(self.pending) + len(self.outstanding) + len(self.presumed_lost)
        return self.fates["issued"] == settled + unsettled
