"""A small click model, trained by a job of TensorFlow 1.x, and the rows that it is judged by.

    python write_job.py FOLDER

Writes FOLDER/model.ckpt with its MetaGraph, whose flag `training` switches dropout and BatchNorm,
FOLDER/scores.ckpt, the same variables with a graph that only scores, and FOLDER/rows.npz. Runs on
TensorFlow 1.15 and 2.x.
"""

import os
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


def main(folder):
    random = np.random.RandomState(0)
    log = rows(random)
    np.savez(os.path.join(folder, "rows.npz"), **log)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        training = tf.placeholder_with_default(False, [], name="training")
        fed, scores = logits(training)
        label = tf.placeholder(tf.float32, [None, 1], name="y")
        loss = tf.losses.sigmoid_cross_entropy(label, scores)
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, step)
        session.run(tf.global_variables_initializer())
        for first in range(0, ROWS, 100):
            batch = {name: column[first : first + 100] for name, column in log.items()}
            feed = {fed["city"]: batch["city"], fed["item"]: batch["item"], training: True}
            feed.update({fed["price"]: batch["price"][:, None], label: batch["clicked"][:, None]})
            session.run(train_op, feed)
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
    with tf.Graph().as_default(), tf.Session() as session:
        logits(False)
        saver = tf.train.Saver()
        saver.restore(session, os.path.join(folder, "model.ckpt"))
        saver.save(session, os.path.join(folder, "scores.ckpt"))


if __name__ == "__main__":
    main(sys.argv[1])
