"""Writes a model with a variable `bias` beside a layer `dense`: write_bias.py OUT."""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf

if tf.__version__ >= "2":
    tf = tf.compat.v1
    tf.disable_v2_behavior()

x = tf.placeholder(tf.float32, [None, 3], "x")
bias = tf.get_variable("bias", [1])
tf.sigmoid(tf.layers.dense(x, 1, bias_initializer=tf.ones_initializer()) + bias, name="score")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, os.path.join(sys.argv[1], "model.ckpt"))
