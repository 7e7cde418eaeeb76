"""Writes a job whose rows come in by Python code: model.ckpt, and rows.npz with 40 rows of what the
graph can be fed instead, and the scores that TensorFlow then gives."""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def build():
    line = tf.placeholder(tf.string, [None], name="line")
    price, user = tf.py_func(lambda _: None, [line], [tf.float32, tf.int64], name="parsed")
    price.set_shape([None, 2])
    user.set_shape([None])
    left, right = tf.split(tf.placeholder(tf.float32, [None, 4], name="x"), 2, 1, name="halves")
    words = tf.string_split(line, ",")
    ids = tf.string_to_hash_bucket_fast(words.values, 20)
    tags = tf.SparseTensor(words.indices, tf.identity(ids, name="tags"), words.dense_shape)
    scale = tf.placeholder_with_default(2.0, [], name="scale")
    items = tf.get_variable("items", [20, 4], use_resource=False)
    found = tf.nn.embedding_lookup_sparse(items, tags, None, combiner="sum")
    users = tf.nn.embedding_lookup(tf.get_variable("users", [50, 4], use_resource=False), user)
    kernel = tf.get_variable("kernel", [14, 1], use_resource=False)
    net = tf.concat([tf.log1p(price, name="logs"), left, right * scale, found, users], 1)
    return words, tf.matmul(net[:, :14], kernel, name="scores")


def main(folder):
    random = np.random.RandomState(0)
    rows = {
        "logs": random.rand(40, 2).astype("f"),
        "user": random.randint(0, 50, 40),
        "left": random.randn(40, 2).astype("f"),
        "x": random.randn(40, 4).astype("f"),
        "tags": random.randint(0, 20, (40, 3)),
    }
    with tf.Graph().as_default(), tf.Session() as session:
        words, scores = build()
        session.run(tf.global_variables_initializer())
        indices = np.stack([np.repeat(np.arange(40), 3), np.tile(np.arange(3), 40)], 1)
        feed = {
            "logs:0": rows["logs"],
            "parsed:1": rows["user"],
            "halves:0": rows["left"],
            "x:0": rows["x"],
            words.indices: indices,
            "tags:0": rows["tags"].reshape(-1),
            words.dense_shape: [40, 3],
        }
        rows["scores"] = session.run(scores, feed)
        rows["sparse"] = np.array([words.indices.name, "tags:0", words.dense_shape.name])
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
    np.savez(os.path.join(folder, "rows.npz"), **rows)


if __name__ == "__main__":
    main(sys.argv[1])
