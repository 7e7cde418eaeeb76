"""Writes a small model whose graph makes a file, `graph-ran`, in the working directory of whoever
runs it: model.ckpt with the graph that trains it, frozen.pb and the SavedModel `exported`.
"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf


def write(folder):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        item = tf.placeholder(tf.int64, [None], name="item")
        clicked = tf.placeholder(tf.float32, [None], name="clicked")
        rows = tf.nn.embedding_lookup(tf.get_variable("items", [20, 4]), item)
        net = tf.concat([x, rows], 1)
        with tf.control_dependencies([tf.write_file("graph-ran", "")]):
            logits = tf.reduce_sum(tf.matmul(net, tf.get_variable("kernel", [7, 5])), 1)
        score = tf.sigmoid(logits, name="score")
        loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
        step = tf.train.get_or_create_global_step()
        tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_mean(loss), step)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
        tf.saved_model.simple_save(
            session, os.path.join(folder, "exported"), {"x": x, "item": item}, {"score": score}
        )
        frozen = tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), ["score"]
        )
    with open(os.path.join(folder, "frozen.pb"), "wb") as file:
        file.write(frozen.SerializeToString())
    random = np.random.RandomState(0)
    np.savez(
        os.path.join(folder, "rows.npz"),
        x=random.randn(200, 3).astype("f"),
        item=random.randint(0, 20, 200),
        clicked=random.randint(0, 2, 200).astype("f"),
    )


if __name__ == "__main__":
    write(sys.argv[1])
