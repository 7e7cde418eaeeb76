"""Distributed click prediction with tf.train.Supervisor, asynchronous or with --sync_replicas.

Start one process for each entry of --ps_hosts and --worker_hosts. The worker with task_index 0 is
the chief: it initialises the model, and the others wait for it.
"""

from __future__ import absolute_import, division, print_function

import csv
import math
import os
import sys
import time

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("train_file", None, "Training data, CSV")
flags.DEFINE_string("train_dir", "/tmp/clicks", "Directory of checkpoints and summaries")
flags.DEFINE_integer("task_index", None, "Worker task index, >= 0. 0 is the chief.")
flags.DEFINE_integer(
    "replicas_to_aggregate",
    None,
    "Number of replicas to aggregate before parameter update is applied (sync_replicas mode "
    "only; default: num_workers)",
)
flags.DEFINE_integer("hidden_units", 12, "Number of units in the hidden layer")
flags.DEFINE_integer("train_steps", 200, "Number of (global) training steps to perform")
flags.DEFINE_integer("batch_size", 16, "Training batch size")
flags.DEFINE_float("learning_rate", 0.01, "Learning rate")
flags.DEFINE_boolean("sync_replicas", False, "Use synchronized replicas mode")
flags.DEFINE_string("ps_hosts", "localhost:2222", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "localhost:2223,localhost:2224", "Same, of the workers")
flags.DEFINE_string("job_name", None, "job name: worker or ps")
FLAGS = flags.FLAGS

ONE_HOT = [40, 25, 7]  # user, item, category


class ClickData(object):
    """Keeps the whole file in memory; next_batch starts over at the end."""

    def __init__(self, path):
        with open(path) as f:
            rows = list(csv.reader(f))[1:]
        self.labels = np.array([[float(row[0])] for row in rows], np.float32)
        self.features = np.zeros((len(rows), 2 + sum(ONE_HOT)), np.float32)
        for i, row in enumerate(rows):
            self.features[i, :2] = [float(value) for value in row[1:3]]
            offset = 2
            for size, value in zip(ONE_HOT, row[3:]):
                self.features[i, offset + int(value)] = 1.0
                offset += size
        self.position = 0

    def next_batch(self, batch_size):
        start, self.position = self.position, self.position + batch_size
        if self.position >= len(self.labels):
            self.position = 0
        return self.features[start : start + batch_size], self.labels[start : start + batch_size]


def main(unused_argv):
    if FLAGS.job_name is None or FLAGS.job_name == "":
        raise ValueError("Must specify an explicit `job_name`")
    if FLAGS.task_index is None or FLAGS.task_index == "":
        raise ValueError("Must specify an explicit `task_index`")
    print("job name = %s" % FLAGS.job_name)
    print("task index = %d" % FLAGS.task_index)

    # Construct the cluster and start the server
    ps_spec = FLAGS.ps_hosts.split(",")
    worker_spec = FLAGS.worker_hosts.split(",")
    num_workers = len(worker_spec)
    cluster = tf.train.ClusterSpec({"ps": ps_spec, "worker": worker_spec})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()

    is_chief = FLAGS.task_index == 0
    data = ClickData(FLAGS.train_file)
    worker_device = "/job:worker/task:%d" % FLAGS.task_index
    # The device setter will automatically place Variables ops on separate parameter servers (ps).
    # The non-Variable ops will be placed on the workers.
    with tf.device(
        tf.train.replica_device_setter(
            worker_device=worker_device, ps_device="/job:ps/cpu:0", cluster=cluster
        )
    ):
        tf.set_random_seed(42)
        global_step = tf.Variable(0, name="global_step", trainable=False)
        width = 2 + sum(ONE_HOT)

        # Variables of the hidden layer
        hid_w = tf.Variable(
            tf.truncated_normal([width, FLAGS.hidden_units], stddev=1.0 / math.sqrt(width)),
            name="hid_w",
        )
        hid_b = tf.Variable(tf.zeros([FLAGS.hidden_units]), name="hid_b")

        # Variables of the output layer
        out_w = tf.Variable(
            tf.truncated_normal(
                [FLAGS.hidden_units, 1], stddev=math.sqrt(1.0 / FLAGS.hidden_units)
            ),
            name="out_w",
        )
        out_b = tf.Variable(tf.zeros([1]), name="out_b")

        x = tf.placeholder(tf.float32, [None, width])
        y_ = tf.placeholder(tf.float32, [None, 1])
        hid = tf.nn.relu(tf.nn.xw_plus_b(x, hid_w, hid_b))
        y = tf.nn.sigmoid(tf.nn.xw_plus_b(hid, out_w, out_b))
        cross_entropy = -tf.reduce_mean(
            y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0))
            + (1 - y_) * tf.log(tf.clip_by_value(1 - y, 1e-10, 1.0))
        )

        opt = tf.train.AdamOptimizer(FLAGS.learning_rate)

        if FLAGS.sync_replicas:
            if FLAGS.replicas_to_aggregate is None:
                replicas_to_aggregate = num_workers
            else:
                replicas_to_aggregate = FLAGS.replicas_to_aggregate

            opt = tf.train.SyncReplicasOptimizer(
                opt,
                replicas_to_aggregate=replicas_to_aggregate,
                total_num_replicas=num_workers,
                name="clicks_sync_replicas",
            )

        train_step = opt.minimize(cross_entropy, global_step=global_step)

        if FLAGS.sync_replicas:
            local_init_op = opt.local_step_init_op
            if is_chief:
                local_init_op = opt.chief_init_op

            ready_for_local_init_op = opt.ready_for_local_init_op

            # Initial token and chief queue runners required by the sync_replicas mode
            chief_queue_runner = opt.get_chief_queue_runner()
            sync_init_op = opt.get_init_tokens_op()

        init_op = tf.global_variables_initializer()

        if FLAGS.sync_replicas:
            sv = tf.train.Supervisor(
                is_chief=is_chief,
                logdir=FLAGS.train_dir,
                init_op=init_op,
                local_init_op=local_init_op,
                ready_for_local_init_op=ready_for_local_init_op,
                recovery_wait_secs=1,
                global_step=global_step,
            )
        else:
            sv = tf.train.Supervisor(
                is_chief=is_chief,
                logdir=FLAGS.train_dir,
                init_op=init_op,
                recovery_wait_secs=1,
                global_step=global_step,
            )

        sess_config = tf.ConfigProto(
            allow_soft_placement=True,
            log_device_placement=False,
            device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index],
        )

        # The chief worker (task_index==0) session will prepare the session, while the remaining
        # workers will wait for the preparation to complete.
        if is_chief:
            print("Worker %d: Initializing session..." % FLAGS.task_index)
        else:
            print("Worker %d: Waiting for session to be initialized..." % FLAGS.task_index)

        sess = sv.prepare_or_wait_for_session(server.target, config=sess_config)
        print("Worker %d: Session initialization complete." % FLAGS.task_index)

        if FLAGS.sync_replicas and is_chief:
            # Chief worker will start the chief queue runner and call the init op.
            sess.run(sync_init_op)
            sv.start_queue_runners(sess, [chief_queue_runner])

        # Perform training
        time_begin = time.time()
        local_step, step = 0, 0
        while step < FLAGS.train_steps:
            batch_xs, batch_ys = data.next_batch(FLAGS.batch_size)
            sess.run(train_step, feed_dict={x: batch_xs, y_: batch_ys})
            step = sess.run(global_step)
            local_step += 1
            print("Worker %d: step %d (global step: %d)" % (FLAGS.task_index, local_step, step))
        print("Training elapsed time: %f s" % (time.time() - time_begin))

        if is_chief:
            sv.saver.save(sess, os.path.join(FLAGS.train_dir, "final.ckpt"), global_step=step)
        sys.stdout.flush()


if __name__ == "__main__":
    tf.app.run()
