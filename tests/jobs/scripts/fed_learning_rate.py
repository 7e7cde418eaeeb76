"""Asynchronous training of a factorization machine; the learning rate is fed at every step."""

from __future__ import absolute_import, division, print_function

import csv

import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "ps hosts, host:port,host:port")
tf.app.flags.DEFINE_string("worker_hosts", "", "worker hosts, host:port,host:port")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "index of task within the job")
tf.app.flags.DEFINE_string("data", "", "csv file of this worker")
tf.app.flags.DEFINE_string("ckpt_dir", "", "checkpoints")
tf.app.flags.DEFINE_integer("batch_size", 16, "batch size")
tf.app.flags.DEFINE_integer("epochs", 1, "passes over the data")
tf.app.flags.DEFINE_float("init_lr", 0.2, "initial learning rate")
tf.app.flags.DEFINE_float("lr_decay", 0.9, "decay of the learning rate")
FLAGS = tf.app.flags.FLAGS

FIELD_SIZES = [40, 25, 7]
K = 4


class FM(object):
    def __init__(self):
        self.feature_ids = tf.placeholder(tf.int32, [None, len(FIELD_SIZES)])
        self.feature_vals = tf.placeholder(tf.float32, [None, 2])
        self.label = tf.placeholder(tf.float32, [None])
        self.lr = tf.placeholder(tf.float32)
        self.global_step = tf.train.get_or_create_global_step()
        self.build()

    def build(self):
        n = sum(FIELD_SIZES)
        w0 = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        w = tf.get_variable("linear", [n, 1], initializer=tf.zeros_initializer())
        v = tf.get_variable("factors", [n, K], initializer=tf.random_normal_initializer(0, 0.1))
        wd = tf.get_variable("dense", [2, 1], initializer=tf.zeros_initializer())

        linear = tf.reduce_sum(tf.gather(w, self.feature_ids), axis=[1, 2])
        vx = tf.nn.embedding_lookup(v, self.feature_ids)  # batch * field * k
        square_of_sum = tf.square(tf.reduce_sum(vx, 1))
        sum_of_square = tf.reduce_sum(tf.square(vx), 1)
        second_order = 0.5 * tf.reduce_sum(square_of_sum - sum_of_square, 1)
        numeric = tf.reshape(tf.matmul(self.feature_vals, wd), [-1])
        self.logit = w0 + linear + second_order + numeric

        self.loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(logits=self.logit, labels=self.label)
        )
        optimizer = tf.train.GradientDescentOptimizer(self.lr)
        grads = optimizer.compute_gradients(self.loss)
        self.train_op = optimizer.apply_gradients(grads, global_step=self.global_step)


def read_data(path, batch_size, epochs):
    with open(path) as f:
        rows = list(csv.reader(f))[1:]
    offsets = [0, FIELD_SIZES[0], FIELD_SIZES[0] + FIELD_SIZES[1]]
    for _ in range(epochs):
        for begin in range(0, len(rows), batch_size):
            batch = rows[begin : begin + batch_size]
            ids = [[int(x) + offset for x, offset in zip(row[3:], offsets)] for row in batch]
            vals = [[float(x) for x in row[1:3]] for row in batch]
            yield ids, vals, [float(row[0]) for row in batch]


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    elif FLAGS.job_name == "worker":
        is_chief = FLAGS.task_index == 0
        tf.set_random_seed(2019)
        with tf.device(
            tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
            )
        ):
            model = FM()

        config = tf.ConfigProto(allow_soft_placement=True)
        config.device_filters.extend(["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
        hooks = []
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=is_chief,
            checkpoint_dir=FLAGS.ckpt_dir,
            hooks=hooks,
            config=config,
        ) as mon_sess:
            for ids, vals, labels in read_data(FLAGS.data, FLAGS.batch_size, FLAGS.epochs):
                step = mon_sess.run(model.global_step)
                lr = FLAGS.init_lr * FLAGS.lr_decay**step
                _, loss = mon_sess.run(
                    [model.train_op, model.loss],
                    feed_dict={
                        model.feature_ids: ids,
                        model.feature_vals: vals,
                        model.label: labels,
                        model.lr: lr,
                    },
                )
                print("step %d, lr %.5f, loss %.5f" % (step, lr, loss))


if __name__ == "__main__":
    tf.app.run()
