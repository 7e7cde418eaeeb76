"""Distributed TransE: embeddings of entities, of length 1 after every step, and their average.

Usage, on each host:
  python transe.py --ps_hosts=h1:2222 --worker_hosts=h2:2222,h3:2222 \
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
flags.DEFINE_boolean("resource", False, "Use resource variables")
FLAGS = flags.FLAGS

ENTITIES, RELATIONS, SIZE = 40, 7, 8


def batches(path, batch_size):
    """The batches of a file: triples of head, tail and relation."""
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    for i in range(0, len(table), batch_size):
        yield table[i : i + batch_size, 3:].astype(np.int64)


def table(name, rows):
    initializer = tf.random_uniform_initializer(-1.0, 1.0)
    return tf.get_variable(name, [rows, SIZE], initializer=initializer, use_resource=FLAGS.resource)


def margin_loss(entities, relations, triples):
    head, tail = (tf.nn.embedding_lookup(entities, triples[:, n]) for n in (0, 1))
    relation = tf.nn.embedding_lookup(relations, triples[:, 2])
    corrupted = tf.nn.embedding_lookup(entities, (triples[:, 1] + 5) % ENTITIES)
    near = tf.reduce_sum(tf.square(head + relation - tail), 1)
    far = tf.reduce_sum(tf.square(head + relation - corrupted), 1)
    return tf.reduce_mean(tf.nn.softplus(1.0 + near - far))


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return

    is_chief = FLAGS.task_index == 0
    hooks = []
    tf.set_random_seed(1234)
    worker_device = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker_device, cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        triples = tf.placeholder(tf.int64, [None, 3], name="triples")
        entities, relations = table("entities", ENTITIES), table("relations", RELATIONS)
        opt = tf.train.AdagradOptimizer(0.2)
        train_op = opt.minimize(margin_loss(entities, relations, triples), global_step)
        with tf.control_dependencies([train_op]):
            normalized = entities.assign(tf.nn.l2_normalize(entities, 1))
        with tf.control_dependencies([normalized]):
            averaged = tf.train.ExponentialMovingAverage(0.8).apply([entities, relations])

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
        for batch in batches(FLAGS.data, FLAGS.batch_size):
            sess.run(averaged, feed_dict={triples: batch})


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
