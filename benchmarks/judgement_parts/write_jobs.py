"""Trains models with TensorFlow 1.15 on one data set, one for each optimizer, kind and BatchNorm.

    python -m benchmarks.judgement_parts.write_jobs FOLDER OPTIMIZER ...

Reads FOLDER/rows.npz, see data.py.

Writes FOLDER/OPTIMIZER-KIND[-norm]/model.ckpt with its MetaGraph, which is that of the training
alone. canned: DNNLinearCombinedClassifier, trained by `Estimator.train`; hand-written: partitioned
tables, dropout, clipped gradients, a rate that decays; not by Ftrl, which begins at 0 whatever the
initializer says, so that a tower stays dead.
"""

import os
import sys

import numpy as np
import tensorflow as tf

BATCH, STEPS = 64, 30
OPTIMIZERS = {
    "sgd": lambda rate: _clipping(tf.train.GradientDescentOptimizer(rate)),
    "momentum": lambda rate: _clipping(tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)),
    "adagrad": lambda rate: tf.train.AdagradOptimizer(rate),
    "adam": lambda rate: tf.train.AdamOptimizer(rate),
    "lazyadam": lambda rate: _lazy_adam(rate),
    "rmsprop": lambda rate: tf.train.RMSPropOptimizer(rate, momentum=0.5, centered=True),
    "ftrl": lambda rate: tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.001),
    "proximal": lambda rate: tf.train.ProximalAdagradOptimizer(
        rate, l2_regularization_strength=0.001
    ),
}


def _clipping(optimizer):
    """Clips the gradients: columns of thousands let these optimizers end in NaN otherwise."""
    from tensorflow.contrib.estimator import clip_gradients_by_norm

    return clip_gradients_by_norm(optimizer, 5.0)


def _lazy_adam(rate):
    from tensorflow.contrib.opt import LazyAdamOptimizer

    return LazyAdamOptimizer(rate)


def hand_written(rows, optimizer, norm, folder):
    """A job as most are: is_training is True in Python."""
    is_training = True
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        x = tf.placeholder(tf.float32, [None, rows["x"].shape[1]], name="x")
        ids = tf.placeholder(tf.int64, [None, rows["ids"].shape[1]], name="ids")
        label = tf.placeholder(tf.float32, [None], name="label")
        partitioner = tf.fixed_size_partitioner(3)
        table = tf.get_variable("table", [1000, 8], partitioner=partitioner)
        found = tf.nn.embedding_lookup(table, ids % 1000, partition_strategy="mod")
        hidden = tf.concat([x, tf.reshape(found, [-1, rows["ids"].shape[1] * 8])], 1)
        for number, units in enumerate([32, 16]):
            hidden = tf.layers.dense(hidden, units, name="dense_%d" % number)
            if norm:
                hidden = tf.layers.batch_normalization(hidden, training=is_training)
            hidden = tf.layers.dropout(tf.nn.relu(hidden), 0.2, training=is_training)
        logit = tf.squeeze(tf.layers.dense(hidden, 1, name="logit"), 1, name="scores")
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logit)
        loss = tf.reduce_mean(losses)
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.01, step, 20, 0.9)
        chosen = OPTIMIZERS[optimizer](rate)
        gradients, variables = zip(*chosen.compute_gradients(loss))
        gradients, _ = tf.clip_by_global_norm(gradients, 10.0)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = chosen.apply_gradients(zip(gradients, variables), step)
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for batch in batches(rows):
                session.run(train, {x: batch["x"], ids: batch["ids"], label: batch["label"]})
            saver.save(session, os.path.join(folder, "model.ckpt"))


class Feeding(tf.train.SessionRunHook):
    """Gives each step its batch."""

    def __init__(self, rows):
        self._batches = batches(rows)

    def before_run(self, run_context):
        """Feeds the next batch."""
        batch = next(self._batches)
        columns = {"x:0": batch["x"], "label:0": batch["label"]}
        columns.update(("w%d:0" % n, words) for n, words in enumerate(batch["words"].T))
        return tf.train.SessionRunArgs(None, columns)


def canned(rows, optimizer, norm, folder):
    """A canned model."""
    names = ["w%d" % number for number in range(rows["words"].shape[1])]
    words = [tf.feature_column.categorical_column_with_hash_bucket(name, 200) for name in names]
    numbers = tf.feature_column.numeric_column("x", shape=rows["x"].shape[1:])
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=folder,
        linear_feature_columns=words,
        linear_optimizer=OPTIMIZERS["ftrl"](0.05),
        dnn_feature_columns=[numbers]
        + [tf.feature_column.embedding_column(column, 8) for column in words],
        dnn_optimizer=OPTIMIZERS[optimizer](0.01),
        dnn_hidden_units=[32, 16],
        dnn_dropout=0.2,
        batch_norm=norm,
        config=tf.estimator.RunConfig(tf_random_seed=7, save_summary_steps=None),
    )

    def inputs():
        features = {name: tf.placeholder(tf.string, [None], name=name) for name in names}
        features["x"] = tf.placeholder(tf.float32, [None, rows["x"].shape[1]], name="x")
        return features, tf.placeholder(tf.float32, [None], name="label")

    estimator.train(inputs, hooks=[Feeding(rows)], steps=STEPS)


def batches(rows):
    """STEPS batches, of the rows again and again."""
    count = len(rows["label"])
    for number in range(STEPS):
        places = np.arange(number * BATCH, (number + 1) * BATCH) % count
        yield {name: values[places] for name, values in rows.items()}


def main():
    """The command line."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    folder = sys.argv[1]
    rows = dict(np.load(os.path.join(folder, "rows.npz")))
    for optimizer in sys.argv[2:]:
        for kind, write in (("canned", canned), ("hand", hand_written)):
            for norm in (False, True) if (optimizer, kind) != ("ftrl", "hand") else ():
                name = "-".join([optimizer, kind] + ["norm"] * norm)
                to = os.path.join(folder, name)
                os.makedirs(to)
                write(rows, optimizer, norm, to)


if __name__ == "__main__":
    main()
