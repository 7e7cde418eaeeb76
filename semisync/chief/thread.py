"""The chief's thread: takes messages, forms global batches, applies them, issues tickets.

It never blocks on a queue. It looks, works off what is there, and sleeps for the time that the next
global batch still needs at the present rate, between MIN_NAP and MAX_NAP seconds; where the workers
wait for it, no longer than PACED_NAP.
"""

import threading
import time

from semisync.audit import AuditLog
from semisync.chief.ledger import Ledger
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from semisync.transport import mailbox as desks
from semisync.transport.job_state import ENDED, GAUGES

MIN_NAP = 0.001
MAX_NAP = 0.05
PACED_NAP = 0.003
POST_EVERY = 1.0  # seconds between two postings on the board
STALLED = 30.0  # seconds without a global step after which the chief says who is missing


class Chief(threading.Thread):
    """Applies global batches through one session until it is told to finish, or fails.

    Args:
      handles: the `Handles` of the session's graph.
      session: a raw tf.Session.
      coordinator: of that session; a failure here stops it and is raised in the main thread.
      quiet: a lock held while the variables change, so that a checkpoint sees whole steps.
      patience: seconds of silence after which what a worker holds is lost.
      audit: a path for the audit log, or None.
      observed: list of (fetches, function): see `GlobalBatchHook.observe`.
    """

    def __init__(self, handles, session, coordinator, quiet, patience, audit, observed):
        super().__init__(name="semisync-chief", daemon=True)
        self._handles = handles
        self._desk, self._board = handles.desk, handles.board
        self._assembly, self._step = handles.assembly, handles.step
        self._session = session
        self._coordinator = coordinator
        self._quiet = quiet
        self._audit = AuditLog(audit)
        self._observed = observed
        self._finishing = threading.Event()
        self._rate = 1 / MIN_NAP  # batches a second, smoothed over the last looks
        self._looked = self._posted = self._progress = time.monotonic()
        self.beats = 0  # signs of life
        self._pace = 0  # us a global step
        self._waited = 0.0  # us, the mean over the last global batch
        self._clock = self._posted_clock = 0
        self._undrawn = 0
        self._weights = {}  # staleness -> weight
        self.ledger = Ledger(
            handles.batches_per_step,
            paced=handles.paced,
            in_flight=handles.in_flight,
            keep_stale=handles.on_stale == "keep",
            patience=patience,
        )

    def open(self, settings):
        """Throws away what an earlier run left on the PS.

        Of the messages that are there only the greetings count: a worker may have come before.
        """
        board = self._board
        # First of all, so that a chief that still runs ends before the shelves are emptied: what it
        # is about to take it would wait for, and with it every thread of the PS.
        self._session.run(board.claim, {board.new_epoch: self.ledger.first})
        self._withdraw()
        self._session.run(self._handles.clear_shelves)
        taken = self._session.run(self._desk.take, {self._desk.new_tickets: []})
        for message in desks.messages(taken):
            if message.kind == desks.JOINED:
                self.ledger.receive(message)
        self._clock = int(self._session.run(self._handles.first_clock))
        self._posted_clock = self._clock
        self._session.run(board.open, {board.new_clock: self._clock, board.new_settings: settings})
        self._audit.write([{"event": "begin", "step": self._clock, "first": self.ledger.first}])

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
            self._look()
            self._lose_the_silent()
            self._post()
            applied = self._apply(self.ledger.next_global_batch(self._clock, self._weigh))
            if applied and (self.ledger.rations or self.ledger.full):
                continue  # workers wait for tickets, or the next global batch is there
            if self._finishing.is_set() and not self.ledger.members:
                self._leave()
                return
            for ticket in self.ledger.to_sweep():
                self._on_ticket(self._assembly.sweep, ticket)
            self._complain()
            time.sleep(self._nap())

    def _look(self):
        """Issues the tickets that are due and books every message that has come."""
        tickets = self.ledger.issue(self.ledger.tickets_due(self._undrawn))
        self._audit.write(self.ledger.drain("events"))
        taken, undrawn, epoch = self._session.run(
            [self._desk.take, self._desk.undrawn, self._board.read_epoch],
            {self._desk.new_tickets: tickets},
        )
        if epoch != self.ledger.first:
            raise SemisyncError(
                "another process has become chief: pass is_chief=True to make_session_run_hook in "
                "one process only"
            )
        self._undrawn = int(undrawn)
        found = desks.messages(taken)
        for message in found:
            if message.kind == desks.DISAGREED:
                raise SemisyncError(message.member)
            self.ledger.receive(message)
        now = time.monotonic()
        came = sum(message.kind == desks.STAGED for message in found)
        self._rate += 0.4 * (came / max(now - self._looked, MIN_NAP) - self._rate)
        self._looked = now

    def _lose_the_silent(self):
        for member in self.ledger.lose_the_silent(self._undrawn):
            tf.logging.warning(
                "semisync: no word for %.0f s from %s: its batch is lost",
                self.ledger.patience,
                member or "a worker that never said a word",
            )

    def _complain(self):
        """Says once who is missing when no global batch comes together."""
        stalled = time.monotonic() - self._progress
        if stalled < STALLED:
            return
        self._progress = float("inf")  # until the next global step
        tf.logging.warning(
            "semisync: no global step for %.0f s: %d of %d batches are there; out: %s",
            stalled,
            len(self.ledger.pending),
            self.ledger.batches_per_step,
            ", ".join("%s (silent for %.0f s)" % pair for pair in self.ledger.holders()) or "none",
        )

    def _leave(self):
        """Applies what is left as a smaller global batch, and leaves no ticket to draw."""
        self._apply(self.ledger.last_global_batch(self._clock, self._weigh))
        self.ledger.withdrawn(self._withdraw())
        for ticket in list(self.ledger.outstanding):
            self.ledger.lose(ticket)
        for _, ticket in self.ledger.dead:
            self._on_ticket(self._assembly.sweep, ticket)
        self._record_fates()
        self._audit.write(self.ledger.drain("events") + [{"event": "end"}])
        self.beats = ENDED
        self._write_board()

    def _withdraw(self):
        """Takes back the tickets that stand undrawn; returns them."""
        options = tf.RunOptions(timeout_in_ms=1000)
        while True:
            try:
                return self._session.run(self._desk.withdraw, options=options).tolist()
            except tf.errors.DeadlineExceededError:
                continue  # a worker drew one of them meanwhile

    def _weigh(self, staleness):
        """The policy's weight of each staleness."""
        if not self._step.lasting:
            self._weights = {}
        new = sorted(set(staleness) - set(self._weights))
        if new:
            found = self._session.run(self._step.weights, {self._step.staleness: new})
            self._weights.update(zip(new, found.tolist()))
        return [self._weights[s] for s in staleness]

    def _apply(self, weighed):
        """Applies one global batch, whole or partial; returns False when there is none."""
        if not weighed:
            self._record_fates()  # of batches that were dropped
            return False
        assembly, size = self._assembly, self.ledger.batches_per_step
        share = size / len(weighed)
        for commit, _, weight in weighed:
            if commit.withheld:
                self._on_ticket(assembly.fill, commit.ticket)
            elif weight == 0:
                self._on_ticket(assembly.blank, commit.ticket)
            elif weight != 1 or share != 1:
                feed = {assembly.weight: weight, assembly.share: share}
                self._on_ticket(assembly.weigh, commit.ticket, feed)
        empty = self.ledger.numbers(size - len(weighed))
        for ticket in empty:
            self._on_ticket(assembly.fill, ticket)
        self.ledger.book(self._clock, weighed)
        feed = {
            assembly.tickets: [entry.commit.ticket for entry in weighed] + empty,
            self._board.new_fates: self.ledger.drain("settled"),
        }
        # Where tickets are rationed they come after the step, with the next look.
        due = 0 if self.ledger.rations else self.ledger.tickets_due(self._undrawn)
        feed[self._desk.new_tickets] = self.ledger.issue(due)
        self._undrawn += due
        fetches = [self._step.op, self._desk.issue, [fetch for fetch, _ in self._observed]]
        while not self._quiet.acquire(timeout=POST_EVERY):
            self._post()  # a checkpoint may take long
        try:
            clock, (_, _, observed) = self._session.run([self._step.clock, fetches], feed)
            self._clock = int(clock)
            # Before any checkpoint can hold the step: the log may know more than it, never less.
            self._audit.write(self.ledger.drain("events"))
        finally:
            self._quiet.release()
        for (_, look), values in zip(self._observed, observed):
            look(self._clock - 1, values)
        self._waited = sum(entry.commit.waited for entry in weighed) / len(weighed)
        self._progress = time.monotonic()
        return True

    def _on_ticket(self, op, ticket, more=()):
        self._session.run(op, {self._assembly.ticket: ticket, **dict(more)})

    def _record_fates(self):
        settled = self.ledger.drain("settled")
        if settled:
            self._session.run(self._step.record, {self._board.new_fates: settled})

    def _post(self):
        """Gives a sign of life, and the gauges."""
        passed = time.monotonic() - self._posted
        if passed < POST_EVERY:
            return
        steps = self._clock - self._posted_clock
        self._pace = int(1e6 * passed / steps) if steps else 0
        self._posted, self._posted_clock = self._posted + passed, self._clock
        self.beats += 1
        self._write_board()

    def _write_board(self):
        ledger = self.ledger
        gauges = dict(
            ledger.fates,
            in_flight=len(ledger.holders()),
            pending=len(ledger.pending),
            waiting_seconds=self._waited / 1e6,
        )
        feed = {
            self._board.new_beats: self.beats,
            self._board.new_pace: self._pace,
            self._board.new_gauges: [gauges.get(name, 0) for name in GAUGES],
        }
        self._session.run(self._board.post, feed)

    def _nap(self):
        needed = self.ledger.batches_per_step - len(self.ledger.pending)
        longest = PACED_NAP if self.ledger.paced else MAX_NAP
        return min(max(needed / (self._rate + 1e-9), MIN_NAP), longest)
