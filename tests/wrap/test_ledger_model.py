"""The protocol between workers and ledger, explored exhaustively: every order of what may happen.

The ledger is the real one. Around it, in plain Python, are the two queues, and workers that do what
the ops of `semisync.worker.operations` and the hook do, one op at a time. Wherever a run can fail
it fails, in one order or another, and what it had under way on the parameter server is cut off
there, or goes on later, at any time: as over a connection of which one end does not know that it
broke. Then the worker does what MonitoredSession does: a new session, and the same run once more.

In each order every worker ends without a second of anybody's patience, each batch counts once, and
no ticket is left that nobody has. A ticket whose draw was cut off between the ticket and the
message takes UNANNOUNCED seconds.
"""

import copy

import pytest

from semisync.chief.ledger import UNANNOUNCED, Ledger
from semisync.transport.messages import (
    DRAWN,
    JOINED,
    LEFT,
    NEVER_DRAWN,
    REPEATS,
    STAGED,
    Message,
)

M, BATCHES = 2, (2, 1)  # of each worker; the first one fails
MODES = {"unpaced": {}, "paced": {"paced": True}, "in_flight": {"in_flight": 2}}
# What a run of each mode does. The parameter server does the ops in capitals.
LOCAL = [("spend",), ("hold",), ("done",), ("trained",)]
DRAW = ("DRAW", "ANNOUNCE", "hold", "done")
TRAIN = {
    "unpaced": ("spend", "DRAW", "STAGE AND ANNOUNCE", "hold", "trained"),
    "paced": ("spend", "STAGE", "trained"),
    "in_flight": ("spend", "STAGE", "DRAW", "ANNOUNCE", "hold", "trained"),
}


class Worker:
    """One process: its worker state, its hook, and the run that is under way."""

    def __init__(self, name, mode, batches):
        self.name, self.mode, self.batches = name, mode, batches
        self.session, self.ticket, self.last = 0, None, NEVER_DRAWN
        self.batch = 0
        self.spent = self.drawn = None  # in this run
        self.sent_as = ()
        self.ops = ("join",)

    def key(self):
        return tuple(vars(self).values())


class World:
    """The queues, the ledger, the workers, and what goes on of runs that failed."""

    def __init__(self, mode, lazy):
        self.now, self.lazy = 0.0, lazy
        self.ledger = Ledger(M, patience=1e9, first=1000, now=lambda: 0.0, **MODES[mode])
        names = ["/job:worker/task:%d p" % task for task in range(len(BATCHES))]
        self.workers = [Worker(name, mode, count) for name, count in zip(names, BATCHES)]
        self.ghosts = ()  # (worker's name, session, spent, drawn, ops)
        self.tickets, self.messages = (), ()
        self.used = {}  # ticket -> (worker, batch)
        self.applied = ()  # (worker, batch)
        self.failures = 0
        self.issue()

    def copy(self):
        other = copy.copy(self)
        other.workers = [copy.copy(worker) for worker in self.workers]
        other.used = dict(self.used)
        other.ledger = copy.copy(self.ledger)
        containers = (dict, list, set, type(self.ledger.pending))
        for name, value in vars(self.ledger).items():
            if isinstance(value, containers):
                setattr(other.ledger, name, copy.copy(value))
        return other

    def key(self):
        book = self.ledger
        return (
            *(worker.key() for worker in self.workers),
            *(self.tickets, self.messages, self.ghosts, self.applied, self.failures),
            *(tuple(book.outstanding.items()), tuple(book.pending), frozenset(book.members)),
            *(book._owed, book._next, frozenset(book._sessions.items()), frozenset(book._repeats)),
        )

    # The chief

    def issue(self):
        due = self.ledger.tickets_due(len(self.tickets))
        self.tickets += tuple(self.ledger.issue(due))

    def serve(self):
        """The chief takes the messages that are there; a lazy one, once there are enough."""
        if len(self.messages) < (max(1, self.ledger.lacking) if self.lazy else 1):
            return False
        for message in self.messages:
            self.ledger.receive(message)
        self.messages = ()
        self.ledger.drain("settled"), self.ledger.drain("events")
        self.apply(lambda: self.ledger.next_global_batch(9, lambda late: [1.0] * len(late)))
        self.issue()
        assert self.ledger.balance()
        return True

    def apply(self, next_batch):
        weighed = next_batch()
        while weighed:
            self.ledger.book(9, weighed)
            batches = tuple(self.used[entry.commit.ticket] for entry in weighed)
            self.applied += batches
            assert len(set(self.applied)) == len(self.applied), self.applied
            weighed = next_batch()

    def wake(self):
        """The second thread has the chief take what is there, and look for what nobody tells."""
        lazy, self.lazy = self.lazy, False
        self.serve()
        self.lazy = lazy
        before = len(self.tickets)
        for now in (0.0, UNANNOUNCED + 1):
            self.ledger._now = lambda now=now: now
            self.ledger.lose_the_silent(len(self.tickets))
        self.ledger._now = lambda: 0.0
        self.issue()
        return len(self.tickets) > before

    # The workers

    def send(self, worker, kind, ticket, drawn=NEVER_DRAWN, session=None):
        session = worker.session if session is None else session
        self.messages += (Message(worker.name, kind, ticket, 0, 0, drawn, session),)

    def remote(self, number, op, session, spent, drawn):
        """An op on the parameter server; returns the ticket that was drawn."""
        worker = self.workers[number]
        if op == "DRAW":
            drawn, self.tickets = self.tickets[0], self.tickets[1:]
        elif op == "ANNOUNCE":
            self.send(worker, DRAWN, NEVER_DRAWN, drawn, session)
        elif op == "STAGE":
            self.send(worker, STAGED, spent, NEVER_DRAWN, session)
        elif op == "STAGE AND ANNOUNCE":
            self.send(worker, STAGED, spent, drawn, session)
        return drawn

    def act(self, number):
        """The next op of a worker."""
        worker = self.workers[number]
        op, worker.ops = worker.ops[0], worker.ops[1:]
        if op.isupper():
            worker.drawn = self.remote(number, op, worker.session, worker.spent, worker.drawn)
        elif op == "join":
            worker.session += 1
            worker.ticket = None
            self.send(worker, JOINED, worker.last)
            for ticket in worker.sent_as:
                self.send(worker, REPEATS, ticket)
            self.go_on(worker)
        elif op == "spend":
            worker.spent = worker.last = worker.ticket
            worker.ticket = None
            self.used[worker.spent] = (worker.name, worker.batch)
        elif op == "hold":
            worker.ticket = worker.drawn
        elif op == "done":
            self.go_on(worker)
        elif op == "trained":
            worker.batch += 1
            worker.sent_as = ()
            self.go_on(worker)
        elif op == "leave":
            self.send(worker, LEFT, worker.last if worker.ticket is None else worker.ticket)

    def go_on(self, worker):
        """The next run of a worker."""
        worker.spent = worker.drawn = None
        if worker.batch == worker.batches:
            worker.ops = ("leave",)
        elif worker.ticket is None:
            worker.ops = DRAW
        else:
            worker.ops = TRAIN[worker.mode]

    def fail(self, number, goes_on):
        """A worker's run fails; what it has under way on the PS goes on, or is cut off."""
        worker = self.workers[number]
        if worker.ops in ((), ("join",), ("leave",)):
            return False
        self.failures += 1
        began = worker.spent is not None or worker.ops[0] == "DRAW"
        rest = tuple(op for op in worker.ops if op.isupper()) if began else ()
        if goes_on:
            if not rest:
                return False
            self.ghosts += ((number, worker.session, worker.spent, worker.drawn, rest),)
        if worker.spent is not None:
            worker.sent_as += (worker.spent,)
        worker.ops, worker.spent, worker.drawn = ("join",), None, None
        return True

    def haunt(self, number):
        """The next op of a run that failed."""
        who, session, spent, drawn, ops = self.ghosts[number]
        drawn = self.remote(who, ops[0], session, spent, drawn)
        ghosts = list(self.ghosts)
        ghosts[number : number + 1] = [(who, session, spent, drawn, ops[1:])] if ops[1:] else []
        self.ghosts = tuple(ghosts)

    def ready(self, ops):
        return ops and (ops[0] != "DRAW" or self.tickets)

    def followers(self, failures):
        """Every world that may follow.

        What a worker does by itself between two ops on the PS nobody else sees: it follows at once.
        """
        for number, worker in enumerate(self.workers):
            if not self.ready(worker.ops):
                continue
            world = self.after(World.act, number)
            yield from world.failed(number, failures)
            while world.workers[number].ops[:1] in LOCAL:
                world = world.after(World.act, number)
                yield from world.failed(number, failures)
            yield world
        for number, ghost in enumerate(self.ghosts):
            if self.ready(ghost[-1]):
                yield self.after(World.haunt, number)

    def failed(self, number, failures):
        """The worlds in which the run of the worker fails now; the first alone: they are alike."""
        if number == 0 and self.failures < failures:
            for goes_on in (False, True):
                world = self.copy()
                if world.fail(number, goes_on):
                    world.settle()
                    yield world

    def after(self, step, number):
        world = self.copy()
        step(world, number)
        world.settle()
        return world

    def settle(self):
        while self.serve():
            pass

    def finish(self, withdraw_is_cut_off):
        """All have left: nothing is out, and each batch counted once."""
        assert not self.ghosts or all(ghost[-1][0] == "DRAW" for ghost in self.ghosts)
        self.wake()
        assert not self.ledger.members
        if withdraw_is_cut_off:
            self.tickets = ()
            self.wake()
        self.ledger.withdrawn(self.tickets)
        assert not self.ledger.outstanding
        last = [self.ledger.last_global_batch(9, lambda late: [1.0] * len(late))]
        self.apply(lambda: last.pop() if last else None)
        assert sorted(self.applied) == sorted(
            (worker.name, batch) for worker in self.workers for batch in range(worker.batches)
        )


def explore(mode, lazy, failures):
    """Follows every order; returns in how many worlds all have ended."""
    worlds, seen, ends = [World(mode, lazy)], set(), 0
    while worlds:
        world = worlds.pop()
        key = world.key()
        if key in seen:
            continue
        seen.add(key)
        following = list(world.followers(failures))
        worlds += following
        if following:
            continue
        if not any(worker.ops for worker in world.workers):
            for cut_off in (False, True):
                world.copy().finish(cut_off)
            ends += 1
            continue
        waited = world.copy()
        messages = len(waited.messages)
        gained = waited.wake()
        waited.settle()
        assert gained or messages, "a worker waits for a ticket that nobody has"
        worlds.append(waited)
    return ends


@pytest.mark.few(1)
@pytest.mark.one_tensorflow
@pytest.mark.parametrize(
    "mode, lazy", [("paced", False), ("paced", True), ("unpaced", True), ("in_flight", False)]
)
def test_no_order_of_runs_and_failures_leaves_a_ticket_that_nobody_has(mode, lazy):
    assert explore(mode, lazy, failures=1) > 10
