"""Small graphs for one behaviour each, trained a step and saved by this Python's TensorFlow."""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow.compat.v1 as tf
import torch

from migrate.model.training.steps import recorded_step


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


def steps_of(session, folder, loss, train_op, feeds=None):
    """The prefix of a checkpoint of the default graph, and three steps that follow it."""
    session.run(tf.global_variables_initializer())
    prefix = tf.train.Saver().save(session, str(folder / "model.ckpt"))
    steps = []
    for k in range(3):
        features, labels = X * (k + 1) - k, Y + k
        fed = {"x:0": features, "y:0": labels, **(feeds or {})}
        before, _ = session.run([loss, train_op], fed)
        values = session.run({one.op.name: one for one in tf.global_variables()})
        given = {"x": torch.tensor(features), "y": torch.tensor(labels)}
        steps.append(recorded_step(given, float(before), values))
    return prefix, steps


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
