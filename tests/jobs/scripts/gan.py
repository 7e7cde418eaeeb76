"""Distributed GAN: discriminators and a generator, each with its optimizer, trained in turns.

Usage, on each host:
  python gan.py --ps_hosts=h1:2222 --worker_hosts=h2:2222,h3:2222 \
      --job_name=worker --task_index=0 --data=part-00000.csv
"""

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
flags.DEFINE_integer("discriminators", 1, "How many there are")
flags.DEFINE_integer("discriminator_steps", 1, "Runs of each per round")
flags.DEFINE_boolean("own_steps", False, "Count the discriminators' steps, too")
FLAGS = flags.FLAGS


def batches(path, batch_size):
    """The (real, noise) batches of a file."""
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    for i in range(0, len(table), batch_size):
        rows = table[i : i + batch_size]
        yield rows[:, 1:3] + 1.0, rows[:, 3:] / [20.0, 12.5, 3.5] - 1.0


def layer(inputs, units, name):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [inputs.shape[1], units])
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.matmul(inputs, kernel) + bias


def discriminate(number, points):
    with tf.variable_scope("discriminator_%d" % number, reuse=tf.AUTO_REUSE):
        return layer(tf.nn.tanh(layer(points, 6, "hidden")), 1, "logits")


def cross_entropy(logits, is_real):
    labels = tf.fill(tf.shape(logits), float(is_real))
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(loss)


def train_ops(real, noise, global_step):
    """The train ops of the discriminators, then that of the generator; and their hooks."""
    with tf.variable_scope("generator"):
        fake = layer(noise, 2, "points")
    fakes = [discriminate(number, fake) for number in range(FLAGS.discriminators)]
    losses = [
        cross_entropy(discriminate(number, real), True) + cross_entropy(logits, False)
        for number, logits in enumerate(fakes)
    ]
    losses.append(tf.add_n([cross_entropy(logits, True) for logits in fakes]))
    ops, hooks = [], []
    for number, loss in enumerate(losses):
        is_generator = number == FLAGS.discriminators
        name = "generator" if is_generator else "discriminator_%d" % number
        step = global_step if is_generator else None
        if FLAGS.own_steps and not is_generator:
            step = tf.get_variable(name + "/steps", initializer=np.int64(0), trainable=False)
        variables = tf.trainable_variables(name + "/")
        opt = tf.train.AdamOptimizer(0.02)
        ops.append(opt.minimize(loss, global_step=step, var_list=variables))
    return ops, hooks


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return

    tf.set_random_seed(1234)
    worker_device = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker_device, cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        real = tf.placeholder(tf.float32, [None, 2], name="real")
        noise = tf.placeholder(tf.float32, [None, 3], name="noise")
        ops, hooks = train_ops(real, noise, global_step)

    # A round: each discriminator some times, then the generator.
    order = [op for op in ops[:-1] for _ in range(FLAGS.discriminator_steps)] + ops[-1:]
    config = tf.ConfigProto(
        allow_soft_placement=True,
        device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index],
    )
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=FLAGS.task_index == 0,
        checkpoint_dir=FLAGS.ckpt_dir,
        hooks=hooks,
        save_summaries_steps=None,
        save_summaries_secs=None,
        config=config,
    ) as sess:
        for number, (points, numbers) in enumerate(batches(FLAGS.data, FLAGS.batch_size)):
            sess.run(order[number % len(order)], feed_dict={real: points, noise: numbers})


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
