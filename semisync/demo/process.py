"""One process of the demo's cluster: a PS, or a worker that trains mode after mode.

    python -m semisync.demo.process SPEC

SPEC (JSON) holds `cluster`, `job`, `task`, and: `data` (a folder with the saved click logs `train`
and `test`), `out`, `modes`, `partitions`, `batch`, `batches` (how many in all), `batches_per_step`,
`bound`, `learning_rate`, `pause` (seconds a batch takes besides computing), `slow_share`,
`slow_factor`.

In each mode the workers read the training log in time order, worker k every W-th batch from k on,
and begin anew at its end. The chief writes OUT/MODE/progress.json while it trains, the checkpoint
OUT/MODE/model.ckpt-*, and at the end OUT/MODE/scores.npy (float32, of the held-out rows) and
OUT/MODE/result.json. Each worker writes OUT/MODE/staleness-K.json: how many of its batches had
which staleness, in global steps; in semi-sync the chief's is that of all batches.
"""

import json
import os
import sys
import time

import numpy as np

import semisync
from semisync.compat import tf
from semisync.demo import click_log, deepfm
from semisync.demo.barrier import Barrier
from semisync.demo.modes import wrap
from semisync.demo.stopwatch import Stopwatch


def main():
    spec = json.loads(sys.argv[1])
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.WARN)
    server = tf.train.Server(
        tf.train.ClusterSpec(spec["cluster"]),
        job_name=spec["job"],
        task_index=spec["task"],
        config=tf.ConfigProto(intra_op_parallelism_threads=1),
    )
    if spec["job"] == "ps":
        server.join()
    train_log = click_log.load(os.path.join(spec["data"], "train"))
    for mode in spec["modes"]:
        out = os.path.join(spec["out"], mode)
        result = train(mode, spec, server, train_log, out)
        if spec["task"] == 0:
            test_log = click_log.load(os.path.join(spec["data"], "test"))
            scores = score(tf.train.latest_checkpoint(out), test_log, spec["partitions"])
            np.save(os.path.join(out, "scores.npy"), scores)
            write_json(os.path.join(out, "result.json"), result)


def batches(log, size, task, workers):
    """Endless (ids, labels) of a worker: every `workers`-th batch of `size` rows from `task` on."""
    number = task
    in_log = max(1, log.rows // size)
    while True:
        start = (number % in_log) * size
        yield log.ids[start : start + size], log.labels[start : start + size]
        number += workers


def train(mode, spec, server, log, out):
    """Trains one mode in this worker; returns what the stopwatch measured, a dict."""
    task, workers = spec["task"], len(spec["cluster"]["worker"])
    chief = task == 0
    setter = tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(spec["cluster"]), worker_device="/job:worker/task:%d" % task
    )
    # A container for each mode: the PS keep the modes' variables and queues apart.
    with tf.Graph().as_default() as graph, graph.container(mode), tf.device(setter):
        step = tf.train.get_or_create_global_step()
        ids = tf.placeholder(tf.int64, [None, len(log.fields)])
        labels = tf.placeholder(tf.float32, [None])
        logits = deepfm.logits(ids, log.fields, log.numeric, spec["partitions"], training=True)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer, make_hooks = wrap(
            mode,
            tf.train.AdagradOptimizer(spec["learning_rate"]),
            spec["batches_per_step"],
            workers,
            spec["bound"],
            chief,
        )
        # Beside the updates, not after them: SyncReplicasOptimizer's chief would otherwise need a
        # batch to apply the gradients of others.
        train_op = tf.group(
            optimizer.minimize(loss, global_step=step), *tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        )
        with tf.control_dependencies([train_op]):
            step_after = tf.identity(step.read_value())
        per_step = 1 if mode == "async" else spec["batches_per_step"]
        last_step = spec["batches"] // per_step
        stopwatch = Stopwatch(last_step, per_step)
        hooks = make_hooks()
        data = batches(log, spec["batch"], task, workers)
        rng = np.random.RandomState(task)
        # SyncReplicasOptimizer leaves a worker waiting for ever when others end (tensorflow#20342).
        limit = tf.RunOptions(timeout_in_ms=5000) if mode == "native-sync" else None
        at = 0
        if not chief:
            semisync.wait_until_initialised(server.target, semisync.worker_config(task))
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=chief,
            checkpoint_dir=out if chief else None,
            config=semisync.worker_config(task),
            hooks=[Barrier(mode, task, workers)] + hooks,
            save_checkpoint_secs=None,
            save_checkpoint_steps=10**9,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
            stop_grace_period_secs=2,  # SyncReplicasOptimizer's thread on the chief never ends
        ) as session:
            while at < last_step and not session.should_stop():
                rows, clicks = next(data)
                slow = rng.rand() < spec["slow_share"]
                time.sleep(spec["pause"] * (spec["slow_factor"] if slow else 1))
                before = at
                try:
                    at = int(session.run(step_after, {ids: rows, labels: clicks}, options=limit))
                except tf.errors.DeadlineExceededError:
                    at = int(session.run(step))
                    continue
                stopwatch.look(before, at)
                if chief:
                    report_progress(out, stopwatch)
    staleness = hooks[0].ledger.staleness if mode == "semi-sync" and chief else stopwatch.staleness
    write_json(os.path.join(out, "staleness-%d.json" % task), staleness)
    return {"batches_per_second": stopwatch.batches_per_second}


def report_progress(out, stopwatch):
    """Writes how far the training is, for whoever watches."""
    progress = {"share": stopwatch.share, "batches_per_second": stopwatch.batches_per_second}
    write_json(os.path.join(out, "progress.json"), progress)


def score(checkpoint, log, partitions, size=4096):
    """Click probabilities of every row, float32 [rows], by the checkpoint's model."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None, len(log.fields)])
        logits = deepfm.logits(ids, log.fields, log.numeric, partitions, training=False)
        tf.train.Saver().restore(session, checkpoint)
        probabilities = tf.sigmoid(logits)
        starts = range(0, log.rows, size)
        return np.concatenate(
            [session.run(probabilities, {ids: log.ids[i : i + size]}) for i in starts]
        )


def write_json(path, value):
    """Writes it beside its place and moves it there, so that a reader sees it whole."""
    with open(path + ".part", "w") as file:
        json.dump(value, file)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
