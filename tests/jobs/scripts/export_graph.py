"""Builds the training graph once and exports it; imported_graph.py trains it on the cluster."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("output", "model.meta", "Where to write the MetaGraph")
flags.DEFINE_float("learning_rate", 0.01, "Learning rate")
FLAGS = flags.FLAGS


def cross_layer(x0, x, name):
    with tf.variable_scope(name):
        width = x0.get_shape().as_list()[1]
        w = tf.get_variable("w", [width, 1], initializer=tf.glorot_uniform_initializer())
        b = tf.get_variable("b", [width], initializer=tf.zeros_initializer())
        return x0 * tf.matmul(x, w) + b + x


def build_graph():
    tf.set_random_seed(17)
    global_step = tf.train.get_or_create_global_step()
    dense = tf.placeholder(tf.float32, [None, 2], name="dense")
    sparse = tf.placeholder(tf.int64, [None, 3], name="sparse")
    label = tf.placeholder(tf.float32, [None], name="label")

    with tf.variable_scope("deep_and_cross"):
        parts = [dense]
        for i, size in enumerate([40, 25, 7]):
            table = tf.get_variable(
                "table_%d" % i, [size, 4], initializer=tf.random_normal_initializer(stddev=0.1)
            )
            parts.append(tf.nn.embedding_lookup(table, sparse[:, i]))
        x0 = tf.concat(parts, 1)
        x = cross_layer(x0, x0, "cross_1")
        x = cross_layer(x0, x, "cross_2")
        deep = tf.layers.dense(x0, 12, activation=tf.nn.relu)
        logit = tf.layers.dense(tf.concat([x, deep], 1), 1)

    loss = tf.losses.sigmoid_cross_entropy(label, tf.squeeze(logit, 1))
    tf.identity(loss, name="loss")
    # The workers fetch it by its name.
    tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss, global_step, name="train")


def main(_):
    build_graph()
    tf.train.export_meta_graph(FLAGS.output, clear_devices=True)


if __name__ == "__main__":
    tf.app.run()
