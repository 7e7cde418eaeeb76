"""One mode's training in one worker of the demo's cluster: the graph, the session, the loop.

The batches are numbered, and a worker takes the next number when it is free: every mode trains the
same rows equally often, in nearly the same order, whichever worker takes them. Which rows belong to
a number, and whether the batch is slow, `schedule` says. A slow batch pauses before it sends its
gradients (`pause`).

The chief writes OUT/progress.json while it trains, the checkpoint OUT/model.ckpt, and at the end
OUT/result.json: the pace, the batches that changed the model, and the checkpoint's prefix. Each
worker writes OUT/staleness-K.json: the number of its batches by the updates of others between
reading the variables and sending the gradients. In the modes of `modes.LEDGER` the chief's file
covers all batches, in global steps, from the optimizer's ledger, and the others' are empty.
"""

import os
import time

from semisync.cluster.barrier import Barrier
from semisync.common.compat import tf
from semisync.common.files import write_json
from semisync.demo.data import schedule
from semisync.demo.tensorflow import deepfm
from semisync.demo.tensorflow.modes import LEDGER, wrap
from semisync.demo.tensorflow.pause import delayed, gradient_parts, step_now
from semisync.demo.tensorflow.session import plain_session
from semisync.demo.tensorflow.stopwatch import Stopwatch
from semisync.demo.tensorflow.work import Ending, WorkList

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
