"""The DeepFM of benchmarks.training_pace in TensorFlow: python in_tensorflow.py PREFIX THREADS.

Writes its checkpoint to PREFIX, then trains as it is asked to.
"""

import sys

import tensorflow.compat.v1 as tf
from job import FIELDS, NUMBERS, TABLE_ROWS, answer

tf.disable_v2_behavior()


def build():
    """The train op and its placeholders."""
    ids = [tf.placeholder(tf.int64, [None], "c%d" % k) for k in range(FIELDS)]
    numbers = tf.placeholder(tf.float32, [None, NUMBERS], "numbers")
    click = tf.placeholder(tf.float32, [None], "click")
    deep, wide = (
        [
            tf.nn.embedding_lookup(tf.get_variable("%s%d" % (name, k), [TABLE_ROWS, size]), one)
            for k, one in enumerate(ids)
        ]
        for name, size in (("deep", 16), ("wide", 1))
    )
    stacked = tf.stack(deep, 1)
    squares = tf.square(tf.reduce_sum(stacked, 1)) - tf.reduce_sum(tf.square(stacked), 1)
    net = tf.concat(deep + [numbers], 1)
    for size in (128, 64):
        net = tf.layers.dense(net, size, tf.nn.relu)
    logit = tf.layers.dense(net, 1)[:, 0] + 0.5 * tf.reduce_sum(squares, 1)
    logit += tf.add_n(wide)[:, 0] + tf.layers.dense(numbers, 1)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=click, logits=logit))
    step = tf.train.get_or_create_global_step()
    return tf.train.AdagradOptimizer(0.05).minimize(loss, step), ids + [numbers, click]


def main():
    prefix, threads = sys.argv[1], int(sys.argv[2])
    train_op, points = build()
    config = tf.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
    )
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
        answer(
            lambda batch: {point: batch[point.op.name] for point in points},
            lambda fed: session.run(train_op, fed),
        )


main()
