"""DeepFM over TFRA's hash tables, by raw ids, and its optimizer.

user, film and the films before lie in hash tables, genres in a table of a declared size.
"""

import functools

from tensorflow_recommenders_addons import dynamic_embedding as de

from benchmarks.harness.deepfm import deep_fm
from benchmarks.thirty_days_parts import model
from benchmarks.thirty_days_parts.clicks import FEATURES, GENRES, LISTS
from benchmarks.thirty_days_parts.data import sparse
from semisync.common.compat import tf

WIDTH = 1 + model.DIM


class Model:
    """The graph: placeholders by column, `logits` [rows], `loss`."""

    def __init__(self, seed, plan):
        self.ids = {name: tf.placeholder(tf.int64, [None], name=name) for name in FEATURES}
        self.lists = {name: tf.sparse_placeholder(tf.int64, [None, None], name) for name in LISTS}
        self.label = tf.placeholder(tf.float32, [None], name="label")
        devices = ["/job:ps/task:{}/CPU:0".format(number) for number in range(plan.ps)]
        vectors = []
        for number, (name, ids) in enumerate({**self.ids, "before": self.lists["before"]}.items()):
            initial = tf.random_normal_initializer(stddev=plan.deviation, seed=seed + number)
            options = {"dim": WIDTH, "initializer": initial if plan.deviation else 0.0}
            table = de.get_variable("table_" + name, devices=devices, **options)
            look_up = de.embedding_lookup_unique
            if name == "before":
                look_up = functools.partial(
                    de.safe_embedding_lookup_sparse, sparse_weights=None, combiner="mean"
                )
            vectors.append(look_up(table, ids, name="look_up_" + name, return_trainable=True)[0])
        initial = tf.random_normal_initializer(stddev=0.05, seed=seed + 10)
        genres = tf.get_variable("table_genres", [GENRES + 1, WIDTH], initializer=initial)
        of_genres = self.lists["genres"]
        vectors.append(tf.nn.safe_embedding_lookup_sparse(genres, of_genres, combiner="mean"))
        stacked = tf.stack([tf.reshape(one, [-1, WIDTH]) for one in vectors], 1)
        self.logits = tf.identity(deep_fm(stacked, seed + 21), name="logits")
        self.loss = tf.losses.sigmoid_cross_entropy(self.label, self.logits)

    def feed(self, columns, rows):
        """The feed dict of some rows, a slice, of a day's columns (`data.read`)."""
        feed = {tensor: columns[name][rows] for name, tensor in self.ids.items()}
        for name, tensor in self.lists.items():
            of_rows = columns[name][rows]
            feed[tensor] = tf.SparseTensorValue(*sparse(of_rows), of_rows.shape)
        feed[self.label] = columns["label"][rows]
        return feed


def optimizer(plan):
    """A new optimizer."""
    return de.DynamicEmbeddingOptimizer(model.optimizer(plan))
