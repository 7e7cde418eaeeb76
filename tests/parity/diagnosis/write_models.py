"""Trains a small click model with TensorFlow, sound and with faults; run as a script.

    python write_models.py OUT

Writes a checkpoint OUT/NAME for each model, and OUT/NAME.npy with its scores of the test log.

    baseline      Adagrad from 0.1, BatchNorm's statistics updated, tags pooled by their mean
    fresh         goes on from half of the training with accumulators of 1e-8
    never_updated trained alike, but without the update of BatchNorm's statistics
    summed        the baseline's variables, tags pooled by their sum
    zeroed        the baseline's variables, but every third user's row is zero
"""

import os
import sys

import numpy as np
import tensorflow as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from log import ITEMS, NUMBERS, TAGS, TEST, TRAIN, USERS, write_log

if tf.__version__ >= "2":
    tf = tf.compat.v1
    tf.disable_v2_behavior()

from tensorflow.python.training import moving_averages

BATCH, RATE = 256, 0.05


class Model:
    """A graph with a training op and the scores at inference."""

    def __init__(self, accumulator=0.1, combiner="mean", update=True):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(1)
            start = tf.random_normal_initializer(stddev=0.1)
            halves = tf.fixed_size_partitioner(2)
            self.user = tf.get_variable("user", [USERS, 8], None, start, partitioner=halves)
            item = tf.get_variable("item", [ITEMS, 8], None, start)
            tags = tf.get_variable("tags", [TAGS, 8], None, start)
            self.inputs = [
                tf.placeholder(tf.int64, [None]),
                tf.placeholder(tf.int64, [None]),
                tf.sparse_placeholder(tf.int64),
                tf.placeholder(tf.float32, [None, NUMBERS]),
            ]
            self.label = tf.placeholder(tf.float32, [None])
            users, items, bags, numbers = self.inputs
            embedded = [
                tf.nn.embedding_lookup(self.user, users, partition_strategy="mod"),
                tf.nn.embedding_lookup(item, items),
                tf.nn.embedding_lookup_sparse(tags, bags, None, combiner=combiner),
            ]
            with tf.variable_scope("norm"):
                zeros, ones = tf.zeros_initializer(), tf.ones_initializer()
                moving = [
                    tf.get_variable("moving_mean", [NUMBERS], None, zeros, trainable=False),
                    tf.get_variable("moving_variance", [NUMBERS], None, ones, trainable=False),
                ]
                batch = tf.nn.moments(numbers, [0])
                updates = [
                    moving_averages.assign_moving_average(one, now, 0.95, zero_debias=False)
                    for one, now in zip(moving, batch)
                ]
            layers = [
                (
                    tf.get_variable("hidden", [24 + NUMBERS, 16]),
                    tf.get_variable("hidden_bias", [16], None, tf.zeros_initializer()),
                ),
                (
                    tf.get_variable("out", [16, 1]),
                    tf.get_variable("out_bias", [1], None, tf.zeros_initializer()),
                ),
            ]

            def logits(statistics):
                normal = tf.nn.batch_normalization(numbers, *statistics, None, None, 1e-3)
                inner = tf.concat([*embedded, normal], 1)
                inner = tf.nn.relu(tf.matmul(inner, layers[0][0]) + layers[0][1])
                return tf.squeeze(tf.matmul(inner, layers[1][0]) + layers[1][1], 1)

            entropy = tf.nn.sigmoid_cross_entropy_with_logits
            loss = tf.reduce_sum(entropy(labels=self.label, logits=logits(batch)))
            optimizer = tf.train.AdagradOptimizer(RATE, initial_accumulator_value=accumulator)
            with tf.control_dependencies(updates if update else []):
                self.train = optimizer.minimize(loss)
            self.scores = tf.sigmoid(logits(moving))
            model = tf.trainable_variables() + moving
            self.weights, self.saver = tf.train.Saver(model), tf.train.Saver()
            self.initial = tf.global_variables_initializer()
        self.session = tf.Session(graph=self.graph)
        self.session.run(self.initial)

    def feed(self, log):
        """Of some rows."""
        row = np.repeat(np.arange(len(log.user)), log.lengths)
        place = np.concatenate([np.arange(length) for length in log.lengths])
        bags = tf.SparseTensorValue(np.stack([row, place], 1), log.tags, [len(log.user), 4])
        return dict(zip(self.inputs, [log.user, log.item, bags, log.numbers]))

    def run(self, log, first, last):
        """Trains on rows first..last."""
        for begin in range(first, last, BATCH):
            batch = log.batch(begin, min(begin + BATCH, last))
            feed = self.feed(batch)
            feed[self.label] = batch.label
            self.session.run(self.train, feed)

    def write(self, out, name, test):
        """The checkpoint and the scores."""
        self.saver.save(self.session, os.path.join(out, name))
        scores = self.session.run(self.scores, self.feed(test))
        np.save(os.path.join(out, name + ".npy"), scores)


def main(out):
    log, test = write_log(TRAIN, 1), write_log(TEST, 2)
    half, path = TRAIN // 2, os.path.join(out, "baseline")
    baseline = Model()
    baseline.run(log, 0, half)
    baseline.weights.save(baseline.session, os.path.join(out, "half"))
    baseline.run(log, half, TRAIN)
    baseline.write(out, "baseline", test)

    fresh = Model(accumulator=1e-8)
    fresh.weights.restore(fresh.session, os.path.join(out, "half"))
    fresh.run(log, half, TRAIN)
    fresh.write(out, "fresh", test)

    never_updated = Model(update=False)
    never_updated.run(log, 0, TRAIN)
    never_updated.write(out, "never_updated", test)

    summed = Model(combiner="sum")
    summed.saver.restore(summed.session, path)
    summed.write(out, "summed", test)

    zeroed = Model()
    zeroed.saver.restore(zeroed.session, path)
    with zeroed.graph.as_default():
        for number, part in enumerate(zeroed.user):  # mod: row r of part p is user 2 r + p
            users = 2 * np.arange(int(part.shape[0])) + number
            zeroed.session.run(part.assign(part * (users % 3 != 1)[:, None].astype(np.float32)))
    zeroed.write(out, "zeroed", test)


if __name__ == "__main__":
    main(sys.argv[1])
