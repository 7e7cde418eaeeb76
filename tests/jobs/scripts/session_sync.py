"""Distributed CTR model, between-graph replication, synchronous updates.

Usage, on each host:
  python session_sync.py --ps_hosts=h1:2222 --worker_hosts=h2:2222,h3:2222 \
      --job_name=worker --task_index=0 --train_file=part-00000.csv
"""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("job_name", "", "One of 'ps', 'worker'")
flags.DEFINE_integer("task_index", 0, "Index of task within the job")
flags.DEFINE_boolean("sync_replicas", True, "Aggregate the gradients of all workers")
flags.DEFINE_string("train_file", None, "CSV with a header")
flags.DEFINE_string("checkpoint_dir", None, "Where to write checkpoints")
flags.DEFINE_integer("batch_size", 16, "Batch size of each worker")
flags.DEFINE_integer("train_steps", 1000, "Number of (global) training steps")
flags.DEFINE_float("learning_rate", 0.05, "Learning rate")
FLAGS = flags.FLAGS

NUM_USERS, NUM_ITEMS, NUM_CATEGORIES = 40, 25, 7
EMBEDDING_SIZE = 8


def batches(path, batch_size):
    """Endless (ids, dense, label) batches."""
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    while True:
        for i in range(0, len(table), batch_size):
            rows = table[i : i + batch_size]
            yield rows[:, 3:].astype(np.int64), rows[:, 1:3], rows[:, :1]


def inference(ids, dense):
    vectors = []
    for i, (name, size) in enumerate(
        [("user", NUM_USERS), ("item", NUM_ITEMS), ("category", NUM_CATEGORIES)]
    ):
        table = tf.get_variable(
            name + "_embedding",
            [size, EMBEDDING_SIZE],
            initializer=tf.truncated_normal_initializer(stddev=0.1),
        )
        vectors.append(tf.nn.embedding_lookup(table, ids[:, i]))
    net = tf.concat(vectors + [dense], axis=1)
    net = tf.layers.dense(net, 16, activation=tf.nn.relu, name="fc1")
    return tf.layers.dense(net, 1, name="logits")


def main(_):
    ps_hosts = FLAGS.ps_hosts.split(",")
    worker_hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return

    is_chief = FLAGS.task_index == 0
    num_workers = len(worker_hosts)
    tf.set_random_seed(1234)

    with tf.device(
        tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
        )
    ):
        global_step = tf.train.get_or_create_global_step()
        ids = tf.placeholder(tf.int64, [None, 3], name="ids")
        dense = tf.placeholder(tf.float32, [None, 2], name="dense")
        label = tf.placeholder(tf.float32, [None, 1], name="label")

        logits = inference(ids, dense)
        loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits), name="loss"
        )

        opt = tf.train.AdagradOptimizer(FLAGS.learning_rate)
        if FLAGS.sync_replicas:
            opt = tf.train.SyncReplicasOptimizer(
                opt, replicas_to_aggregate=num_workers, total_num_replicas=num_workers
            )
        train_op = opt.minimize(loss, global_step=global_step)

    hooks = [
        tf.train.StopAtStepHook(last_step=FLAGS.train_steps),
        tf.train.LoggingTensorHook({"loss": loss, "step": global_step}, every_n_iter=10),
    ]
    if FLAGS.sync_replicas:
        hooks.append(opt.make_session_run_hook(is_chief))

    # Without the filters the chief waits for workers that are already gone.
    config = tf.ConfigProto(
        allow_soft_placement=True,
        device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index],
    )
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.checkpoint_dir,
        hooks=hooks,
        save_checkpoint_secs=600,
        stop_grace_period_secs=2,  # the chief's queue runner never stops by itself
        config=config,
    ) as sess:
        reader = batches(FLAGS.train_file, FLAGS.batch_size)
        while not sess.should_stop():
            batch_ids, batch_dense, batch_label = next(reader)
            sess.run(train_op, feed_dict={ids: batch_ids, dense: batch_dense, label: batch_label})


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
