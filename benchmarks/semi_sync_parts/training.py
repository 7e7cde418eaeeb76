"""One mode's training in one worker: the graph, the session, the loop.

result-TASK.json holds `batches`, a list of [started, finished, step before, step after]: times in
seconds since the epoch, `started` after the batch's pause; the global step that the worker saw at
the end of its previous batch and of this one. The chief of semi-sync and sync adds `staleness`: the
number of batches by staleness, from its ledger.
"""

import time

from semisync.common.compat import raw_ops, tf
from semisync.demo.tensorflow.modes import LEDGER, wrap
from semisync.demo.tensorflow.training import plain_session

from . import model, signals
from .cases import STALENESS_BOUND, pauses

LEARNING_RATE = 0.05
WARM_BATCHES = 3  # the first runs of a graph optimise it
WARM_STEPS = 2  # the first global steps also
PATIENCE = 600.0  # seconds for the first session, and for a batch before the window is known
GRACE = 3.0  # seconds after the window


class Training:
    """Builds the mode's graph in the default graph; `run` trains it.

    Args:
        mode: one of `cases.MODES`.
        case: a `cases.Case`.
        task: of this worker; 0 is the chief.
    """

    def __init__(self, mode, case, task):
        self._mode, self._case, self._task = mode, case, task
        self._chief = task == 0
        step = tf.train.get_or_create_global_step()
        optimizer, make_hooks = wrap(
            mode,
            tf.train.AdagradOptimizer(LEARNING_RATE),
            case.batches_per_step,
            case.workers,
            STALENESS_BOUND,
            self._chief,
        )
        train_op = optimizer.minimize(model.loss(case.model, seed=task), global_step=step)
        # A copy made beside the variable: reading it from afar need not wait for the train op.
        with tf.control_dependencies([train_op]), tf.device(step.device):
            self._train = raw_ops.DeepCopy(x=step.read_value())
        self._hooks = make_hooks()

    def run(self, server, folder):
        """Trains until the window ends; returns what result-TASK.json holds."""
        with plain_session(server, self._task, self._hooks, PATIENCE) as session:
            batches = self._loop(session, folder)
        result = {"batches": batches}
        if self._chief and self._mode in LEDGER:
            result["staleness"] = self._hooks[0].ledger.staleness
        return result

    def _loop(self, session, folder):
        batches, step, warm, stop = [], 0, False, None
        for pause in pauses(self._case, self._task):
            if stop is None and signals.given(folder, "window.json"):
                stop = signals.read(folder, "window.json")["stop"]
            if stop is not None and time.time() > stop:
                break
            time.sleep(pause)
            started, before = time.time(), step
            try:
                step = int(session.run(self._train, options=self._limit(stop)))
            except (tf.errors.DeadlineExceededError, tf.errors.OutOfRangeError):
                if stop is None:
                    raise
                break  # the others have ended; of SyncReplicasOptimizer's queue the chief, too
            batches.append([started, time.time(), before, step])
            if not warm and len(batches) >= WARM_BATCHES and step >= WARM_STEPS:
                warm = True
                signals.give(folder, "warm-{}".format(self._task))
        return batches

    def _limit(self, stop):
        """RunOptions: SyncReplicasOptimizer leaves a worker waiting when others have ended."""
        if self._mode != "native-sync":
            return None
        seconds = PATIENCE if stop is None else max(0.0, stop - time.time()) + GRACE
        return tf.RunOptions(timeout_in_ms=int(1000 * seconds))
