"""A small click model, trained by a job of TensorFlow 1.x, and the rows that it is judged by.

    python write_job.py FOLDER [wrapped DIGEST]

Writes FOLDER/model.ckpt with its MetaGraph, whose flag `training` switches dropout and BatchNorm,
FOLDER/scores.ckpt, the same variables with a graph that only scores, FOLDER/trains.ckpt, the same
job with `training=True` in Python, as most have it, FOLDER/weights.ckpt, of a Saver that was made
before the training op, and FOLDER/rows.npz. Wrapped, semisync wraps the optimizer, and FOLDER is
the session's checkpoint directory; DIGEST is of semisync's sources.
Runs on TensorFlow 1.15 and 2.x.
"""

import os
import pathlib
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.layers under TensorFlow 2.16 and later

import numpy as np
import tensorflow.compat.v1 as tf

ROWS = 3000


def rows(random):
    city = np.array([b"Bern", b"Oslo", b"Riga"], object)[random.randint(0, 3, ROWS)]
    item, price = random.randint(0, 100, ROWS), np.exp(random.randn(ROWS)).astype("f")
    logit = 1.5 * (item % 3 == 0) + (city == b"Oslo") - 0.5 * np.log(price) - 1
    clicked = (random.rand(ROWS) < 1 / (1 + np.exp(-logit))).astype("f")
    return {"city": city, "item": item, "price": price, "clicked": clicked}


def logits(training):
    city = tf.placeholder(tf.string, [None], name="city")
    item = tf.placeholder(tf.int64, [None], name="item")
    price = tf.placeholder(tf.float32, [None, 1], name="price")
    cities = tf.get_variable("cities", [50, 4])
    items = tf.get_variable("items", [100, 4], partitioner=tf.fixed_size_partitioner(2))
    parts = [
        tf.nn.embedding_lookup(cities, tf.string_to_hash_bucket_fast(city, 50)),
        tf.nn.embedding_lookup(items, item, partition_strategy="div"),
        tf.log1p(price),
    ]
    net = tf.layers.dense(tf.concat(parts, 1), 8)
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, momentum=0.9))
    net = tf.layers.dropout(net, 0.1, training=training)
    return {"city": city, "item": item, "price": price}, tf.layers.dense(net, 1, name="out")


def job(wrap=lambda optimizer: optimizer, always=False, before=lambda: None):
    """(function of a batch of rows -> what is fed, the training op), in the default graph.

    Args:
        before: called before the training op is built.
    """
    tf.set_random_seed(1)
    training = always or tf.placeholder_with_default(False, [], name="training")
    fed, scores = logits(training)
    label = tf.placeholder(tf.float32, [None, 1], name="y")
    loss = tf.losses.sigmoid_cross_entropy(label, scores)
    before()
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = wrap(tf.train.AdagradOptimizer(0.1)).minimize(loss, step)

    def feed(batch):
        feed = {fed["city"]: batch["city"], fed["item"]: batch["item"]}
        if not always:
            feed[training] = True
        feed.update({fed["price"]: batch["price"][:, None], label: batch["clicked"][:, None]})
        return feed

    return feed, train_op


def batches(log):
    for first in range(0, ROWS, 100):
        yield {name: column[first : first + 100] for name, column in log.items()}


def write(folder, log):
    for name, always in (("model.ckpt", False), ("trains.ckpt", True)):
        with tf.Graph().as_default(), tf.Session() as session:
            feed, train_op = job(always=always)
            session.run(tf.global_variables_initializer())
            for batch in batches(log):
                session.run(train_op, feed(batch))
            tf.train.Saver().save(session, os.path.join(folder, name))
    with tf.Graph().as_default(), tf.Session() as session:
        savers = []
        feed, train_op = job(
            lambda _: tf.train.AdamOptimizer(0.01), before=lambda: savers.append(tf.train.Saver())
        )
        session.run(tf.global_variables_initializer())
        for batch in batches(log):
            session.run(train_op, feed(batch))
        savers[0].save(session, os.path.join(folder, "weights.ckpt"))
    with tf.Graph().as_default(), tf.Session() as session:
        logits(False)
        saver = tf.train.Saver()
        saver.restore(session, os.path.join(folder, "model.ckpt"))
        saver.save(session, os.path.join(folder, "scores.ckpt"))


def write_wrapped(folder, log):
    """FOLDER is the checkpoint directory of a session."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    import semisync

    wrapped = []

    def wrap(optimizer):
        wrapped.append(semisync.GlobalBatchOptimizer(optimizer, 2))
        return wrapped[0]

    with tf.Graph().as_default():
        feed, train_op = job(wrap)
        hook = wrapped[0].make_session_run_hook(True)
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=[hook]) as session:
            for batch in batches(log):
                session.run(train_op, feed(batch))


if __name__ == "__main__":
    every_row = rows(np.random.RandomState(0))
    np.savez(os.path.join(sys.argv[1], "rows.npz"), **every_row)
    (write_wrapped if "wrapped" in sys.argv else write)(sys.argv[1], every_row)
