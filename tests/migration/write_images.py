"""A job whose graph takes sixteen rows at a time: numbers [16, 4, 3], words [16, 2, 2] and an id.

Writes model.ckpt with its MetaGraph, and rows.npz with 150 rows and the scores that TensorFlow
gives them, batch by batch. Runs on TensorFlow 1.15 and 2.x.
"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

ROWS, BATCH = 150, 16


def rows(random):
    words = np.array([b"a", b"bb", b"ccc"], object)[random.randint(0, 3, (ROWS, 2, 2))]
    image = random.randn(ROWS, 4, 3).astype("f")
    item = random.randint(0, 40, ROWS)
    clicked = (random.rand(ROWS) < 1 / (1 + np.exp(-image.sum((1, 2))))).astype("f")
    return {"image": image, "words": words, "item": item, "clicked": clicked}


def build():
    image = tf.placeholder(tf.float32, [BATCH, 4, 3], name="image")
    words = tf.placeholder(tf.string, [BATCH, 2, 2], name="words")
    item = tf.placeholder(tf.int64, [BATCH], name="item")
    clicked = tf.placeholder(tf.float32, [BATCH], name="clicked")

    def variable(name, *sizes):
        return tf.get_variable(name, sizes, use_resource=False)

    buckets = tf.string_to_hash_bucket_fast(words, 10)
    texts = tf.nn.embedding_lookup(variable("texts", 10, 2), buckets)
    texts = tf.einsum("brcd,rcd->bd", texts, variable("places", 2, 2, 2))
    net = tf.nn.conv1d(image, variable("filters", 2, 3, 5), 1, "VALID")
    net = tf.nn.relu(tf.reshape(net, [BATCH, 15]))
    net = tf.concat([net, texts, tf.nn.embedding_lookup(variable("items", 40, 4), item)], 1)
    logits = tf.reshape(tf.matmul(net, variable("out", 21, 1)), [BATCH], name="logits")
    loss = tf.losses.sigmoid_cross_entropy(clicked, logits)
    step = tf.train.get_or_create_global_step()
    return logits, tf.train.AdagradOptimizer(0.1).minimize(loss, step)


def main(folder):
    tf.disable_v2_behavior()
    tf.set_random_seed(1)
    data = rows(np.random.RandomState(0))
    with tf.Session() as session:
        logits, train_op = build()
        session.run(tf.global_variables_initializer())
        names = ("image", "words", "item")
        batches = [np.arange(start, start + BATCH) % ROWS for start in range(0, ROWS, BATCH)]
        for _ in range(3):
            for batch in batches:
                fed = {name + ":0": data[name][batch] for name in (*names, "clicked")}
                session.run(train_op, fed)
        feeds = [{name + ":0": data[name][batch] for name in names} for batch in batches]
        scores = [session.run(logits, fed) for fed in feeds]
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
    np.savez(os.path.join(folder, "rows.npz"), scores=np.concatenate(scores)[:ROWS], **data)


if __name__ == "__main__":
    main(sys.argv[1])
