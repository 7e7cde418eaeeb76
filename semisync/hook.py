"""The session hook: joins, draws the first ticket, and at the end hands back and waits.

    after_create_session   chief: opens the desk and starts its thread. Everybody: joins, draws.
    end                    everybody: gives the ticket back. Chief: waits for the others, saves.

A session that is made again after a failure goes through the first step again: new tickets, new
tokens, nothing of the failed session.
"""

import threading
import time
from typing import Optional

from semisync.checkpoints import SteadySaver
from semisync.chief import Chief
from semisync.compat import tf
from semisync.errors import SemisyncError


class GlobalBatchHook(tf.train.SessionRunHook):
    """Made by `GlobalBatchOptimizer.make_session_run_hook`; see there for the arguments.

    Attributes:
      ledger: on the chief, the account of all batches (`semisync.ledger.Ledger`); else None.
    """

    LOOK_EVERY = 5.0  # seconds between two words to the log while waiting for the chief

    def __init__(self, optimizer, is_chief, patience, audit):
        self._optimizer = optimizer
        self._worker = optimizer.worker
        self._is_chief = is_chief
        self._patience = patience
        self._audit = audit
        self._quiet = threading.Lock()
        self._saver = SteadySaver(self._quiet)
        self._chief: Optional[Chief] = None

    @property
    def ledger(self):
        return self._chief.ledger if self._chief else None

    def after_create_session(self, session, coord):
        if self._is_chief:
            self._saver.steady(session.graph)
            self._chief = Chief(
                self._optimizer, session, coord, self._quiet, self._patience, self._audit
            )
            self._chief.open()
            self._chief.start()
            coord.register_thread(self._chief)
        session.run(self._worker.join)
        self._draw_first(session)

    def _draw_first(self, session):
        """Draws the first ticket; a paced job may have this worker wait for the next step."""
        step, deadline = None, time.monotonic() + self._patience
        options = tf.RunOptions(timeout_in_ms=int(self.LOOK_EVERY * 1000))
        while True:
            try:
                session.run(self._worker.first_draw, options=options)
                return
            except tf.errors.DeadlineExceededError as late:
                before, step = step, int(session.run(self._optimizer.global_step))
                if step != before:
                    deadline = time.monotonic() + self._patience
                elif time.monotonic() > deadline:
                    raise SemisyncError(
                        "no ticket for {} in {:.0f} s: the chief, the process with "
                        "make_session_run_hook(is_chief=True), is not running, or its "
                        "GlobalBatchOptimizer has another name".format(
                            self._worker.member, self._patience
                        )
                    ) from late
                tf.logging.info("semisync: waiting for the chief to hand out tickets")

    def end(self, session):
        session.run(self._worker.give_back)
        if self._chief:
            self._chief.finish()
            self._saver.save_again(session, int(session.run(self._optimizer.global_step)))
            tf.logging.info("semisync: %s", dict(self._chief.ledger.fates))
