"""One mode's training in one worker of the demo's cluster: the graph, the session, the loop.

The workers read the training log in time order, worker k every W-th batch from k on, and start over
at its end. The chief writes OUT/progress.json while it trains, the checkpoint OUT/model.ckpt-*, and
at the end OUT/result.json: the pace, and the prefix of the last checkpoint. Each worker writes
OUT/staleness-K.json: the number of its batches by staleness, in global steps; in semi-sync the
chief's file covers all batches.
"""

import os
import time

import numpy as np

import semisync
from semisync.cluster.barrier import Barrier
from semisync.common.compat import tf
from semisync.common.files import write_json
from semisync.demo.tensorflow import deepfm
from semisync.demo.tensorflow.modes import wrap
from semisync.demo.tensorflow.stopwatch import Stopwatch

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
        self._task, self._workers = spec["task"], len(spec["cluster"]["worker"])
        self._chief = self._task == 0
        per_step = 1 if mode == "async" else spec["batches_per_step"]
        self._last_step = spec["batches"] // per_step
        self._stopwatch = Stopwatch(self._last_step, per_step)
        self._step = tf.train.get_or_create_global_step()
        self._ids = tf.placeholder(tf.int64, [None, len(log.fields)])
        self._labels = tf.placeholder(tf.float32, [None])
        logits = deepfm.logits(self._ids, log.fields, log.numeric, spec["partitions"], True)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=self._labels, logits=logits)
        optimizer, make_hooks = wrap(
            mode,
            tf.train.AdagradOptimizer(spec["learning_rate"]),
            spec["batches_per_step"],
            self._workers,
            spec["bound"],
            self._chief,
        )
        # Beside the updates, not after them: SyncReplicasOptimizer's chief would otherwise need a
        # batch to apply the gradients of others.
        train_op = tf.group(
            optimizer.minimize(tf.reduce_mean(losses), global_step=self._step),
            *tf.get_collection(tf.GraphKeys.UPDATE_OPS),
        )
        with tf.control_dependencies([train_op]):
            self._train = tf.identity(self._step.read_value())  # the step after the batch
        self._hooks = make_hooks()

    def run(self, server):
        """Trains until the last step, then writes the measurements."""
        if not self._chief:
            semisync.wait_until_initialised(server.target, semisync.worker_config(self._task))
        with self._session(server) as session:
            self._loop(session)
        staleness = self._stopwatch.staleness
        if self._chief and self._mode == "semi-sync":
            staleness = self._hooks[0].ledger.staleness
        write_json(os.path.join(self._out, "staleness-%d.json" % self._task), staleness)
        if self._chief:
            result = {
                "batches_per_second": self._stopwatch.batches_per_second,
                "checkpoint": tf.train.latest_checkpoint(self._out),
            }
            write_json(os.path.join(self._out, "result.json"), result)

    def _session(self, server):
        return tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=self._chief,
            checkpoint_dir=self._out if self._chief else None,
            config=semisync.worker_config(self._task),
            hooks=[Barrier(self._mode, self._task, self._workers)] + self._hooks,
            save_checkpoint_secs=None,
            save_checkpoint_steps=10**9,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
            stop_grace_period_secs=2,  # SyncReplicasOptimizer's thread on the chief never ends
        )

    def _loop(self, session):
        limit = tf.RunOptions(timeout_in_ms=HANG) if self._mode == "native-sync" else None
        at = 0
        for clicks, labels, pause in self._batches():
            if at >= self._last_step or session.should_stop():
                return
            time.sleep(pause)
            before = at
            try:
                feed = {self._ids: clicks, self._labels: labels}
                at = int(session.run(self._train, feed, options=limit))
            except tf.errors.DeadlineExceededError:
                at = int(session.run(self._step))
                continue
            self._stopwatch.look(before, at)
            if self._chief:
                self._report_progress()

    def _batches(self):
        """Endlessly yields this worker's (ids, labels, seconds per batch besides computing)."""
        log, spec, number = self._log, self._spec, self._task
        rng = np.random.RandomState(self._task)
        in_log = max(1, log.rows // spec["batch"])
        while True:
            start = (number % in_log) * spec["batch"]
            stop = start + spec["batch"]
            slow = rng.rand() < spec["slow_share"]
            pause = spec["pause"] * (spec["slow_factor"] if slow else 1)
            yield log.ids[start:stop], log.labels[start:stop], pause
            number += self._workers

    def _report_progress(self):
        watch = self._stopwatch
        progress = {"share": watch.share, "batches_per_second": watch.batches_per_second}
        write_json(os.path.join(self._out, "progress.json"), progress)
