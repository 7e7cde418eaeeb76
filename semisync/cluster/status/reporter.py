"""The training's progress, reported by the chief every few seconds.

    hook = opt.make_session_run_hook(is_chief)
    page = status.Page("ctr-7", port=8080)
    hooks = [hook, status.StatusHook(hook, page.show)]

The hook reads the chief's ledger in a thread of its own. It observes no global steps, each of which
would then take the chief two runs instead of one (`semisync.chief.thread`). Only the chief's hook
does anything, so that every worker may have one.

Under `semisync launch` nothing of that is needed: the optimizer's own hook reports to the file that
the launcher names (`of_environment`).
"""

import collections
import os
import re
import threading
import time
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from semisync.cluster.status.report_file import VARIABLE, to_file
from semisync.common.compat import tf

_OVER = 10.0  # seconds over which rates are taken


class StatusHook(tf.train.SessionRunHook):
    """Reports the training's progress.

    Args:
        hook: the result of `GlobalBatchOptimizer.make_session_run_hook`.
        write: function of one report, the `training` of `semisync.cluster.status.document`. When it
            raises, that is logged and the training goes on.
        every: seconds between two reports.

    Examples:
        >>> weight = tf.get_variable("weight", initializer=0.0)
        >>> step = tf.train.get_or_create_global_step()
        >>> opt = semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(0.01), 2)
        >>> train_op = opt.minimize(tf.square(weight - 1.0), global_step=step)
        >>> hook, reports = opt.make_session_run_hook(is_chief=True), []
        >>> hooks = [hook, status.StatusHook(hook, reports.append)]  # or page.show of a `Page`
        >>> with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        ...     for _ in range(4):
        ...         _ = session.run(train_op)
        >>> reports[-1]["batches_per_step"]
        2
    """

    def __init__(self, hook: Any, write: Callable[[Dict[str, Any]], Any], every: float = 2.0):
        self._hook, self._write, self._every = hook, write, every
        self._step: Optional[int] = None  # after the newest global batch
        self._past: Deque[Tuple[float, int, int]] = collections.deque()
        self._failure = ""
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def after_create_session(self, session, coord):
        self._stop()  # of an earlier session, which ended in an error
        if self._hook.is_chief:
            self._over = threading.Event()
            self._past.clear()
            self._thread = threading.Thread(
                target=self._run, args=(self._over,), name="semisync-status", daemon=True
            )
            self._thread.start()

    def end(self, session):
        if self._thread is not None:
            self._stop()
            self._report()

    def _stop(self):
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, over):
        while not over.wait(self._every):
            self._report()

    def _report(self):
        ledger = self._hook.ledger
        if ledger is None:  # the session is not whole yet
            return
        try:
            self._write(self._training(ledger))
            self._failure = ""
        except Exception as error:
            if str(error) != self._failure:
                tf.logging.warning("semisync: the status could not be published: %s", error)
            self._failure = str(error)

    def _training(self, ledger):
        if ledger.booked is not None:
            self._step = ledger.booked + 1
        now, step = time.monotonic(), self._step
        # Copied at once, since the chief goes on: a plain copy of a dict is one step for Python.
        fates, staleness, heard = dict(ledger.fates), dict(ledger.staleness), dict(ledger.members)
        if step is not None:
            self._past.append((now, step, sum(staleness.values())))
        while len(self._past) > 2 and now - self._past[0][0] > _OVER:
            self._past.popleft()
        steps, batches = self._rates()
        return {
            "at": time.time(),
            "global_step": step,
            "steps_per_second": steps,
            "batches_per_second": batches,
            "batches_per_step": ledger.batches_per_step,
            "pending": len(ledger.pending),
            "workers": {_short(name): round(now - at, 1) for name, at in sorted(heard.items())},
            "fates": {name: n for name, n in sorted(fates.items()) if n and name != "issued"},
            "staleness": {str(steps): count for steps, count in sorted(staleness.items())},
        }

    def _rates(self):
        """Global steps and batches per second, None at the beginning."""
        if len(self._past) < 2:
            return None, None
        (since, step, batches), (now, last_step, last_batches) = self._past[0], self._past[-1]
        return (last_step - step) / (now - since), (last_batches - batches) / (now - since)


def of_environment(hook):
    """A StatusHook that writes to the file which the environment names; None where it names none.

    Of several optimizers in a graph, the one that was built first reports.
    """
    path = os.environ.get(VARIABLE)
    if not path or not hook.is_chief or hook.handles.number:
        return None
    return StatusHook(hook, to_file(path))


def _short(member):
    """A worker as the launchers name it: "worker 0" for "/job:worker/task:0 ...".

    Of a task the ledger has one member, the newest.
    """
    match = re.match(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)\b", member)
    return "{} {}".format(*match.groups()) if match else member
