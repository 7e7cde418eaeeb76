"""The chief's thread: takes messages, forms global batches, applies them, issues tickets.

It never blocks on a queue. It looks, works off what is there, and sleeps for about half of the time
that the next global batch still needs at the present rate, between MIN_NAP and MAX_NAP seconds.
"""

import json
import threading
import time

from semisync.compat import tf
from semisync.ledger import Applied, Ledger

MIN_NAP = 0.0005
MAX_NAP = 0.05


class Chief(threading.Thread):
    """Applies global batches through one session until it is told to finish, or fails.

    Args:
      optimizer: the `GlobalBatchOptimizer`, its graph built.
      session: a raw tf.Session.
      coordinator: of that session; a failure here stops it and is raised in the main thread.
      quiet: a lock held while the variables change, so that a checkpoint sees whole steps.
      patience: seconds without a message after which drawn tickets are presumed lost.
      audit: a path for the JSON-lines audit log, or None.
    """

    def __init__(self, optimizer, session, coordinator, quiet, patience, audit):
        super().__init__(name="semisync-chief", daemon=True)
        self._optimizer = optimizer
        self._desk = optimizer.desk
        self._step = optimizer.apply_step
        self._session = session
        self._coordinator = coordinator
        self._quiet = quiet
        self._patience = patience
        self._audit = audit
        self._finishing = threading.Event()
        self._rate = 1 / MIN_NAP  # batches a second, smoothed over the last looks
        self._looked = time.monotonic()
        self.ledger = Ledger(optimizer.batches_per_step, paced=optimizer.paced)

    def open(self):
        """Throws away what an earlier run left on the PS, then issues the first tickets.

        Messages that are there already tell who lives; their batches are the earlier run's.
        """
        self._session.run([self._desk.withdraw, self._optimizer.clear_shelves])
        self._issue(self._receive())

    def finish(self):
        """Waits until every worker has left or is given up, and applies the rest; at the end."""
        self._finishing.set()
        self.join()

    def run(self):
        with self._coordinator.stop_on_exception():
            while not self._coordinator.should_stop():
                waiting = self._receive()
                while self._apply(self.ledger.next_global_batch()):
                    pass
                self._issue(waiting)
                nobody = self._idle_too_long(waiting) or not self.ledger.members
                if nobody and self._finishing.is_set():
                    self._apply(self.ledger.last_batches())
                    return
                time.sleep(self._nap())

    def _receive(self):
        """Books every message that has come; returns how many tickets stand undrawn."""
        (members, tickets, tokens), waiting = self._session.run(
            [self._desk.take, self._desk.waiting]
        )
        for member, ticket, token in zip(members, tickets, tokens):
            self.ledger.receive(member.decode(), int(ticket), int(token))
        now = time.monotonic()
        self._rate += 0.2 * (len(tickets) / max(now - self._looked, MIN_NAP) - self._rate)
        self._looked = now
        return int(waiting)

    def _apply(self, commits):
        """Applies one global batch, whole or partial; returns False when there is none."""
        if not commits:
            return False
        missing = self.ledger.batches_per_step - len(commits)
        empty = self.ledger.padding(missing)
        step = self._step
        for ticket in empty:
            places = [ticket] * self.ledger.batches_per_step
            self._session.run(step.pad, {step.tickets: places})
        feed = {
            step.tickets: [commit.ticket for commit in commits] + empty,
            step.tokens: [commit.token for commit in commits] + [0] * missing,
            step.count: len(commits),
        }
        with self._quiet:
            staleness, weights, _ = self._session.run([step.staleness, step.weights, step.op], feed)
        applied = Applied(
            step=int(staleness[0]) + commits[0].token,
            commits=commits,
            staleness=staleness[: len(commits)].tolist(),
            weights=weights[: len(commits)].tolist(),
        )
        self.ledger.book(applied)
        self._write(applied)
        return True

    def _write(self, applied):
        if self._audit is None:
            return
        rows = zip(applied.commits, applied.staleness, applied.weights)
        batches = [dict(c._asdict(), staleness=s, weight=w) for c, s, w in rows]
        with open(self._audit, "a") as log:
            log.write(json.dumps({"step": applied.step, "batches": batches}) + "\n")

    def _issue(self, waiting):
        due = self.ledger.tickets_due(waiting)
        if due:
            self._session.run(self._desk.issue, {self._desk.new_tickets: self.ledger.issue(due)})

    def _idle_too_long(self, waiting):
        """True once nothing has come for `patience` seconds; says who is missing."""
        if self.ledger.seconds_since_news() < self._patience or not self.ledger.in_hands(waiting):
            return False
        lost = self.ledger.presume_lost(waiting)
        tf.logging.warning(
            "semisync: no batch for %.0f s; %d tickets are presumed lost. Not heard from: %s",
            self._patience,
            lost,
            ", ".join(sorted(self.ledger.members)) or "anybody",
        )
        return True

    def _nap(self):
        needed = self.ledger.batches_per_step - len(self.ledger.pending)
        return min(max(needed / (self._rate + 1e-9) / 2, MIN_NAP), MAX_NAP)
