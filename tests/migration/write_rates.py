"""A job that is fed what is no column: a keep_prob and a scale of no shape, a learning rate.

    python write_rates.py FOLDER

Writes FOLDER/model.ckpt with its MetaGraph, and FOLDER/rows.npz.
"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

ROWS = 400


def rows(random):
    return {
        "item": random.randint(0, 20, ROWS),
        "tags": random.randint(-1, 20, (ROWS, 2)),  # those below 0 are dropped
        "age": random.rand(ROWS).astype("f"),
        "click": (random.rand(ROWS) < 0.3).astype("f"),
    }


def build():
    item = tf.placeholder(tf.int64, [None], name="item")
    tags = tf.sparse_placeholder(tf.int64, [None, None], name="tags")
    age = tf.placeholder(tf.float32, [None, 1], name="age")
    click = tf.placeholder(tf.float32, [None, 1], name="clicked")
    keep = tf.placeholder(tf.float32, name="keep")
    scale = tf.placeholder(tf.float32, name="scale")
    rate = tf.placeholder(tf.float32, [], name="rate")
    items = tf.get_variable("items", [20, 4])
    found = [tf.nn.embedding_lookup(items, item), tf.nn.safe_embedding_lookup_sparse(items, tags)]
    net = tf.matmul(tf.concat([*found, age * scale], 1), tf.get_variable("deep", [9, 8]))
    net = tf.nn.dropout(tf.nn.relu(net), keep_prob=keep)
    logits = tf.matmul(net, tf.get_variable("out", [8, 1]), name="logits")
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=click, logits=logits)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(rate).minimize(tf.reduce_mean(loss), step)
    return [item, tags, age, click, keep, scale, rate], train_op


def main(folder):
    log = rows(np.random.RandomState(0))
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        fed, train_op = build()
        session.run(tf.global_variables_initializer())
        for first in range(0, ROWS, 100):
            item, tags, age, click = (column[first : first + 100] for column in log.values())
            places = np.argwhere(np.ones((100, 2)))
            tags = tf.SparseTensorValue(places, tags.reshape(-1), (100, 2))
            values = [item, tags, age[:, None], click[:, None], 0.5, 1.0, 0.01]
            session.run(train_op, dict(zip(fed, values)))
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
    np.savez(os.path.join(folder, "rows.npz"), **log)


if __name__ == "__main__":
    tf.disable_v2_behavior()
    main(sys.argv[1])
