"""Writes a factorization machine with a global bias of shape [], trained; run as a script.

    python write_fm.py OUT

For each optimizer NAME: the checkpoint NAME/model.ckpt-3, with its MetaGraph, and NAME/steps.npz,
"ids", "label", "loss" [steps, ...] of the steps after it and "after/VARIABLE" of all variables.
"""

import os
import sys

import numpy as np
import tensorflow as tf

if tf.__version__ >= "2":
    tf = tf.compat.v1
    tf.disable_v2_behavior()

ROWS, DIM, FIELDS, STEPS = 40, 4, 3, 3


def train_ops(loss, w0, others):
    """By name; `two` has an Adam of its own for the bias."""
    yield "adagrad", lambda step: tf.train.AdagradOptimizer(0.1).minimize(loss, step)
    yield "adam", lambda step: tf.train.AdamOptimizer(0.01).minimize(loss, step)

    def two(step):
        first = tf.train.AdamOptimizer(0.01, beta2=0.9).minimize(loss, step, others)
        return tf.group(first, tf.train.AdamOptimizer(0.02, beta2=0.99).minimize(loss, None, [w0]))

    yield "two", two


def write(out, number):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        ids = tf.placeholder(tf.int64, [None, FIELDS], "ids")
        label = tf.placeholder(tf.float32, [None], "label")
        w0 = tf.get_variable("w0", [], initializer=tf.constant_initializer(0.25))
        w = tf.get_variable("w", [ROWS, 1])
        v = tf.get_variable("v", [ROWS, DIM])
        scale = tf.get_variable("scale", [], initializer=tf.ones_initializer(), trainable=False)
        rows = tf.nn.embedding_lookup(v, ids)
        pairs = tf.square(tf.reduce_sum(rows, 1)) - tf.reduce_sum(tf.square(rows), 1)
        linear = tf.reduce_sum(tf.nn.embedding_lookup(w, ids), [1, 2])
        logit = tf.add(w0 + linear, scale * 0.5 * tf.reduce_sum(pairs, 1), "logit")
        loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logit), name="loss"
        )
        step = tf.train.get_or_create_global_step()
        name, make = list(train_ops(loss, w0, [w, v]))[number]
        train = make(step)
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(3)
        batches = [
            {ids: random.randint(0, ROWS, [8, FIELDS]), label: random.randint(0, 2, 8)}
            for _ in range(2 * STEPS)
        ]
        for batch in batches[:STEPS]:
            session.run(train, batch)
        folder = os.path.join(out, name)
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"), step)
        kept = {"ids": [], "label": [], "loss": []}
        for batch in batches[STEPS:]:
            kept["ids"].append(batch[ids])
            kept["label"].append(np.float32(batch[label]))
            kept["loss"].append(session.run(loss, batch))
            session.run(train, batch)
            after = session.run({one.op.name: one for one in tf.global_variables()})
            for variable, values in after.items():
                kept.setdefault("after/" + variable, []).append(values)
        np.savez(os.path.join(folder, "steps.npz"), **kept)
    return name


if __name__ == "__main__":
    for number in range(3):
        write(sys.argv[1], number)
