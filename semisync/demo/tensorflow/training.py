"""One mode's training in one worker of the demo's cluster: the graph, the session, the loop.

The batches are numbered, and a worker takes the next number when it is free: every mode trains the
same rows equally often, in nearly the same order, whichever worker takes them. `schedule` decides
which rows belong to a number, and whether the batch is slow. A slow batch pauses before it sends
its gradients, so that they are old when they arrive, as those of a slow machine are.

The chief writes OUT/progress.json while it trains, the checkpoint OUT/model.ckpt, and at the end
OUT/result.json: the pace, the batches that changed the model, and the checkpoint's prefix. Each
worker writes OUT/staleness-K.json: the number of its batches by the updates of others between
reading the variables and sending the gradients. In the modes of `modes.LEDGER` the chief's file
covers all batches, in global steps, from the optimizer's ledger, and the others' are empty.
"""

import collections
import os
import time
from typing import Counter, Optional, Tuple

import semisync
from semisync.cluster.barrier import Barrier
from semisync.common.compat import raw_ops, tf
from semisync.common.files import write_json
from semisync.demo.data import schedule
from semisync.demo.tensorflow import deepfm
from semisync.demo.tensorflow.modes import LEDGER, wrap
from semisync.demo.tensorflow.work import Ending, WorkList

_WARM_UP = 0.1  # share of the steps that are not timed: the first runs optimise the graph
HANG = 5000  # ms; SyncReplicasOptimizer leaves a worker waiting when others end (tensorflow#20342)


class Training:
    """Builds the mode's graph in the default graph; `run` trains it.

    Args:
        mode: see `modes.wrap`.
        spec: of the process, see `semisync.demo.tensorflow.process`.
        log: the ClickLog to train on.
        out: the mode's folder.
    """

    def __init__(self, mode, spec, log, out):
        self._mode, self._spec, self._log, self._out = mode, spec, log, out
        self._task, workers = spec["task"], len(spec["cluster"]["worker"])
        self._chief = self._task == 0
        self._per_step = 1 if mode == "async" else spec["batches_per_step"]
        self._stopwatch = Stopwatch(spec["batches"] // self._per_step, self._per_step)
        self._pauses = schedule.pauses(spec)
        self._step = tf.train.get_or_create_global_step()
        self._inputs = deepfm.Inputs(log)
        self._pause = tf.placeholder(tf.float32, [])
        optimizer, make_hooks = wrap(
            mode,
            adam(spec),
            spec["batches_per_step"],
            workers,
            spec["bound"],
            self._chief,
        )
        self._build(optimizer)
        # Order of the hooks: fill the list, wait for all workers; wait for their end, save.
        self._work = WorkList(spec["batches"], self._chief)
        self._wrapper = make_hooks()
        ending = Ending(os.path.join(out, "model.ckpt"), self._task, workers, None)
        barrier = Barrier(mode, self._task, workers)
        self._hooks = [self._work, barrier] + self._wrapper + [ending]

    def _build(self, optimizer):
        loss = deepfm.loss(self._inputs, self._log, self._spec["partitions"])
        pairs = optimizer.compute_gradients(loss)
        self._read_at = step_now(self._step)
        pairs = delayed(pairs, self._pause, [self._read_at], _wait)
        with tf.control_dependencies([part for pair in pairs for part in gradient_parts(pair[0])]):
            self._sent_at = step_now(self._step)
        # Beside the updates, not after them: SyncReplicasOptimizer's chief would otherwise need a
        # batch to apply the gradients of others.
        train_op = tf.group(
            optimizer.apply_gradients(pairs, global_step=self._step),
            *tf.get_collection(tf.GraphKeys.UPDATE_OPS),
        )
        with tf.control_dependencies([train_op]):
            self._train = tf.identity(self._step.read_value())  # the step after the batch

    def run(self, server):
        """Trains until no batch is left, then writes the measurements."""
        with plain_session(server, self._task, self._hooks) as session:
            self._loop(session)
        if self._chief:
            self._report_progress(1.0)
        ledger = self._wrapper[0].ledger if self._chief and self._mode in LEDGER else None
        own = {} if self._mode in LEDGER else self._stopwatch.staleness
        staleness = ledger.staleness if ledger else own
        write_json(os.path.join(self._out, "staleness-%d.json" % self._task), staleness)
        if self._chief:
            checkpoint = tf.train.latest_checkpoint(self._out)
            steps = int(tf.train.load_variable(checkpoint, "global_step"))
            result = {
                "batches_per_second": self._stopwatch.batches_per_second,
                "counted": ledger.fates["admitted"] if ledger else steps * self._per_step,
                "checkpoint": checkpoint,
            }
            write_json(os.path.join(self._out, "result.json"), result)

    def _loop(self, session):
        limit = tf.RunOptions(timeout_in_ms=HANG) if self._mode == "native-sync" else None
        fetches = [self._train, self._read_at, self._sent_at]
        while True:
            try:
                number = int(session.run(self._work.next))
            except tf.errors.OutOfRangeError:
                return
            rows = schedule.rows(number, self._log.rows, self._spec)
            feed = self._inputs.feed(rows)
            feed[self._pause] = self._pauses[number]
            try:
                step, read_at, sent_at = session.run(fetches, feed, options=limit)
            except tf.errors.DeadlineExceededError:
                continue
            self._stopwatch.look(int(sent_at - read_at), int(step))
            if self._chief:
                self._report_progress(min(0.99, self._stopwatch.share))

    def _report_progress(self, share):
        progress = {"share": share, "batches_per_second": self._stopwatch.batches_per_second}
        write_json(os.path.join(self._out, "progress.json"), progress)


def adam(spec):
    """The optimizer of every mode."""
    return tf.train.AdamOptimizer(spec["learning_rate"])


def _wait(seconds):
    time.sleep(float(seconds))
    return seconds


def plain_session(server, task, hooks, timeout=120.0, **more):
    """A MonitoredTrainingSession, of worker 0 as the chief; it writes nothing.

    Args:
        server: the tf.train.Server of this process.
        task: of this worker.
        hooks: of the session.
        timeout: seconds in which the chief is to initialise the variables.
        more: further arguments of the session.
    """
    config = semisync.worker_config(task)
    if task:
        semisync.wait_until_initialised(server.target, config, timeout)
    return tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=not task,
        config=config,
        hooks=hooks,
        save_checkpoint_secs=None,
        save_checkpoint_steps=None,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
        stop_grace_period_secs=2,  # SyncReplicasOptimizer's thread on the chief never ends
        **more,
    )


class Stopwatch:
    """Watches the global step from one worker.

    Args:
        last_step: the global step at which training ends.
        per_step: batches in a global step.
        clock: seconds, monotonic.
    """

    def __init__(self, last_step, per_step, clock=time.monotonic):
        self._last_step = last_step
        self._per_step = per_step
        self._clock = clock
        self._first: Optional[Tuple[float, int]] = None
        self._latest: Optional[Tuple[float, int]] = None
        self.staleness: Counter[int] = collections.Counter()

    def look(self, staleness, step):
        """Records one batch: how stale its gradients were, and the global step after it."""
        self.staleness[staleness] += 1
        if step >= _WARM_UP * self._last_step:
            self._latest = (self._clock(), step)
            self._first = self._first or self._latest

    @property
    def share(self):
        """The finished share of the training, 0 to 1."""
        return min(1.0, self._latest[1] / self._last_step) if self._latest else 0.0

    @property
    def batches_per_second(self):
        """Batches applied per second by all workers together since the warm-up; 0 before."""
        if self._first is None or self._latest is None or self._first == self._latest:
            return 0.0
        (start, first), (now, step) = self._first, self._latest
        return (step - first) * self._per_step / (now - start)


def delayed(pairs, pause, also, wait):
    """The same (gradient, variable) pairs, after `wait(pause)`, once they and `also` exist."""
    computed = [part for gradient, _ in pairs for part in gradient_parts(gradient)]
    with tf.control_dependencies(computed + also):
        waited = tf.py_func(wait, [pause], tf.float32)
    with tf.control_dependencies([waited]):
        return [(_copy(gradient), variable) for gradient, variable in pairs]


def gradient_parts(gradient):
    sparse = isinstance(gradient, tf.IndexedSlices)
    return [gradient.values, gradient.indices] if sparse else [gradient]


def _copy(gradient):
    if isinstance(gradient, tf.IndexedSlices):
        values, indices = map(tf.identity, gradient_parts(gradient))
        return tf.IndexedSlices(values, indices, gradient.dense_shape)
    return tf.identity(gradient)


def step_now(step):
    """The global step when the op runs."""
    # A copy: a reference variable's value is an alias, and would be fetched as it is later.
    with tf.device(step.device):
        return raw_ops.DeepCopy(x=step)
