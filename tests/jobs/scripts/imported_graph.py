"""Trains the graph that export_graph.py wrote, on parameter servers and workers."""

from __future__ import absolute_import, division, print_function

import csv

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("meta_graph", "model.meta", "The exported graph")
flags.DEFINE_string("train_data", None, "CSV file of this worker")
flags.DEFINE_string("checkpoint_path", None, "Directory of the checkpoints")
flags.DEFINE_integer("batch_size", 16, "Batch size")
flags.DEFINE_string("ps_hosts", "", "Parameter servers")
flags.DEFINE_string("worker_hosts", "", "Workers")
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "Number of the ps or worker")
FLAGS = flags.FLAGS


def read_batches():
    with open(FLAGS.train_data) as lines:
        rows = list(csv.DictReader(lines))
    for start in range(0, len(rows), FLAGS.batch_size):
        batch = rows[start : start + FLAGS.batch_size]
        yield {
            "dense:0": [[row["price"], row["hour"]] for row in batch],
            "sparse:0": [[row["user"], row["item"], row["category"]] for row in batch],
            "label:0": [row["label"] for row in batch],
        }


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()

    is_chief = FLAGS.task_index == 0
    device = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=device)):
        tf.train.import_meta_graph(FLAGS.meta_graph)
    hooks = []

    config = tf.ConfigProto(device_filters=["/job:ps", device])
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.checkpoint_path,
        hooks=hooks,
        config=config,
    ) as sess:
        for feed_dict in read_batches():
            _, loss = sess.run(["train", "loss:0"], feed_dict)
            print("loss: %.4f" % loss)


if __name__ == "__main__":
    tf.app.run()
