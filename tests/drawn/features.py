"""What a job reads, and the tables that it looks up."""

import numpy as np
import tensorflow.compat.v1 as tf
from draw import ROWS

SIZE, LENGTH = 4, 5
POOLED = {"sum": tf.reduce_sum, "mean": tf.reduce_mean}


class Features:
    """Inputs and tables of one job. A table may serve several inputs."""

    def __init__(self, draw):
        self._draw, self._tables = draw, []
        self._regularized = draw.may("decay of tables")

    def vectors(self):
        """A list of vectors [ROWS, n], one of each field."""
        count = self._draw.one("fields", 2, 3, 4)
        return [self._numbers()] + [self._field() for _ in range(count)]

    def history(self):
        """(vectors [ROWS, LENGTH, SIZE], lengths [ROWS], a candidate's vector [ROWS, SIZE])."""
        table, rows, strategy = self._table()
        name, lengths = self._draw.name("history"), self._draw.name("lengths")
        ids = self._ids(name, rows, (ROWS, LENGTH))
        length = self._placeholder(
            tf.int32, [None], lengths, lambda state: state.randint(1, LENGTH + 1, ROWS)
        )
        candidate = self._ids(self._draw.name("candidate"), rows, (ROWS,))
        looked_up = [tf.nn.embedding_lookup(table, one, strategy) for one in (ids, candidate)]
        return looked_up[0], length, looked_up[1]

    def _table(self):
        if self._tables and self._draw.may("shared table"):
            return self._tables[self._draw.one("table", *range(len(self._tables)))]
        parts = self._draw.one("partitions", 1, 1, 3)
        rows = self._draw.one("rows", 7, 16, 23)
        table = tf.get_variable(
            self._draw.name("table"),
            [rows, SIZE],
            partitioner=tf.fixed_size_partitioner(parts) if parts > 1 else None,
        )
        strategy = self._draw.one("strategy", "mod", "div")
        if self._regularized:
            for part in [table] if parts == 1 else list(table):
                tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, 0.01 * tf.nn.l2_loss(part))
        self._tables.append((table, rows, strategy))
        return self._tables[-1]

    def _field(self):
        table, rows, strategy = self._table()
        form = self._draw.one("field", "id", "bag", "masked bag", "sparse", "weighted", "safe")
        name = self._draw.name("ids")
        if form == "id":
            return tf.nn.embedding_lookup(table, self._ids(name, rows, (ROWS,)), strategy)
        if form in ("bag", "masked bag"):
            ids = self._ids(name, rows, (ROWS, 3))
            found = tf.nn.embedding_lookup(table, ids, strategy)
            if form == "bag":
                return POOLED[self._draw.one("pooled by", *POOLED)](found, 1)
            there = tf.expand_dims(tf.cast(tf.not_equal(ids, 0), tf.float32), -1)
            return tf.reduce_sum(found * there, 1) / (tf.reduce_sum(there, 1) + 1e-6)
        combiner = self._draw.one("combiner", "sum", "mean", "sqrtn")
        ids, weights = self._sparse(name, rows, form)
        if form == "safe":
            look_up = tf.nn.safe_embedding_lookup_sparse
            return look_up(table, ids, weights, combiner, partition_strategy=strategy)
        return tf.nn.embedding_lookup_sparse(table, ids, weights, strategy, combiner=combiner)

    def _sparse(self, name, rows, form):
        """Bags of ids, for "safe" some of them empty, with weights for "weighted"."""
        ids = tf.sparse_placeholder(tf.int64, [None, LENGTH], name)
        weights, weighted = None, self._draw.name("weights")
        if form == "weighted":
            values = tf.placeholder(tf.float32, [None], weighted)
            weights = tf.SparseTensor(ids.indices, values, ids.dense_shape)

        def make(state):
            least = 0 if form == "safe" else 1
            sizes = state.randint(least, LENGTH + 1, ROWS)
            places = [(row, k) for row, size in enumerate(sizes) for k in range(size)]
            fed = {
                name + "/indices:0": np.array(places, np.int64),
                name + "/values:0": state.randint(0, rows, len(places)),
            }
            if not ids.dense_shape.op.type.startswith("Const"):
                fed[ids.dense_shape.name] = np.array([ROWS, LENGTH], np.int64)
            if weights is not None:
                fed[weighted + ":0"] = state.uniform(0.5, 2, len(places)).astype(np.float32)
            return fed

        self._draw.points[name] = make
        return ids, weights

    def _ids(self, name, rows, shape):
        make = lambda state: state.randint(0, rows, shape)  # noqa: E731
        return self._placeholder(tf.int64, [None, *shape[1:]], name, make)

    def _numbers(self):
        name = self._draw.name("numbers")
        make = lambda state: state.normal(1.0, 2.0, (ROWS, 3)).astype(np.float32)  # noqa: E731
        x = self._placeholder(tf.float32, [None, 3], name, make)
        form = self._draw.one("numbers", "plain", "log", "clipped", "standard")
        if form == "log":
            return tf.log1p(tf.abs(x)) * tf.sign(x)
        if form == "clipped":
            return tf.clip_by_value(x, -2.0, 3.0)
        return (x - [1.0, 1.0, 0.5]) / [2.0, 2.0, 3.0] if form == "standard" else x

    def _placeholder(self, dtype, shape, name, make):
        point = tf.placeholder(dtype, shape, name)
        self._draw.points[name] = lambda state: {
            name + ":0": np.asarray(make(state), dtype.as_numpy_dtype)
        }
        return point
