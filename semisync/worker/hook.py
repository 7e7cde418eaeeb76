"""The session hook: joins, draws the first ticket, and at the end returns it and waits.

    begin                  every process: removes updates that the chief performs from the graph,
                           and arranges to end before other hooks.
                           Chief: has the savers wait for whole global steps.
    after_create_session   chief: initialises the job state and starts its thread. Every process:
                           joins. No process waits here: a chief may have several optimizers to
                           open.
    before_run             draws a ticket, where there may be none: before the first run, and after
                           one that failed or does not draw itself. The first of a session's hooks
                           does so for all, in the order in which their optimizers were built; of
                           several that draw between runs, for those that the run trains. Before
                           that it waits its turn, where train ops are run in turns.
                           After a run that failed each joins again first, and says whether this
                           is that run once more.
                           With the first ticket it compares its settings with the chief's.
    end                    every process: returns its tickets. Chief: waits for the others.
    after_all              chief: repeats the saves after the job's last run.

A session that is made again after a failure repeats `after_create_session`: new tickets, new
tokens, nothing of the failed session. MonitoredSession then repeats the run that failed. The batch
of that run may have arrived all the same: a run with the same feed is the same batch, and names the
tickets under which it was sent (`semisync.chief.ledger`). A run without a feed reads other rows.

A session whose first ticket does not come decides by the heartbeat whether it waits for the chief:

    no chief so far, or one that lives   it waits, for `patience` without a sign of life
    the chief has ended                  the training is over, and this session too, unless a chief
                                         comes within GRACE
    the same, and this process has       a job that trains in one session after another: this one is
    trained with it and left             early, and waits for the next chief
"""

import functools
import time
from typing import Any, Dict, List, NamedTuple, Optional

from semisync import arguments, settings
from semisync.chief.checkpoints import whole_steps
from semisync.chief.thread import Chief
from semisync.cluster.status import reporter
from semisync.common.background_call import BackgroundCall
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError, UsageError
from semisync.transport.job_state import has_ended, is_of_the_ended
from semisync.transport.messages import NEVER_DRAWN
from semisync.worker import ending
from semisync.worker.ending import EndsFirst
from semisync.worker.trains_in import TrainsIn
from semisync.worker.turn import Turn
from semisync.worker.watchdog import LEAST, Watchdog

_returned: Dict[str, int] = {}  # by this process at an end: queue -> the newest ticket


class Run(NamedTuple):
    """A run of the session; `began` is in us since 1970."""

    feed: Any
    began: float

    def is_repeated_with(self, feed):
        """Whether a run with `feed` computes the same."""
        if not feed or not self.feed or set(feed) != set(self.feed):
            return False
        return all(value is self.feed[key] for key, value in feed.items())


class GlobalBatchHook(EndsFirst):
    """Made by `GlobalBatchOptimizer.make_session_run_hook`; see there for the arguments.

    Attributes:
        is_chief: True in the process that applies the global batches.
        fate: the fate of this worker's last batch, a tensor of the graph, see
            `semisync.GlobalBatchOptimizer`.
        ledger: on the chief, the account of all batches (`semisync.chief.ledger.Ledger`); else
            None.
    """

    LOOK_EVERY = 1.0  # seconds between two looks at the chief while waiting for it
    LOG_EVERY = 5.0  # seconds between two lines of the log meanwhile
    GRACE = 1.0  # seconds in which another chief may follow one that has ended

    def __init__(self, find, is_chief, patience, audit, ready=lambda: None):
        """
        Args:
            find: function that returns the `Handles` of the default graph, or raises.
            is_chief, patience, audit: see `GlobalBatchOptimizer.make_session_run_hook`.
            ready: function that makes the default graph, which is complete, ready for sessions;
                returns the `Turns` of the optimizer, or None.
        """
        self._find, self._ready = find, ready
        self.is_chief = arguments.flag("is_chief", "whether this process is the chief", is_chief)
        self._patience = arguments.patience(patience, LEAST)
        self._audit = arguments.writable(audit) if self.is_chief and audit is not None else None
        self._observers = []
        self._handles: Any = None  # `Handles` of the graph, from begin on
        self._agreed = False  # whether its settings agree with the chief's
        self._is_new = self._may_be_empty = True  # the worker state, before the next run
        self._is_ready = False  # for the next run, with a ticket where that needs one
        self._unsettled = False  # since the last run that succeeded it may have drawn a ticket
        self._run: Optional[Run] = None  # the last one; it may be repeated until it `_run_is_over`
        self._run_is_over = True
        self._sent_as: List[int] = []  # the tickets under which that run sent its batch
        self._chief: Optional[Chief] = None
        self._watchdog: Optional[Watchdog] = None
        self._turns: Any = None  # `Turns` of the graph, where the optimizer has siblings
        self._turn: Optional[Turn] = None  # of the session
        self._reporter: Any = None  # under a launcher, which reads reports of the training

    @property
    def handles(self):
        """The handles in the session's graph or, before a session, in the default graph."""
        return self._handles or self._find()

    @property
    def fate(self):
        return self.handles.worker.fate

    @property
    def ledger(self):
        return self._chief.ledger if self._chief else None

    def observe(self, fetches, observer):
        """On the chief, fetches something of every global step; call it before the session is made.

        Args:
            fetches: tensors, such as those of `aggregated_gradients` or others computed from them.
            observer: function (global step, values), called in the chief's thread: it should be
                quick.
        """
        self._observers.append((fetches, observer))

    def begin(self):
        self._handles = self._find()
        self._unfed = frozenset(self._handles.unfed)
        state = self._handles.worker.state
        self._trains_in = TrainsIn(getattr(state, "op", state))  # an op in an imported graph
        self._turns = self._ready()
        self._chief = self._watchdog = None  # of an earlier session
        self._run, self._run_is_over, self._sent_as = None, True, []
        self._sessions = 0
        if self.is_chief:  # now: a CheckpointSaverHook saves before this hook sees the session
            self._steps = whole_steps(tf.get_default_graph())
            self._steps.remember(self._handles.global_step)
        ending.arrange()
        self._reporter = self._reporter or reporter.of_environment(self)

    def after_create_session(self, session, coord):
        others = _hooks_of(session)
        if any(hook.handles is self._handles for hook in others):
            raise UsageError(
                "this session has two hooks of one GlobalBatchOptimizer: pass one of them only"
            )
        others.append(self)
        if self.is_chief:
            weights = session.run(self._handles.worker.weights)
            own = self._described(weights)
            warn_of_missing_filters(session, self._handles.worker.member)
            self._chief = Chief(
                self._handles,
                session=session,
                coordinator=coord,
                steps=self._steps,
                patience=self._patience,
                audit=self._audit,
                observers=self._observers,
                turns=self._turns,
            )
            self._chief.open(own, weights)
            self._chief.start()
            coord.register_thread(self._chief)
        if self._sessions:
            tf.logging.warning(
                "semisync: the session of %s was made again, and begins with a new ticket; "
                "TensorFlow logs the error at the level INFO",
                self._handles.worker.member,
            )
        self._sessions += 1
        self._coordinator = coord
        self._agreed = self._is_ready = self._left = False
        self._is_new = True
        self._run_is_over = self._run is None  # or another hook failed after it
        between = self._handles.draws_between_runs
        self._turn = Turn(self._turns, between) if self._turns else None
        self._join(session)
        if self._reporter:
            self._reporter.after_create_session(session, coord)

    def before_run(self, run_context):
        session, args = run_context.session, run_context.original_args
        self._refuse_what_has_no_effect(args.feed_dict)
        if not self._is_ready:
            hooks = sorted(_hooks_of(session), key=lambda hook: hook.handles.number)
            for hook in hooks:  # all first: another worker may need a ticket that one gives back
                hook._recover(session, args.feed_dict)
            for hook in hooks:
                if hook._turn:
                    hook._turn.wait(session)
            for hook in hooks:
                hook._make_ready(session, args.fetches)
        self._is_ready = False  # for the run after this one
        if self.is_chief:
            self._steps.run_begins()
        if not self._agreed and not self._is_new:
            if not self.is_chief:
                self._agree(session)
            self._agreed = True
            self._watchdog = Watchdog(
                heartbeat=self._handles.worker.heartbeat,
                pings=self._handles.worker.pings,
                session=session,
                coordinator=self._coordinator,
                patience=self._patience,
                alive=self._handles.worker.alive,
            )
        self._run, self._run_is_over = Run(args.feed_dict, 1e6 * time.time()), False

    def after_run(self, run_context, run_values):
        self._may_be_empty = self._handles.draws_between_runs
        if self._turn:
            self._turn.end()
        self._unsettled, self._run_is_over = False, True

    def _join(self, session):
        """Reports that this worker has no ticket; the chief takes back any that it held."""
        session.run(self._handles.worker.join)
        self._unsettled, self._may_be_empty = False, True

    def _recover(self, session, feed):
        """After a run that failed: gives up its tickets, and reports whether the next run repeats
        it.

        Args:
            feed: of the next run.
        """
        if self._unsettled:
            self._join(session)
        failed = None if self._run_is_over else self._run
        if failed is None or not failed.is_repeated_with(feed):
            self._sent_as = []
            return
        worker = self._handles.worker
        last, spent = session.run([worker.last, worker.spent])
        if spent >= failed.began:  # both by the clock of this process
            self._sent_as.append(last)
        for ticket in self._sent_as:
            session.run(worker.repeat, {worker.earlier: ticket})

    def _make_ready(self, session, fetches):
        self._is_ready = self._unsettled = True
        alone = len(_hooks_of(session)) == 1
        turn = self._turn if self._turn and self._trains_in(fetches) else None
        if turn:
            turn.begin(session, fetches)
        if alone or not self._handles.draws_between_runs or self._trains_in(fetches):
            self._ensure_ticket(session)
        if turn:
            turn.renew(session)

    def _ensure_ticket(self, session):
        """Draws a ticket for the next run, where there is none."""
        if self._may_be_empty:
            self._draw(session)
        self._is_new = False
        self._may_be_empty = True

    def _refuse_what_has_no_effect(self, fed):
        """Raises UsageError if a run feeds a tensor that the chief's step takes from no batch."""
        for key in fed or ():
            name = getattr(key, "name", key)
            if name in self._unfed:
                raise UsageError(
                    "{} is fed, and would have no effect: the chief applies global batches with it "
                    "in runs of its own; make it a tf.placeholder_with_default, which goes with "
                    "each batch, or a variable".format(name)
                )

    def _draw(self, session):
        """Draws a ticket; for the first one the chief may not have started yet.

        Never with a deadline: a draw that is cut off may lose a ticket.

        Raises:
            tf.errors.OutOfRangeError: the training is over; MonitoredSession ends normally.
            SemisyncError: no chief came.
        """
        heartbeat, changed = None, time.monotonic()
        log_at = changed + self.LOG_EVERY
        draw = BackgroundCall(functools.partial(session.run, self._handles.worker.first_draw))
        while draw.wait(self.LOOK_EVERY):
            before, heartbeat, now = heartbeat, self._heartbeat(session), time.monotonic()
            if heartbeat != before:
                changed = now
            elif now - changed >= (self.GRACE if self._is_over(heartbeat) else self._patience):
                self._give_up(heartbeat, now - changed)
            if now >= log_at:
                log_at = now + self.LOG_EVERY
                tf.logging.info("semisync: waiting for the chief to hand out tickets")
        if draw.error:
            raise draw.error

    def _is_over(self, heartbeat):
        """Whether the chief has ended, and this process does not come from its training."""
        newest = _returned.get(self._queue, NEVER_DRAWN)
        return has_ended(heartbeat) and not is_of_the_ended(newest, heartbeat)

    @property
    def _queue(self):
        """The queue of the tickets, the same in every session of this job."""
        return self._handles.chief.mailbox.request.op.name

    def _give_up(self, heartbeat, seconds):
        chief = "the chief, the process with make_session_run_hook(is_chief=True),"
        if has_ended(heartbeat):
            sentence = (
                "semisync: the training is over: {} has ended, and in {:.0f} s no other came; if "
                "it is to go on, start the chief, and then this worker"
            ).format(chief, seconds)
            tf.logging.warning("%s", sentence)
            raise tf.errors.OutOfRangeError(None, None, sentence)
        raise SemisyncError(
            "no ticket for {} in {:.0f} s: {} is not running, or its GlobalBatchOptimizer has "
            "another name".format(self._handles.worker.member, seconds, chief)
        )

    def _heartbeat(self, session):
        """The chief's heartbeat; None before any chief."""
        try:
            return int(session.run(self._handles.worker.heartbeat))
        except tf.errors.FailedPreconditionError:
            return None

    def _agree(self, session):
        """Raises UsageError, and has the chief stop the job, if the settings differ."""
        worker = self._handles.worker
        weights, chiefs = session.run([worker.weights, worker.chief_settings])
        sentence = settings.difference(self._described(weights), chiefs.decode())
        if sentence:
            sentence = "{}: {}".format(worker.member, sentence)
            session.run(worker.disagree, {worker.objection: sentence})
            raise UsageError(sentence)

    def _described(self, weights):
        settings.check(weights)
        return settings.describe(self._handles.settings, weights)

    def end(self, session):
        self._coordinator.raise_requested_exception()  # explains why a session is closed already
        for hook in _hooks_of(session):  # before a chief waits here, others may need its tickets
            hook._leave(session)
        if self._chief:
            if self._chief.waits_for(self._handles.worker.member):
                self._steps.save_last_again(session)
            self._chief.finish()
        if self._watchdog:
            self._watchdog.stop()
        if self._reporter:
            self._reporter.end(session)
        if self._chief:
            tf.logging.info("semisync: %s", dict(self._chief.ledger.fates))

    def after_all(self, session):
        if self._chief:
            self._steps.save_again(session)

    def _leave(self, session):
        if self._left:
            return
        if self._watchdog:
            self._watchdog.leave()
        worker = self._handles.worker
        _, _returned[self._queue] = session.run([worker.leave, worker.ticket])
        self._left = True


def _hooks_of(session):
    """The hooks of a session, a list; an attribute of it, as `per_graph` has it: hooks refer to
    their session."""
    if not hasattr(session, "_semisync_hooks"):
        session._semisync_hooks = []
    return session._semisync_hooks


def warn_of_missing_filters(session, member):
    """Warns of a session that may hang when it closes, for lack of filters: `cluster.session`."""
    config = getattr(session, "_config", None)
    if "grpc" in str(session.sess_str) and not (config and config.device_filters):
        tf.logging.warning(
            "semisync: this session has no device filters, and may hang when it is closed after "
            "other workers have ended: give its ConfigProto device_filters=['/job:ps', %r], and "
            "that of each other worker its own, as semisync.worker_config(task, job) does; an "
            "Estimator's RunConfig has them unless it is given a session_config",
            member.partition(" ")[0],
        )
