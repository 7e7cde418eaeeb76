"""The chief's thread: takes messages, forms global batches, applies them, issues tickets.

It waits on the parameter server until there are as many messages as the next global batch lacks
batches. Tickets for that many batches are always out. A second thread wakes it every WAKE_EVERY
seconds, to check for events without a message: whether it should stop, whether a worker is silent,
whether the heartbeat is due.

A global step costs it one run, which applies a global batch, issues tickets and takes the messages
of the next. It takes two, one to apply and one to take, if tickets are rationed, since they come
after the step; if there are observers of the step; and if the step lock is wanted by a checkpoint,
or by the chief of another optimizer of the graph.
"""

import collections
import threading
import time
from typing import Counter

from semisync import pacing
from semisync.audit import AuditLog
from semisync.chief import turns
from semisync.chief.ledger import Ledger
from semisync.chief.operations import step_request
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from semisync.staleness import PROBES, fresh_steps
from semisync.transport import mailbox
from semisync.transport.job_state import GAUGES, SUPERSEDED, ended_at
from semisync.transport.messages import DISAGREED, JOINED, LEFT

WAKE_EVERY = 1.0  # seconds
WITHDRAW_WITHIN = 5.0  # seconds
HAND_OVER = 1.0  # seconds for an earlier chief to finish its global step
PUBLISH_EVERY = 1.0  # seconds between two writes of the job state
ENDURED = 100  # non-finite batches in a row; more if more are under way
STALE_OF = 100  # the least number of batches, most of them too stale, before the chief warns
STALLED = 30.0  # seconds without a global step after which the chief names the missing


class Chief(threading.Thread):
    """Applies global batches through one session until `finish` is called, or it fails.

    Args:
        handles: the `Handles` of the session's graph.
        session: a raw tf.Session.
        coordinator: of that session; a failure here stops it and is raised in the main thread.
        steps: the graph's `WholeSteps`, whose lock is held while the variables change.
        patience: seconds of silence after which a worker's ticket is lost.
        audit: a path for the audit log, or None.
        observers: list of (fetches, function): see `GlobalBatchHook.observe`.
        turns: the `Turns` of the optimizer, or None.
    """

    def __init__(
        self, handles, session, coordinator, steps, patience, audit, observers, turns=None
    ):
        super().__init__(name="semisync-chief", daemon=True)
        self._ops, self._number = handles.chief, handles.number
        self._session = session
        self._coordinator = coordinator
        self._steps = steps
        self._paced = pacing.checked(handles.settings.paced)
        self._on_nonfinite, self._warned_of = handles.settings.on_nonfinite, 0
        self._judged: Counter[str] = collections.Counter()
        self._warned_of_stale = 0
        self._audit = AuditLog(audit)
        self._observers = observers
        self._turns = turns
        self._all_wait_since = None
        self._told_pace, self._warned_of_turns = None, False
        self._finishing = threading.Event()
        self._published_at = self._progress_at = time.monotonic()
        self._heartbeat = 0
        self._fresh_for = 0  # us, see the job state
        self._fresh_steps = 0
        self._waited = 0.0  # us, the mean over the last global batch
        self._clock = self._published_clock = 0
        self._undrawn = 0
        self._heard = None  # messages that the run of a global step took, until they are booked
        self._weights = {}  # staleness -> weight
        self.ledger = Ledger(
            handles.settings.batches_per_step,
            paced=pacing.paced_at(self._paced, 0),
            ahead=pacing.ahead(self._paced, handles.settings.batches_per_step),
            in_flight=handles.settings.in_flight,
            keep_stale=handles.settings.on_stale == "keep",
            patience=patience,
        )

    def open(self, settings, weights):
        """Discards the leftovers of an earlier run on the PS.

        Of the messages in the queue only JOINED and LEFT count: a worker may have joined before the
        chief began, and found the training over.

        Args:
            settings: the description that every process compares with its own.
            weights: the staleness policy's at PROBES.
        """
        self._fresh_steps = fresh_steps(weights)
        self._weights = dict(zip(PROBES, weights.tolist()))
        ops = self._ops.open
        earlier, _ = self._session.run(ops.claim, {ops.epoch: self.ledger.first})
        if earlier:
            time.sleep(HAND_OVER)
        # A sibling's step between the read of the clock and its entry below would go uncounted.
        with self._steps.lock(PUBLISH_EVERY, lambda: None):
            opened = self._before_deadline(ops.open, {ops.settings: settings})
            messages, (clock,) = mailbox.unpacked(opened, 1)
            self._steps.clocks[self._number] = clock
        # All others are about tickets of an earlier chief, whose batches were discarded.
        for message in messages:
            if message.kind in (JOINED, LEFT):
                self.ledger.receive(message)
        self._clock = self._published_clock = clock
        self._pace(clock)
        self._audit.write([{"event": "begin", "step": self._clock, "first": self.ledger.first}])

    def waits_for(self, member):
        """Whether another worker than `member` trains."""
        return any(other != member for other in list(self.ledger.members))

    def finish(self):
        """At the end, waits until every worker has left or is given up, and applies the rest."""
        self._finishing.set()
        self._wake()
        self.join()
        self._coordinator.raise_requested_exception()  # of this thread, where it has failed

    def _wake(self):
        """Ends a wait for messages, this chief's or an earlier one's."""
        self._session.run(self._ops.mailbox.wake)

    def wake(self):
        """The same, from another thread; an error stops the session."""
        try:
            self._wake()
        except Exception as error:
            self._fail(error)

    def _keep_awake(self):
        while self.is_alive():
            stopped = self._coordinator.wait_for_stop(WAKE_EVERY)
            self.wake()
            if stopped:  # from now on `wait_for_stop` returns at once, and this loop would spin
                self.join(WAKE_EVERY)

    def run(self):
        threading.Thread(target=self._keep_awake, name="semisync-waker", daemon=True).start()
        try:
            with self._steps.applied_by(self):
                self._serve_while_chief()
        except Exception as error:
            self._fail(error)

    def _fail(self, error):
        if self.is_alive():  # else the session has ended, and was closed
            self._coordinator.request_stop(error)
            # The main thread may be waiting for a ticket: this wakes it, and it raises the error.
            self._session.close()

    def _serve_while_chief(self):
        try:
            self._serve()
        except tf.errors.InvalidArgumentError as error:
            if SUPERSEDED in error.message:  # see `JobState.own`
                raise SemisyncError(SUPERSEDED) from None
            raise

    def _serve(self):
        while not self._coordinator.should_stop():
            self._exchange()
            self._lose_the_silent()
            self._warn_of_broken_batches()
            self._warn_of_stale_batches()
            self._publish()
            self._apply_next()
            # Messages that the last step's run took may hold a leaving worker's last batch.
            booked = self._heard is None
            last = self._finishing.is_set() and booked and not self.ledger.members
            if last and self.ledger.lacking and self._withdraw():
                self._leave()
                return
            for ticket in self.ledger.to_sweep():
                self._on_ticket(self._ops.payload.sweep, ticket)
            self._warn_of_missing_batches()

    def _exchange(self):
        """Issues the tickets that are due, and books every message once enough have come."""
        taken, self._heard = self._heard, None
        if taken is None:
            taken = mailbox.taken(self._run_logged(self._ops.mailbox.take, self._request()))
        if taken.epoch != self.ledger.first:
            raise SemisyncError(SUPERSEDED)
        self._undrawn = taken.undrawn
        for message in taken.messages:
            if message.kind == DISAGREED:
                raise SemisyncError(message.member)
            self.ledger.receive(message)

    def _request(self):
        """The feed of `take`, with the tickets that are due."""
        tickets = self.ledger.issue(self.ledger.tickets_due(self._undrawn))
        lacking = self.ledger.lacking
        # At the end fewer than M may ever come: LEFT must be seen by itself.
        at_least = min(lacking, 1) if self._finishing.is_set() else lacking
        request = [at_least] + tickets
        # The placeholder's default is not fed, since feeding has a cost.
        plain = request == [self.ledger.batches_per_step]
        return {} if plain else {self._ops.mailbox.request: request}

    def _run_logged(self, fetches, feed):
        """Runs fetches that follow from the ledger's events, once the log has these.

        So the log may know more than a checkpoint, never less.
        """
        self._audit.write(self.ledger.drain("events"))
        return self._session.run(fetches, feed)

    def _lose_the_silent(self):
        for member in self.ledger.lose_the_silent(self._undrawn):
            tf.logging.warning(
                "semisync: no word for %.0f s from %s: its batch is lost",
                self.ledger.patience,
                member,
            )

    def _warn_of_broken_batches(self):
        """Warns of batches that are not finite; ends the training where they do not end."""
        ledger, endured = self.ledger, 0
        if self._on_nonfinite == "drop":
            endured = max(ENDURED, 2 * ledger.batches_per_step, 2 * len(ledger.members))
        if ledger.broken > endured:
            found = "a batch has a NaN or an infinity in the gradients, that of {1}"
            if endured:
                found = (
                    "the last {} batches have a NaN or an infinity in the gradients, the last one "
                    "that of {}"
                )
            raise SemisyncError(
                found.format(ledger.broken, ledger.broken_of)
                + ": look for it in the input and in the variables, for a division by 0 or its "
                "logarithm, for a learning rate that is too large"
            )
        refused = ledger.fates["nonfinite"]
        if refused > 2 * self._warned_of:  # when the number has doubled, not for every batch
            self._warned_of = refused
            tf.logging.warning(
                "semisync: %d batches so far had a NaN or an infinity in the gradients, the last "
                "one that of %s: others have their slots",
                refused,
                ledger.broken_of,
            )

    def _warn_of_stale_batches(self):
        """Warns where most batches come too late to count: nothing else shows it."""
        fates = self.ledger.fates
        stale = fates["stale"] - self._judged["stale"]
        judged = sum(fates[fate] - self._judged[fate] for fate in ("admitted", "decayed", "stale"))
        if judged < max(STALE_OF, 10 * self.ledger.batches_per_step):
            return
        self._judged = fates.copy()
        if 2 * stale > judged and fates["stale"] >= 2 * self._warned_of_stale:
            self._warned_of_stale = fates["stale"]
            tf.logging.warning(
                "semisync: %d of the last %d batches were too stale to count: the staleness policy "
                "is too strict for %d workers and global batches of %d; let it count staler ones, "
                "or bound what is in flight, as by in_flight=semisync.MeanStaleness(1)",
                stale,
                judged,
                len(self.ledger.members),
                self.ledger.batches_per_step,
            )

    def _warn_of_missing_batches(self):
        """Logs once who is missing when no global batch becomes complete."""
        stalled = time.monotonic() - self._progress_at
        if stalled < STALLED:
            return
        self._progress_at = float("inf")  # until the next global step
        tf.logging.warning(
            "semisync: no global step for %.0f s: %d of %d batches are there; out: %s%s",
            stalled,
            len(self.ledger.pending),
            self.ledger.batches_per_step,
            ", ".join("%s (silent for %.0f s)" % pair for pair in self.ledger.holders()) or "none",
            "; not ended: " + ", ".join(sorted(self.ledger.members))
            if self._finishing.is_set()
            else "",
        )

    def _withdraw(self):
        """Withdraws all tickets; True unless a worker that came meanwhile holds one."""
        self.ledger.withdrawn(self._before_deadline(self._ops.mailbox.withdraw).tolist())
        self._undrawn = 0
        return not self.ledger.outstanding

    def _leave(self):
        """Ends the training: applies the batches that are left as a smaller global batch, sweeps
        staging, and publishes the end."""
        self._apply_last()
        # Before their time: every worker has left, so nobody is staging under these.
        for _, ticket in self.ledger.dead:
            self._on_ticket(self._ops.payload.sweep, ticket)
        self._record_fates()
        self._audit.write(self.ledger.drain("events") + [{"event": "end"}])
        self._heartbeat = ended_at(self.ledger.first)
        self._write_job_state()

    def _before_deadline(self, fetches, feed=None):
        """Runs an op that withdraws tickets; again if a worker drew one of them meanwhile."""
        options = tf.RunOptions(timeout_in_ms=int(1000 * WITHDRAW_WITHIN))
        while True:
            try:
                return self._session.run(fetches, feed, options)
            except tf.errors.DeadlineExceededError:
                continue

    def _weigh(self, staleness):
        """The staleness policy's weights of a list of stalenesses."""
        step = self._ops.step
        if not step.lasting:
            self._weights = {}
        new = sorted(set(staleness) - set(self._weights))
        if new:
            weights = self._session.run(step.weights, {step.staleness: new})
            self._weights.update(zip(new, weights.tolist()))
        return [self._weights[s] for s in staleness]

    def _apply_next(self):
        """Applies the next global batch, where there is one."""
        if self._turns is None:
            self._apply(self.ledger.next_global_batch(self._clock, self._weigh))
        elif turns.is_complete(self.ledger):
            with self._steps.lock(PUBLISH_EVERY, self._publish):  # a sibling changes the clock
                weighed = self.ledger.next_global_batch(self._now, self._weigh)
                self._warn_of_late_batches(weighed)
                self._apply(weighed)
        elif self._is_as_whole_as_it_gets():
            self._apply_last()
        else:
            self._apply(None)

    def _apply_last(self):
        """Applies the batches that are there as a smaller global batch."""
        with self._steps.lock(PUBLISH_EVERY, self._publish):
            self._apply(self.ledger.last_global_batch(self._now, self._weigh))

    @property
    def _now(self):
        """The clock, which siblings in turns change under the step lock."""
        return self._steps.clocks[self._number]

    def _count(self, in_turns):
        """Counts a global step in the clocks, under the step lock.

        Args:
            in_turns: per sibling, whether the step counts in its clock, if it reads the trained
                variables.
        """
        clocks = self._steps.clocks
        clocks[self._number] += 1
        for other, counts in zip(self._turns.others if self._turns else (), in_turns):
            if counts and other.reads and other.number in clocks:
                clocks[other.number] += 1
        self.ledger.in_turns = bool(self._turns and self._turns.waits and any(in_turns))

    def _is_as_whole_as_it_gets(self):
        """Whether every worker waits for a global step, and this is the next to be applied.

        Raises:
            SemisyncError: there are fewer workers than batches in a global step, for too long.
        """
        ledger = self.ledger
        ledgers = [chief.ledger for chief in self._steps.chiefs if chief.takes_turns]
        if not (
            self.takes_turns and ledger.pending and turns.all_wait(ledgers) and self._is_in_turns()
        ):
            self._all_wait_since = None
            return False
        if not turns.may_grow(ledger):
            return turns.is_next(ledger, ledgers)
        now = time.monotonic()
        self._all_wait_since = self._all_wait_since or now
        if now - self._all_wait_since > ledger.patience:
            raise SemisyncError(
                "{} of {} batches of a global step are there, and each of the {} workers waits for "
                "it, since they run train ops in turns: give batches_per_step the number of "
                "workers, and start those that are missing".format(
                    len(ledger.pending), ledger.batches_per_step, len(ledger.members)
                )
            )
        return False

    @property
    def takes_turns(self):
        """Whether a worker waits for the global step, where it runs train ops in turns."""
        return self._turns is not None and self._turns.waits and self.ledger.paced

    def _is_in_turns(self):
        """Whether the workers wait for global steps: only then can they all do so."""
        self.ledger.in_turns = bool(self._session.run(self._turns.now_in_turns).any())
        return self.ledger.in_turns

    def _warn_of_late_batches(self, weighed):
        """Warns where siblings in turns have made a paced batch late: it should not be."""
        promised = self.ledger.paced and self.ledger.in_turns and not self._warned_of_turns
        if promised and any(entry.staleness for entry in weighed or ()):
            self._warned_of_turns = True
            tf.logging.warning(
                "semisync: paced, and yet a batch is late: its gradients were computed before a "
                "step of another train op, which the workers run in turns; that is exact with as "
                "many workers as batches per step, %d, and here are %d",
                self.ledger.batches_per_step,
                len(self.ledger.members),
            )

    def _pace(self, step):
        """Sets whether the ledger, and workers in turns, are paced at a global step."""
        paced = pacing.paced_at(self._paced, step)
        self.ledger.pace(paced)
        if self._turns and self._turns.pace is not None and paced != self._told_pace:
            self._session.run(self._turns.pace, {self._turns.new_paced: int(paced)})
            self._told_pace = paced

    def _apply(self, weighed):
        """Applies one global batch, whole or partial, where there is one."""
        if not weighed:
            self._record_fates()  # of batches that were dropped
            return
        tickets = self._prepare(weighed)
        self.ledger.book(self._clock, weighed)
        self._pace(self._clock + 1)  # before the run, which may issue the next step's tickets
        request = step_request(self.ledger.first, tickets, self.ledger.drain("settled"))
        with self._steps.lock(PUBLISH_EVERY, self._publish):  # a checkpoint may take long
            last = len(weighed) < self.ledger.batches_per_step
            alone = last or self.ledger.rations or self._observers or self._steps.wanted
            observed = self._run_step(request, alone)
        for (_, observer), values in zip(self._observers, observed):
            observer(self._clock - 1, values)
        self._waited = sum(entry.commit.waited for entry in weighed) / len(weighed)
        self._progress_at = time.monotonic()

    def _prepare(self, weighed):
        """Weighs, blanks and fills payloads; returns the M tickets of the global batch."""
        payload, size = self._ops.payload, self.ledger.batches_per_step
        scale = size / len(weighed)
        for commit, _, weight in weighed:
            if commit.withheld:
                self._on_ticket(payload.fill, commit.ticket)
            elif weight == 0:
                self._on_ticket(payload.blank, commit.ticket)
            elif weight != 1 or scale != 1:
                feed = {payload.weight: weight, payload.scale: scale}
                self._on_ticket(payload.weigh, commit.ticket, feed)
        empty = self.ledger.numbers(size - len(weighed))
        for ticket in empty:
            self._on_ticket(payload.fill, ticket)
        return [entry.commit.ticket for entry in weighed] + empty

    def _run_step(self, request, alone):
        """Runs one global step; returns the observers' fetches.

        Args:
            request: see `step_request`.
            alone: False to take the next messages in the same run.
        """
        step, box = self._ops.step, self._ops.mailbox
        feed = {step.request: request}
        in_turns = self._turns.in_turns if self._turns else ()
        if alone:
            fetches = [step.apply, in_turns] + [fetch for fetch, _ in self._observers]
            _, in_turns, *observed = self._run_logged(fetches, feed)
        else:
            feed.update(self._request())
            _, in_turns, took = self._run_logged([step.apply, in_turns, box.take], feed)
            self._heard, observed = mailbox.taken(took), []
        self._clock += 1
        self._count(in_turns)
        return observed

    def _on_ticket(self, op, ticket, more=None):
        payload = self._ops.payload
        own = {payload.epoch: self.ledger.first, payload.ticket: ticket}
        self._session.run(op, {**own, **(more or {})})

    def _record_fates(self):
        settled = self.ledger.drain("settled")
        if settled:
            self._session.run(self._ops.step.record_fates, {self._ops.step.new_fates: settled})

    def _publish(self):
        """Writes a new heartbeat, `fresh_for` and the gauges, when it is time."""
        passed = time.monotonic() - self._published_at
        if passed < PUBLISH_EVERY:
            return
        steps = self._clock - self._published_clock
        self._fresh_for = int(1e6 * passed / steps * self._fresh_steps) if steps else 0
        self._published_at, self._published_clock = self._published_at + passed, self._clock
        self._heartbeat += 1
        self._write_job_state()

    def _write_job_state(self):
        ledger, state = self.ledger, self._ops.job_state
        gauges = dict(
            ledger.fates,
            in_flight=len(ledger.holders()),
            pending=len(ledger.pending),
            waiting_seconds=self._waited / 1e6,
        )
        feed = {
            state.new_heartbeat: self._heartbeat,
            state.new_fresh_for: self._fresh_for,
            state.new_gauges: [gauges.get(name, 0) for name in GAUGES],
        }
        self._session.run(state.publish, feed)
