"""Writes frozen graphs: frozen.pb with a table of text and bare.pb, whose constants are numbers in
the code, by TensorFlow 1.15 or 2.x; by 2.x also function.pb, of a tf.function with a branch.
rows.npz has 60 rows of what all take."""

import os
import sys

import numpy as np
import tensorflow as tf2

tf = tf2.compat.v1


def write_frozen(path):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        city = tf.placeholder(tf.string, [None], name="city")
        values = tf.lookup.KeyValueTensorInitializer(
            ["Bern", "Oslo"], tf.constant([1, 2], tf.int64)
        )
        table = tf.lookup.StaticHashTable(values, 0)
        rows = tf.nn.embedding_lookup(tf.get_variable("cities", [3, 40]), table.lookup(city))
        net = tf.matmul(tf.concat([x, rows], 1), tf.get_variable("kernel", [43, 8]))
        tf.sigmoid(tf.reduce_sum(tf.nn.relu(net), 1), name="score")
        session.run(tf.global_variables_initializer())
        ends = ["score"] + [op.name for op in tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)]
        frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ends)
    with open(path, "wb") as file:
        file.write(frozen.SerializeToString())


def write_bare(path):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        tf.sigmoid(tf.reduce_sum(2.0 * x, 1), name="score")
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())


def write_function(path):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    tf2.random.set_seed(1)
    kernel = tf2.Variable(tf2.random.normal([3, 8]))

    @tf2.function
    def score(x, city):
        net = tf2.matmul(x, kernel)
        if tf2.reduce_sum(net) > 0.0:
            net = net * 2.0
        bucket = tf2.strings.to_hash_bucket_fast(city, 8)
        return tf2.sigmoid(tf2.reduce_sum(net * tf2.one_hot(bucket, 8), 1))

    signature = tf2.TensorSpec([None, 3], name="x"), tf2.TensorSpec([None], tf2.string, name="city")
    frozen = convert_variables_to_constants_v2(score.get_concrete_function(*signature))
    with open(path, "wb") as file:
        file.write(frozen.graph.as_graph_def().SerializeToString())


def main(folder):
    write_frozen(os.path.join(folder, "frozen.pb"))
    write_bare(os.path.join(folder, "bare.pb"))
    if tf2.__version__.startswith("2"):
        write_function(os.path.join(folder, "function.pb"))
    random = np.random.RandomState(0)
    rows = {
        "x": random.randn(60, 3).astype("f"),
        "city": random.choice(["Bern", "Oslo", "Rome"], 60),
        "clicked": np.arange(60) % 2,
    }
    np.savez(os.path.join(folder, "rows.npz"), **rows)


if __name__ == "__main__":
    main(sys.argv[1])
