"""The chief's thread: takes messages, forms global batches, applies them, issues tickets.

It never blocks on a queue. It looks, works off what is there, and sleeps for about half of the time
that the next global batch still needs at the present rate, between MIN_NAP and MAX_NAP seconds.
"""

import json
import threading
import time

from semisync.compat import tf
from semisync.ledger import JOINED, Applied, Ledger

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

        Of the messages that are there only the greetings count: a worker may have come before.
        """
        self._withdraw()
        messages, _ = self._session.run([self._desk.take, self._optimizer.clear_shelves])
        for member, ticket, token in zip(*messages):
            if token == JOINED:
                self.ledger.receive(member.decode(), int(ticket), int(token))
        self._issue(undrawn=0)

    def finish(self):
        """Waits until every worker has left or is given up, and applies the rest; at the end."""
        self._finishing.set()
        self.join()
        self._coordinator.raise_requested_exception()

    def run(self):
        try:
            self._serve()
        except Exception as error:
            self._coordinator.request_stop(error)
            # The main thread may be waiting for a ticket: this wakes it, and it raises the error.
            self._session.close()

    def _serve(self):
        while not self._coordinator.should_stop():
            undrawn = self._receive()
            while self._apply(self.ledger.next_global_batch()):
                pass
            silent = self.ledger.seconds_since_news() > self._patience
            if self._finishing.is_set() and (silent or not self.ledger.members):
                self._leave()
                return
            if silent:
                self._presume_lost(undrawn)
            self._issue(undrawn)
            time.sleep(self._nap())

    def _receive(self):
        """Books every message that has come; returns how many tickets stand undrawn."""
        (members, tickets, tokens), undrawn, step = self._session.run(
            [self._desk.take, self._desk.undrawn, self._optimizer.global_step]
        )
        for member, ticket, token in zip(members, tickets, tokens):
            # Only a step that was restored from a checkpoint can lie behind a token. Nothing is
            # known of such a batch but that it is old: it gets the oldest token there is.
            self.ledger.receive(member.decode(), int(ticket), int(token) if token <= step else 0)
        now = time.monotonic()
        self._rate += 0.2 * (len(tickets) / max(now - self._looked, MIN_NAP) - self._rate)
        self._looked = now
        return int(undrawn)

    def _presume_lost(self, undrawn):
        """Gives up on the tickets in the workers' hands; says whose."""
        lost = self.ledger.in_hands(undrawn)
        if not lost:
            return
        self.ledger.presume_lost(lost)
        tf.logging.warning(
            "semisync: no word for %.0f s; %d batches are presumed lost. Silent: %s",
            self._patience,
            len(lost),
            ", ".join(sorted(self.ledger.members)) or "workers that never said a word",
        )

    def _leave(self):
        """Applies what is left as a smaller global batch, and leaves no ticket to draw."""
        if self.ledger.members:
            tf.logging.warning(
                "semisync: the chief ends without these workers, silent for %.0f s: %s",
                self._patience,
                ", ".join(sorted(self.ledger.members)),
            )
        self._apply(self.ledger.last_batches())
        self._withdraw()

    def _withdraw(self):
        options = tf.RunOptions(timeout_in_ms=1000)
        while True:
            try:
                self._session.run(self._desk.withdraw, options=options)
                return
            except tf.errors.DeadlineExceededError:
                continue  # a worker drew one of them meanwhile

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
            at, staleness, weights, _ = self._session.run(
                [step.step, step.staleness, step.weights, step.op], feed
            )
        applied = Applied(
            step=int(at),
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

    def _issue(self, undrawn):
        due = self.ledger.tickets_due(undrawn)
        if due:
            self._session.run(self._desk.issue, {self._desk.new_tickets: self.ledger.issue(due)})

    def _nap(self):
        needed = self.ledger.batches_per_step - len(self.ledger.pending)
        return min(max(needed / (self._rate + 1e-9) / 2, MIN_NAP), MAX_NAP)
