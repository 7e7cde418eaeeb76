"""Writes jobs whose sizes are out of the ordinary; run as a script.

    python write_sizes.py OUT

Each is OUT/NAME.ckpt, and rows.csv has 50 rows of user, item and clicked:

reshaped    16 rows at a time, as a reshape alone says
mean        the mean over a batch of 16 numbers per row, which are no rows' scores
vector      minimizes a loss per row, of which tf.gradients takes the sum
one         minimizes a loss of the shape [1]
"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

ROWS, BATCH = 50, 16


def build(name):
    """The logits, [rows]."""
    user, item = (tf.placeholder(tf.int64, [None], name=name) for name in ("user", "item"))
    random = tf.random_normal_initializer(seed=1)
    users = tf.get_variable("users", [20, 4], initializer=random, use_resource=False)
    items = tf.get_variable("items", [30, 4], initializer=random, use_resource=False)
    vectors = tf.nn.embedding_lookup(items, item)
    if name == "reshaped":
        vectors = tf.reshape(tf.expand_dims(vectors, 1), [BATCH, -1, 4])
        vectors = tf.reshape(tf.reduce_mean(tf.nn.tanh(vectors), 1), [BATCH, 4])
    found = tf.nn.embedding_lookup(users, user)
    if name == "mean":
        wide = tf.concat([found, vectors, found * vectors, found - vectors], 1)
        tf.reduce_mean(wide, 0, name="mean")
    return tf.reduce_sum(found * vectors, 1, name="logits")


def write(folder, name, rows):
    tf.reset_default_graph()
    logits = build(name)
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
    if name != "vector":
        loss = tf.reduce_mean(loss)
    if name == "one":
        loss = tf.reshape(loss, [1])
    tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, os.path.join(folder, name + ".ckpt"))


def main(folder):
    random = np.random.RandomState(0)
    columns = [random.randint(0, size, ROWS) for size in (20, 30, 2)]
    np.savetxt(
        os.path.join(folder, "rows.csv"),
        np.stack(columns, 1),
        "%d",
        ",",
        header="user,item,clicked",
        comments="",
    )
    for name in ("reshaped", "mean", "vector", "one"):
        write(folder, name, columns)


if __name__ == "__main__":
    main(sys.argv[1])
