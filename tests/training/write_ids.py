"""A small job that looks ids up in many ways, and what TensorFlow makes of ids that no table has.

    python write_ids.py FOLDER

Writes FOLDER/model.ckpt with its MetaGraph, rows.npz, a batch by column, and answers.json: by
"COLUMN=ID" the loss of that batch with the id in its row AT, or null where TensorFlow refuses it.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

ROWS, AT, TABLE = 64, 40, 20
COLUMNS = ("item", "parts", "bag", "tag", "shifted", "bias")
CASES = [(column, one) for column in COLUMNS for one in (-1, 0, TABLE - 1, TABLE, TABLE + 1)]


def build():
    """(the loss, the training op)"""
    ids = {name: tf.placeholder(tf.int64, [None], name=name) for name in COLUMNS}
    click = tf.placeholder(tf.float32, [None], name="click")
    cut = tf.fixed_size_partitioner(3)
    with tf.variable_scope("model"):
        tables = {
            name: tf.get_variable(name, [TABLE, 4], partitioner=cut if name == "parts" else None)
            for name in COLUMNS[:-1]
        }
        biases = tf.get_variable("biases", [TABLE])
    rows = tf.stack([tf.range(tf.size(ids["bag"], out_type=tf.int64)), 0 * ids["bag"]], 1)
    shape = tf.stack([tf.size(ids["bag"], out_type=tf.int64), 1])
    bag, tag = (tf.SparseTensor(rows, ids[name], shape) for name in ("bag", "tag"))
    found = [
        tf.nn.embedding_lookup(tables["item"], ids["item"]),
        tf.nn.embedding_lookup(tables["parts"], ids["parts"], partition_strategy="div"),
        tf.nn.embedding_lookup_sparse(tables["bag"], bag, None, combiner="sum"),
        tf.nn.safe_embedding_lookup_sparse(tables["tag"], tag, combiner="sum"),
        tf.nn.embedding_lookup(tables["shifted"], ids["shifted"] - 1),
    ]
    logits = tf.reduce_sum(tf.concat(found, 1), 1) + tf.gather(biases, ids["bias"])
    loss = tf.losses.sigmoid_cross_entropy(click, tf.identity(logits, name="logits"))
    return loss, tf.train.AdagradOptimizer(0.1).minimize(loss)


def main(folder):
    tf.disable_v2_behavior()
    tf.set_random_seed(1)
    loss, _ = build()
    draw = np.random.RandomState(0)
    rows = {name: draw.randint(1, TABLE, ROWS) for name in COLUMNS}
    rows["click"] = draw.randint(0, 2, ROWS).astype("f")
    answers = {}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
        for column, one in CASES:
            fed = {name + ":0": values.copy() for name, values in rows.items()}
            fed[column + ":0"][AT] = one
            try:
                answers["{}={}".format(column, one)] = float(session.run(loss, fed))
            except tf.errors.InvalidArgumentError:
                answers["{}={}".format(column, one)] = None
    np.savez(os.path.join(folder, "rows.npz"), **rows)
    with open(os.path.join(folder, "answers.json"), "w") as file:
        json.dump(answers, file)


if __name__ == "__main__":
    main(sys.argv[1])
