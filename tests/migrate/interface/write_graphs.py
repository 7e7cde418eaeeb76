"""Writes the MetaGraphs of training graphs whose inputs and outputs a test knows.

    python write_graphs.py FOLDER

Runs on TensorFlow 1.15 and 2.x.
"""

import os
import sys

import tensorflow.compat.v1 as tf


def model(user, price):
    """Logits [rows] of ids int64 [rows] and prices float32 [rows]."""
    halves = tf.fixed_size_partitioner(2)
    users = tf.get_variable("users", [40, 4], partitioner=halves)
    kernel = tf.get_variable("kernel", [5, 1])
    found = tf.nn.embedding_lookup(users, user % 40, partition_strategy="div")
    layer = tf.concat([found, tf.expand_dims(price, 1)], 1)
    return tf.squeeze(tf.matmul(layer, kernel), 1, name="logits")


def train(loss):
    tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_mean(loss))


def placeholders():
    user = tf.placeholder(tf.int64, [None], "user")
    price = tf.placeholder(tf.float32, [None], "price")
    label = tf.placeholder(tf.float32, [None], "label")
    tf.placeholder(tf.bool, [], "unused")
    return model(user, price), label


def sigmoid():
    logits, label = placeholders()
    tf.sigmoid(logits, "click")
    train(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits, name="loss"))


def log_loss():
    logits, label = placeholders()
    click = tf.sigmoid(logits, "click")
    train(tf.losses.log_loss(label, click))


def logistic():
    logits, label = placeholders()
    train(tf.log(1 + tf.exp(-label * logits), name="loss"))


def squared():
    logits, label = placeholders()
    train(tf.squared_difference(logits, label, name="loss"))


def served():
    logits, _ = placeholders()
    tf.sigmoid(logits, "click")


def iterator():
    rows = tf.data.Dataset.from_tensor_slices(([1, 2], [0.5, 1.5], [0.0, 1.0])).batch(2)
    user, price, label = tf.data.make_one_shot_iterator(rows).get_next()
    logits = model(tf.cast(user, tf.int64), price)
    train(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits, name="loss"))


def queue():
    rows = tf.FIFOQueue(8, [tf.int64, tf.float32], [[], []])
    tf.sigmoid(model(*rows.dequeue_many(4)), "click")


def examples():
    serialized = tf.placeholder(tf.string, [None], "serialized")
    features = {
        "user": tf.FixedLenFeature([], tf.int64),
        "price": tf.FixedLenFeature([], tf.float32),
        "tags": tf.VarLenFeature(tf.string),
    }
    parsed = tf.parse_example(serialized, features)
    tags = tf.sparse_placeholder(tf.int64, name="more_tags")
    table = tf.get_variable("tags", [50, 1])
    pooled = tf.nn.safe_embedding_lookup_sparse([table], tags, combiner="sum")
    tf.add(model(parsed["user"], parsed["price"]), pooled[:, 0], name="score")


def main(folder):
    for build in (sigmoid, log_loss, logistic, squared, served, iterator, queue, examples):
        with tf.Graph().as_default():
            build()
            saver = tf.train.Saver()
            meta = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
        with open(os.path.join(folder, build.__name__ + ".meta"), "wb") as file:
            file.write(meta.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1])
