"""Small graphs for one behaviour each, trained a step and saved by this Python's TensorFlow."""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow.compat.v1 as tf


def saved(folder, build, feeds=None):
    """The prefix of a checkpoint of the graph that `build()` makes.

    It takes one step with X and Y. build: returns the training op. feeds: {placeholder: value}.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        train_op = build()
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        session.run(train_op, {"x:0": X, "y:0": Y, **(feeds or {})})
        return saver.save(session, str(folder / "model.ckpt"))


X = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]], np.float32)
Y = np.array([1.0, 0.0, 2.0], np.float32)


def regression(weight=None):
    """(loss, weight) of a linear regression of y on x."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.placeholder(tf.float32, [None], name="y")
    if weight is None:
        weight = tf.get_variable("weight", [2, 1], initializer=tf.constant_initializer(0.3))
    found = tf.matmul(x, weight)[:, 0]
    return tf.reduce_mean(tf.square(found - y), name="loss"), weight
