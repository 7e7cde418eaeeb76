"""Distributed logistic regression whose chief saves the model by a Saver of its own at the end.

Usage, on each host:
  python own_saver.py --ps_hosts=h1:2222 --worker_hosts=h2:2222,h3:2222 \
      --job_name=worker --task_index=0 --data=part-00000.csv
"""

import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("job_name", "", "One of 'ps', 'worker'")
flags.DEFINE_integer("task_index", 0, "Index of task within the job")
flags.DEFINE_string("data", None, "CSV with a header")
flags.DEFINE_string("ckpt_dir", None, "Where to write checkpoints")
flags.DEFINE_integer("batch_size", 16, "Batch size of each worker")
FLAGS = flags.FLAGS


def batches(path, batch_size):
    """The (features, label) batches of a file."""
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    for i in range(0, len(table), batch_size):
        rows = table[i : i + batch_size]
        yield rows[:, 1:] / [1.0, 1.0, 40.0, 25.0, 7.0], rows[:, :1]


class SaveAtEnd(tf.train.SessionRunHook):
    """Saves what is to be exported, without the optimizer's slots."""

    def begin(self):
        variables = tf.trainable_variables() + [tf.train.get_global_step()]
        self._saver = tf.train.Saver(variables)

    def end(self, session):
        path = os.path.join(FLAGS.ckpt_dir, "export", "model")
        self._saver.save(session, path, global_step=tf.train.get_global_step())


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return

    is_chief = FLAGS.task_index == 0
    tf.set_random_seed(1234)
    worker_device = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker_device, cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        features = tf.placeholder(tf.float32, [None, 5])
        label = tf.placeholder(tf.float32, [None, 1])
        kernel = tf.get_variable("kernel", [5, 1])
        logits = tf.matmul(features, kernel)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        opt = tf.train.AdamOptimizer(0.05)
        train_op = opt.minimize(loss, global_step)

    hooks = [SaveAtEnd()] if is_chief else []
    config = tf.ConfigProto(
        allow_soft_placement=True,
        device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index],
    )
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.ckpt_dir,
        hooks=hooks,
        save_summaries_steps=None,
        save_summaries_secs=None,
        config=config,
    ) as sess:
        for x, y in batches(FLAGS.data, FLAGS.batch_size):
            sess.run(train_op, feed_dict={features: x, label: y})


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
