"""The job that faults are done to: a script as users have it, which reads TF_CONFIG.

    python -m benchmarks.chaos_parts.job '{"out": ..., "checkpoints": ..., ...}'

out            a directory: AUDIT, written by the chief, and STOP, at which the workers end
checkpoints    a directory, whose disk fills at times
pause          seconds between two batches
patience       of the optimizer, in seconds
seed           of the data

Every batch adds a number that its ticket decides to variables on both parameter servers
(`tests.wrap.fault_job`), so that a torn batch shows in the checkpoint. It also trains `SEEDS`
logistic regressions, alike but for their data: their AUC differs as that of as many runs would.
"""

import json
import os
import sys
import time

import numpy as np

import semisync
from semisync.common.compat import tf
from tests.wrap.fault_job import AUDIT, STOP, addend, build, look_again_after, look_up, row

SEEDS, FEATURES, ROWS = 16, 8, 32
BATCHES_PER_STEP, BOUND = 4, 4
LEARNING_RATE = 0.3
WEIGHTS = "weights"


def truth():
    """The weights that make the labels, [FEATURES]."""
    return np.linspace(-1.0, 1.0, FEATURES)


def examples(random, shape):
    """(inputs [..., FEATURES], labels [...]) of some rows."""
    inputs = random.standard_normal((*shape, FEATURES))
    chance = 1.0 / (1.0 + np.exp(-inputs @ truth()))
    return inputs, (random.random_sample(shape) < chance).astype(np.float32)


def regressions(inputs, labels):
    """The loss of all regressions, times the learning rate."""
    with tf.device("/job:ps/task:1"):
        weights = tf.get_variable(WEIGHTS, [SEEDS, 1, FEATURES], initializer=tf.zeros_initializer())
    logits = tf.reduce_sum(inputs * weights, 2)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return LEARNING_RATE * tf.reduce_sum(tf.reduce_mean(losses, 1))


def train(spec, cluster, server, task):
    """Trains in this worker until the file STOP is there."""
    worker = "/job:worker/task:%d" % task
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
        value, place = tf.placeholder(tf.float32, []), tf.placeholder(tf.int64, [1])
        inputs = tf.placeholder(tf.float32, [SEEDS, ROWS, FEATURES])
        labels = tf.placeholder(tf.float32, [SEEDS, ROWS])
        step = tf.train.get_or_create_global_step()
        opt = semisync.GlobalBatchOptimizer(
            tf.train.GradientDescentOptimizer(1.0),
            BATCHES_PER_STEP,
            staleness=semisync.Threshold(BOUND),
        )
        looked_up = tf.reduce_sum(look_up(place, hash_table=None))
        loss = build(value, looked_up) + regressions(inputs, labels)
        train_op = opt.minimize(loss, global_step=step)
        audit = os.path.join(spec["out"], AUDIT)
        hook = opt.make_session_run_hook(task == 0, patience=spec["patience"], audit=audit)

    def batch(step_context):
        ticket = int(step_context.run_with_hooks(opt.handles.worker.ticket))
        random = np.random.RandomState([spec["seed"], *divmod(ticket, 1 << 32)])
        feed = {value: addend(ticket), place: [row(ticket)]}
        feed[inputs], feed[labels] = examples(random, (SEEDS, ROWS))
        step_context.run_with_hooks(train_op, feed)

    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=task == 0,
        hooks=[hook],
        config=semisync.worker_config(task),
        checkpoint_dir=spec["checkpoints"],
        scaffold=tf.train.Scaffold(saver=tf.train.Saver(sharded=True)),
        save_checkpoint_secs=1,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as session:
        while not os.path.exists(os.path.join(spec["out"], STOP)):
            session.run_step_fn(batch)
            time.sleep(spec["pause"])


def main():
    spec, told = json.loads(sys.argv[1]), json.loads(os.environ["TF_CONFIG"])
    tf.logging.set_verbosity(tf.logging.INFO)
    look_again_after(0.5)
    cluster, task = tf.train.ClusterSpec(told["cluster"]), told["task"]
    server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
    if task["type"] == "ps":
        server.join()
    train(spec, cluster, server, task["index"])


if __name__ == "__main__":
    main()
