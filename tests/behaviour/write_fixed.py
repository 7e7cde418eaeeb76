"""Writes jobs whose graphs take 16 rows at a time, as their shapes, constants and reshapes say.

    python write_fixed.py OUT

Each is OUT/NAME.ckpt, and rows.parquet has 50 rows of item, history, price and clicked:

dropped     batches by drop_remainder=True; what is tiled, filled and reshaped to their rows
sixteen     the same, with layers as wide as a batch has rows
sized       placeholders of [16], and a recurrent net that begins with zeros of [16, 8]
normed      as the first, with BatchNorm as it trains
positions   adds to each row what depends on its place in the batch
mean        subtracts the mean over the batch
first       adds the first row of the batch
crossed     weighs all rows of the batch for each
"""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.layers under TensorFlow 2.16 and later

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

ROWS, BATCH, LENGTH = 50, 16, 5


def delivered():
    """The inputs, from a data set that drops what does not fill a batch."""
    data = tf.data.Dataset.from_tensor_slices(
        {
            "item": np.zeros(BATCH, np.int64),
            "history": np.zeros([BATCH, LENGTH], np.int64),
            "price": np.zeros(BATCH, np.float32),
            "clicked": np.zeros(BATCH, np.float32),
        }
    )
    batches = data.repeat().batch(BATCH, drop_remainder=True)
    return tf.data.make_one_shot_iterator(batches).get_next()


def fed():
    return {
        "item": tf.placeholder(tf.int64, [BATCH], name="item"),
        "history": tf.placeholder(tf.int64, [BATCH, LENGTH], name="history"),
        "price": tf.placeholder(tf.float32, [BATCH], name="price"),
        "clicked": tf.placeholder(tf.float32, [BATCH], name="clicked"),
    }


def build(name):
    """The logits and the labels, [rows]."""
    batch = fed() if name == "sized" else delivered()
    width = BATCH if name == "sixteen" else 8
    items = tf.get_variable("items", [30, width], use_resource=name == "sixteen")
    found = tf.nn.embedding_lookup(items, batch["item"])
    history = tf.nn.embedding_lookup(items, batch["history"])
    if name == "sized":
        cell = tf.nn.rnn_cell.GRUCell(width)
        _, state = tf.nn.dynamic_rnn(
            cell, history, initial_state=cell.zero_state(BATCH, tf.float32)
        )
        parts = [found, state]
    else:
        scored = tf.layers.dense(history, width, tf.nn.relu)  # by a reshape to [80, width] and back
        flat = tf.reshape(scored, [BATCH, LENGTH * width])
        query = tf.tile(tf.expand_dims(found, 1), [1, LENGTH, 1])
        weights = tf.nn.softmax(tf.reduce_sum(query * history, 2) + tf.zeros([BATCH, LENGTH]))
        attended = tf.matmul(tf.expand_dims(weights, 1), history)
        bias = tf.get_variable("bias", [1, 3])
        parts = [found, flat, tf.reshape(attended, [BATCH, -1]), tf.tile(bias, [BATCH, 1])]
        parts += [tf.ones([BATCH, 1]), tf.fill([BATCH, 2], 0.5)]
    net = tf.concat([*parts, tf.reshape(batch["price"], [BATCH, 1])], 1)
    if name == "positions":
        net += tf.constant(np.arange(BATCH, dtype=np.float32)[:, None])
    if name == "mean":
        net -= tf.reduce_mean(net, 0)
    if name == "first":
        net += net[0]
    if name == "crossed":
        net = tf.matmul(tf.nn.softmax(tf.matmul(net, net, transpose_b=True)), net)
    net = tf.layers.dense(net, width, tf.nn.relu)
    if name == "normed":
        net = tf.layers.batch_normalization(net, training=True)
    logits = tf.layers.dense(net, 1)
    return tf.reshape(logits, [BATCH], name="logits"), batch["clicked"]


def write(folder, name):
    tf.reset_default_graph()
    tf.set_random_seed(1)
    logits, clicked = build(name)
    loss = tf.losses.sigmoid_cross_entropy(clicked, logits)
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        tf.train.AdagradOptimizer(0.1).minimize(loss, step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, os.path.join(folder, name + ".ckpt"))


def main(folder):
    random = np.random.RandomState(0)
    rows = {
        "item": random.randint(0, 30, ROWS),
        "history": random.randint(0, 30, [ROWS, LENGTH]),
        "price": random.rand(ROWS).astype("f"),
        "clicked": random.randint(0, 2, ROWS).astype("f"),
    }
    np.savez(os.path.join(folder, "rows.npz"), **rows)
    for name in ("dropped", "sixteen", "sized", "normed", "positions", "mean", "first", "crossed"):
        write(folder, name)


if __name__ == "__main__":
    main(sys.argv[1])
