"""The chief's account of every batch, in plain Python: tickets that are out, batches, their fates.

A *ticket* is the permission for one batch and its key on every PS: the chief issues each number
once. `semisync.transport.messages` lists the workers' messages about it. Each ticket that was drawn
ends in exactly one of these ways, and no later message changes it:

    admitted, decayed, stale   its batch was applied, or found too late
    nonfinite                  a gradient of its batch held a NaN or an infinity
    repeated                   its batch had come under an earlier ticket, in a run that failed
                               after that
    returned                   no batch has used it
    lost                       a batch used it and did not come: its worker was killed, its run
                               failed, or no sign of life came from it for `patience` seconds

A run's tickets count up from the microsecond at which it began, so that a message of an earlier run
of the chief is recognised and never mixes with this one.

The number of tickets that are out decides the mode. Unpaced: some are always waiting to be drawn,
and no worker waits, unless batches come faster than they can be applied: the undrawn and the
pending together are kept at 2 max(M, workers). With `in_flight`, at most so many are out.
Paced: exactly M per global step, so that every batch of a step is computed from that step's
parameters and the staleness is zero. `pace` changes between the two: tickets that are out count for
the next global steps. Paced with `ahead` more tickets at the beginning, that many are out or
pending at each step beyond the M that it applies: the mean staleness is ahead / M
(`semisync.pacing`).

The chief never waits for a ticket that no worker holds:

1. A worker that begins, or begins again after a run that failed, holds none. It reports this
   (JOINED) before it draws; the ticket that its earlier session, or its predecessor at its place,
   held is given back.
2. Messages of an earlier session, or of a predecessor, may follow: a parameter server does not know
   yet that the connection broke. Their batches no longer count, and tickets that they have drawn
   are given back, since nobody waits for them.
3. A draw that is cut off between the ticket and the message leaves a ticket that is not in the
   queue, and that no message names. Both are ops of one PS, so that after UNANNOUNCED seconds it
   is given back. A `withdraw` that is cut off by its deadline leaves such tickets, too.

A batch counts once, however often it is repeated. A ticket's first message decides. A run whose
message came may fail after that, and be repeated, as MonitoredSession does, with another ticket:
the worker reports the ticket of the failed run (REPEATS), and if that batch came, the slot of the
next one is given to another.

A worker holds at most one ticket, and M batches are being applied. So a PS holds at most
2 max(M, workers) + workers + M payloads, besides those staged, in whole or in part, under tickets
that were lost or returned, which are swept `patience` seconds later. By then no worker should still
be staging one, and if one is, the message that follows has it swept again.
"""

import collections
import time
from typing import Any, Counter, Deque, Dict, List, NamedTuple, Optional, Set, Tuple

from semisync.fate import Fate, of_weight
from semisync.transport.messages import (
    ALIVE,
    JOINED,
    LEFT,
    NEVER_DRAWN,
    NONFINITE,
    REPEATS,
    STAGED,
    WITHHELD,
)

UNANNOUNCED = 5.0  # seconds for which a ticket may be drawn before a message names it


class Commit(NamedTuple):
    """A batch that waits for its global batch; `waited` is how long its ticket took, in us."""

    member: str
    ticket: int
    token: int
    withheld: bool
    waited: int


class Weighed(NamedTuple):
    """A batch of a global batch."""

    commit: Commit
    staleness: int
    weight: float


class Ledger:
    """Tickets issued, batches pending, fates decided.

    Args:
        batches_per_step: M, the number of batches of a global step.
        paced: True issues M tickets per step (zero staleness).
        ahead: if paced throughout, how many more tickets are out or pending.
        in_flight: how many tickets may be out at once, or None.
        keep_stale: True when a stale batch keeps its slot in the global batch.
        patience: seconds without a sign of life after which a worker's ticket is lost.
        first: the first ticket, greater than any of an earlier run; default: microseconds since
            1970.
        now: a function that returns seconds, monotonic.

    Attributes:
        fates: Counter of tickets by their fate, and of those "issued".
        staleness: Counter of applied batches by their staleness.
        members: {worker: when its last message came}.
        gone: places, as "/job:worker/task:3", of members that have ended and not come back.
        outstanding: {ticket that is out: its holder, or None}, in the order of issue, which is the
            order in which tickets are drawn.
        pending: the `Commit`s that wait for their global batch.
        dead: (when to sweep it, ticket) of tickets that ended without being applied, soonest first.
        in_turns: whether siblings in turns may leave a global batch smaller, see `chief.turns`.
        booked: the newest global step whose batches are booked, or None.
        broken: how many batches in a row were not finite; broken_of: the worker of the last one.
        events, settled: the events since `drain`, for the audit log and for the job state.
    """

    def __init__(
        self,
        batches_per_step,
        paced=False,
        ahead=0,
        in_flight=None,
        keep_stale=True,
        patience=120.0,
        first=None,
        now=time.monotonic,
    ):
        self.batches_per_step = batches_per_step
        self.paced = paced
        self.in_flight = in_flight
        self.keep_stale = keep_stale
        self.patience = patience
        self.first = int(time.time() * 1e6) if first is None else first
        self.outstanding: Dict[int, Optional[str]] = {}
        self.pending: Deque[Commit] = collections.deque()
        self.members: Dict[str, float] = {}
        self.gone: Set[str] = set()
        self.in_turns = False
        self.booked: Optional[int] = None
        self.broken = 0
        self.broken_of: Optional[str] = None
        self.fates: Counter[str] = collections.Counter()
        self.staleness: Counter[int] = collections.Counter()
        self.events: List[Dict[str, Any]] = []
        self.dead: Deque[Tuple[float, int]] = collections.deque()
        self.settled: List[Tuple[int, int, int]] = []  # ticket, fate, staleness
        self._holds: Dict[str, int] = {}
        self._sessions: Dict[str, int] = {}  # of each member: the newest
        self._came: Dict[str, int] = {}  # of each member: the last ticket whose batch came
        self._repeats: Set[str] = set()  # members whose next batch has come before
        self._replaced: Set[str] = set()  # members whose place another one has
        self._unannounced: Dict[int, float] = {}  # drawn by an unknown worker: since when
        self._next = self.first
        self._owed = batches_per_step + ahead  # paced: tickets to issue as soon as possible
        self._now = now

    # Tickets

    def issue(self, count):
        """Returns `count` new tickets, a list of ints."""
        tickets = self.numbers(count)
        self.outstanding.update(dict.fromkeys(tickets))
        self.fates["issued"] += count
        if tickets:
            self.events.append({"event": "issued", "tickets": tickets})
        return tickets

    def numbers(self, count):
        """`count` numbers that no ticket has, such as for the empty slots of a partial batch."""
        self._next += count
        return list(range(self._next - count, self._next))

    def pace(self, paced):
        """Changes between paced and unpaced; tickets that are out count for the next global
        steps."""
        if paced and not self.paced:
            # Tickets that are out already count towards the next step's M.
            self._owed = self.batches_per_step - len(self.outstanding) - len(self.pending)
        self.paced = paced

    def tickets_due(self, undrawn):
        """How many tickets to issue now, given that `undrawn` are in the queue."""
        if self.paced:
            # Below 0 after `pace`, while more tickets are out than a global step needs.
            due = max(0, self._owed)
            self._owed -= due
            return due
        due = 2 * max(self.batches_per_step, len(self.members)) - undrawn - len(self.pending)
        if self.in_flight is not None:
            due = self.in_flight - len(self.outstanding)
        return max(0, due)

    @property
    def rations(self):
        """True where a worker may have to wait for the next global step."""
        return self.paced or self.in_flight is not None

    @property
    def lacking(self):
        """How many messages to wait for; 0 when a global batch is complete.

        As many as it lacks batches: the tickets for these are out. With `in_flight` one, since each
        batch that comes back makes way for another; so in turns, once a worker is gone. Paced, a
        worker that draws a ticket says so before it sends its batch: a batch whose ticket nobody
        holds yet takes two messages.
        """
        lacking = max(0, self.batches_per_step - len(self.pending))
        if self.in_flight is not None or (self.in_turns and self.gone):
            return min(lacking, 1)
        if self.paced:
            held = sum(holder is not None for holder in self.outstanding.values())
            lacking += max(0, lacking - held)
        return lacking

    # Messages

    def receive(self, message):
        """Books one `Message`; one about a ticket that is settled changes nothing."""
        member, kind = message.member, message.kind
        past = self._is_past(message)
        if past:
            # Its batch no longer counts, and nobody else would return the ticket that it drew.
            self.lose(message.ticket)
            self._give_back(message.drawn)
        # For a past sender too: its ticket is lost by now, and a payload under it is only swept.
        if kind in (STAGED, WITHHELD, NONFINITE, LEFT):
            self._come_back(message)
        # A late sign of life must not enrol a member that has left.
        if past or (kind == ALIVE and member not in self.members):  # that one has left
            return
        self.members[member] = self._now()
        if kind == JOINED:
            self._begin(member, message.ticket)
            self._replace_predecessor(member)
        elif kind == REPEATS and message.ticket == self._came.get(member):
            self._repeats.add(member)
        if message.drawn != NEVER_DRAWN:
            self._hold(member, message.drawn)
        if kind == LEFT:
            self._forget(member)
        else:
            self.gone.discard(_place(member))

    def _is_past(self, message):
        """Whether the sender has ended: an earlier session, or a predecessor."""
        member, session = message.member, message.session
        newest = self._sessions.setdefault(member, session)
        self._sessions[member] = max(session, newest)
        if message.kind == JOINED and session >= newest:
            self._replaced.discard(member)
        return session < newest or member in self._replaced

    def _begin(self, member, last):
        """A member begins: it holds no ticket; `last` is the one that a batch of it used last."""
        self._repeats.discard(member)
        held = self._holds.get(member)
        if held == last:  # a batch has used it, and did not come
            self.lose(held)
        else:
            self._give_back(held)

    def _replace_predecessor(self, member):
        """A process that was started again replaces its predecessor."""
        place = _place(member)
        # Without a task several processes may share a place.
        if "/task:" not in place:
            return
        for other in [m for m in self.members if m != member and _place(m) == place]:
            self._forget(other)
            self._replaced.add(other)

    def _forget(self, member):
        self.lose(self._holds.get(member))
        self.members.pop(member, None)
        self.gone.add(_place(member))

    def _hold(self, member, ticket):
        # Still held at the next draw: a batch used it, and its message never came.
        self.lose(self._holds.pop(member, None))
        if ticket in self.outstanding:
            self._unannounced.pop(ticket, None)
            self.outstanding[ticket] = member
            self._holds[member] = ticket

    def _come_back(self, message):
        if message.ticket not in self.outstanding:
            if message.kind == STAGED:
                # Its payload is staged under a ticket that was given up: sweep it at once.
                self.fates["late"] += 1
                self.dead.appendleft((0.0, message.ticket))
            return
        if message.kind == LEFT:
            self._give_back(message.ticket)
            return
        self._take_back(message.ticket)
        self._came[message.member] = message.ticket
        if message.member in self._repeats:
            self._repeats.remove(message.member)
            # The batch had come under an earlier ticket: applied again it would count double.
            self._end(message.ticket, "repeated", member=message.member)
            self.settled.append((message.ticket, int(Fate.REPEATED), -1))
            self._owed += 1
            return
        if message.kind == NONFINITE:
            self._end(message.ticket, "nonfinite", member=message.member)
            self.settled.append((message.ticket, int(Fate.NONFINITE), -1))
            self._owed += 1
            self.broken, self.broken_of = self.broken + 1, message.member
            return
        withheld, self.broken = message.kind == WITHHELD, 0
        self.pending.append(
            Commit(message.member, message.ticket, message.token, withheld, message.waited)
        )

    def _take_back(self, ticket):
        holder = self.outstanding.pop(ticket)
        self._unannounced.pop(ticket, None)
        if holder is not None and self._holds.get(holder) == ticket:
            del self._holds[holder]

    def _end(self, ticket, fate, **more):
        """Ends a ticket without a batch."""
        self.fates[fate] += 1
        self.dead.append((self._now() + self.patience, ticket))
        self.events.append(dict(more, event=fate, ticket=ticket))

    def _give_back(self, ticket):
        """Ends a ticket that no batch has used, if it is out."""
        if ticket in self.outstanding:
            self._take_back(ticket)
            self._end(ticket, "returned")
            self._owed += 1

    def lose(self, ticket):
        """Gives up a ticket, if it is out."""
        if ticket not in self.outstanding:
            return
        member = self.outstanding[ticket]
        self._take_back(ticket)
        self._end(ticket, "lost", member=member)
        self.settled.append((ticket, int(Fate.LOST), -1))
        self._owed += 1

    def lose_the_silent(self, undrawn):
        """Gives up the tickets of members that were silent for `patience` seconds.

        Also the tickets that nobody holds, see the module.

        Args:
            undrawn: how many tickets are in the queue; of those that no worker announced, the
                others are drawn.

        Returns:
            The members given up, a list.
        """
        now = self._now()
        silent = []
        waiting = {commit.member for commit in self.pending} if self.in_turns else set()
        for member, heard in list(self.members.items()):
            if now - heard > self.patience and member not in waiting:
                silent += [member] if member in self._holds else []
                self._forget(member)
        unnamed = [ticket for ticket, holder in self.outstanding.items() if holder is None]
        # The queue is first in, first out: the oldest of the unnamed tickets are the drawn ones.
        drawn = unnamed[: max(0, len(unnamed) - undrawn)]
        self._unannounced = {ticket: self._unannounced.get(ticket, now) for ticket in drawn}
        for ticket, since in list(self._unannounced.items()):
            if now - since > min(UNANNOUNCED, self.patience):
                self._give_back(ticket)
        return silent

    def holders(self):
        """(member, seconds of silence) of every member that holds a ticket, longest first."""
        now = self._now()
        silence = [(member, now - self.members.get(member, now)) for member in self._holds]
        return sorted(silence, key=lambda pair: -pair[1])

    def to_sweep(self):
        """Tickets under which a payload may be staged that will not be applied."""
        now, due = self._now(), []
        while self.dead and self.dead[0][0] <= now:
            due.append(self.dead.popleft()[1])
        return due

    # Global batches

    def next_global_batch(self, clock, weigh):
        """The next M batches, in order of arrival, a list of `Weighed`; None while there are fewer.

        Args:
            clock: the global step at which they are to be applied.
            weigh: list of stalenesses -> list of weights.
        """
        if len(self.pending) < self.batches_per_step:
            return None
        # Without the stale ones, later batches may be needed to fill the M.
        count = self.batches_per_step if self.keep_stale else len(self.pending)
        weighed = self._weighed([self.pending[i] for i in range(count)], clock, weigh)
        if not self.keep_stale:
            weighed = self._without_the_stale(weighed)
            if len(weighed) < self.batches_per_step:
                return None
        for entry in weighed[: self.batches_per_step]:
            self.pending.remove(entry.commit)
        return weighed[: self.batches_per_step]

    def last_global_batch(self, clock, weigh):
        """Everything still pending, fewer than M: the partial global batch at the end."""
        rest = self._weighed(list(self.pending), clock, weigh)
        if not self.keep_stale:
            rest = self._without_the_stale(rest)
        self.pending.clear()
        return rest

    @staticmethod
    def _weighed(commits, clock, weigh):
        # Only a worker that drew its token before the variables were restored can be ahead of the
        # clock. The age of such a batch is not known, so it counts as the oldest.
        staleness = [clock - c.token if c.token <= clock else clock for c in commits]
        weights = [0.0 if c.withheld else w for c, w in zip(commits, weigh(staleness))]
        return [Weighed(*entry) for entry in zip(commits, staleness, weights)]

    def _without_the_stale(self, weighed):
        """Gives back the slots of stale batches; returns the other batches."""
        for entry in weighed:
            if entry.weight == 0:
                self.pending.remove(entry.commit)
                self._settle(entry)
                self.events.append(dict(audited(entry), event="dropped"))
                self._owed += 1
                if not entry.commit.withheld:
                    # It came whole: nobody stages under its ticket any more.
                    self.dead.appendleft((0.0, entry.commit.ticket))
        return [entry for entry in weighed if entry.weight != 0]

    def _settle(self, entry):
        fate = of_weight(entry.weight)
        self.fates[fate.name.lower()] += 1
        self.staleness[entry.staleness] += 1
        self.settled.append((entry.commit.ticket, int(fate), entry.staleness))

    def book(self, step, weighed):
        """Books the fate of each batch of one global step, before it is applied."""
        for entry in weighed:
            self._settle(entry)
        self.booked = step
        self._owed += len(weighed)
        self.events.append(
            {"event": "step", "step": step, "batches": [audited(entry) for entry in weighed]}
        )

    def withdrawn(self, tickets):
        """Books tickets that were taken back from the queue."""
        for ticket in tickets:
            self._give_back(ticket)

    def drain(self, name):
        """Returns the list `events` or `settled` and leaves it empty."""
        drained = getattr(self, name)
        setattr(self, name, [])
        return drained

    def balance(self):
        """True when every ticket issued is settled, pending or out."""
        names = [fate.name.lower() for fate in Fate] + ["returned"]
        settled = sum(self.fates[name] for name in names)
        return self.fates["issued"] == settled + len(self.pending) + len(self.outstanding)


def _place(member):
    return member.partition(" ")[0]


def audited(entry):
    """A `Weighed` in the form of the audit log."""
    return dict(entry.commit._asdict(), staleness=entry.staleness, weight=entry.weight)
