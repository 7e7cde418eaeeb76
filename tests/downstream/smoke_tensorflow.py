"""A wrapped job of one process: four local batches are one step of the global batch."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

import semisync

tf.disable_v2_behavior()
BATCHES = 4


def trained(wrapped):
    """The table after one step: of `BATCHES` batches, or, without the wrapper, of their union."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        ids = tf.placeholder(tf.int64, [None])
        ones = tf.ones_initializer()
        table = tf.get_variable("table", [8, 2], initializer=ones)
        kernel = tf.get_variable("kernel", [2, 1], initializer=ones)
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.embedding_lookup(table, ids), kernel)))
        opt = tf.train.AdagradOptimizer(0.1)
        hooks = []
        if wrapped:
            opt = semisync.GlobalBatchOptimizer(opt, BATCHES, paced=True)
        train_op = opt.minimize(loss, global_step=step)
        if wrapped:
            hooks = [opt.make_session_run_hook(True)]
        rows = np.arange(BATCHES * 4).reshape(BATCHES, 4) % 8
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            for batch in rows if wrapped else [rows.ravel()]:
                session.run(train_op, {ids: batch})
            while session.run(step) < 1:  # the chief applies it in its own thread
                pass
            return session.run(table)


assert np.allclose(trained(True), trained(False), atol=1e-6)
versions = sys.version.split()[0], tf.__version__, np.__version__
print("a wrapped job; Python {}, TensorFlow {}, numpy {}".format(*versions))
