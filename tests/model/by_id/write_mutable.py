"""A model over contrib's MutableHashTable of vectors, whose rows the job puts in by hand.

    python write_mutable.py FOLDER

FOLDER/model.ckpt with its MetaGraph, and recorded.npz: users, and what the model gives for them.
"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.contrib.lookup import MutableHashTable


def main(folder):
    user = tf.placeholder(tf.int64, [None], name="user")
    label = tf.placeholder(tf.float32, [None], name="label")
    table = MutableHashTable(tf.int64, tf.float32, [0.5, -0.5], name="users")
    found = table.lookup(user)
    kernel = tf.get_variable("kernel", initializer=[[1.0], [2.0]])
    logits = tf.reshape(tf.matmul(found, kernel), [-1], name="logits")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    step = tf.train.get_or_create_global_step()
    moved = table.insert(user, found - 0.1 * tf.gradients(loss, [found])[0])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    train = tf.group(train, moved, name="train")
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train)
    put = table.insert(tf.constant([-4, 0, 2**40], tf.int64), [[1.0, 2], [3, 4], [5, 6]])
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), put])
        session.run(train, {user: [0, 7], label: [1.0, 0.0]})
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
        ids = np.array([7, -4, 9, 2**40, 0, 0])
        given = session.run(logits, {user: ids})
        np.savez(os.path.join(folder, "recorded.npz"), user=ids, logits=given)


if __name__ == "__main__":
    main(sys.argv[1])
