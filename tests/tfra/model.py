"""A small model over one hash table, in one process: a value per row and its slots, by raw id.

The reference is TFRA itself: `on_unions` trains one batch for the union of every M, in which each
id is looked up once, so that TFRA loses nothing. `in_batches` trains the batches as a job has them.
"""

import contextlib
from typing import NamedTuple

import numpy as np
from tensorflow.python.ops import variable_scope
from tensorflow_recommenders_addons import dynamic_embedding as de

import semisync
from semisync.common.compat import tf

M, STEPS, DIM, ROWS = 3, 4, 2, 6
OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
}


class Batch(NamedTuple):
    """ids int64 [n], and what the sum of their vectors' products should be, float32 [n]."""

    ids: np.ndarray
    targets: np.ndarray


def batch(step, number):
    """Ids from -4 on, repeated within a batch and between batches; every step brings new ones."""
    rng = np.random.RandomState(100 * step + number)
    ids = rng.choice([-4, -3, 0, 1, 2, 2**40, 2**62 - 1 + step], ROWS)
    return Batch(ids.astype(np.int64), rng.randn(ROWS).astype(np.float32))


ALL = [batch(step, number) for step in range(STEPS) for number in range(M)]


def union(batches):
    return Batch(*map(np.concatenate, zip(*batches)))


class Model:
    """The model in the default graph.

    Args:
        look_up: function (table, ids) -> vectors, as a job has it; None: each id once.
        more: arguments of `de.get_variable`.
    """

    def __init__(self, look_up=None, **more):
        options = {"initializer": tf.constant_initializer(0.5), "devices": ["/CPU:0"] * 2}
        options.update(more)
        self.ids = tf.placeholder(tf.int64, [None])
        self.targets = tf.placeholder(tf.float32, [None])
        self.table = de.get_variable("table", dim=DIM, **options)
        kernel = tf.get_variable("kernel", initializer=[[1.0], [2.0]])
        vectors = (look_up or each_once)(self.table, self.ids)
        errors = tf.reshape(tf.matmul(vectors, kernel), [-1]) - self.targets
        self.loss = tf.reduce_mean(tf.square(errors))
        self.step = tf.train.get_or_create_global_step()

    def minimize(self, optimizer, table_alone=False):
        trained = tf.trainable_variables()
        if table_alone:
            trained = [each for each in trained if isinstance(each, de.TrainableWrapper)]
        return optimizer.minimize(self.loss, global_step=self.step, var_list=trained)

    def feed(self, batch):
        return {self.ids: batch.ids, self.targets: batch.targets}


def each_once(table, ids):
    vectors, _ = de.embedding_lookup_unique(table, ids, return_trainable=True, name="once")
    return vectors


def tables():
    """{name: table} of the default graph: values, slots, what restrict policies note."""
    known = variable_scope._get_default_variable_store()._vars
    return {name: each for name, each in known.items() if isinstance(each, de.Variable)}


class Values:
    """Fetches all tables and variables of the default graph, which is complete."""

    def __init__(self):
        self._tables = {name: table.export() for name, table in tables().items()}
        self._variables = {variable.op.name: variable for variable in tf.global_variables()}

    def read(self, session):
        """{name: value}; of a table {id: row}."""
        found, variables = session.run([self._tables, self._variables])
        for name, (ids, rows) in found.items():
            assert len(set(ids.tolist())) == len(ids), name
            variables[name] = dict(zip(ids.tolist(), rows))
        return variables


class _AtTheEnd(tf.train.SessionRunHook):
    """Stands after the optimizer's hook, whose `end` applies the last global batch."""

    def __init__(self):
        self._values = Values()

    def end(self, session):
        self.found = self._values.read(session)


def wrapped(optimizer, **options):
    """Around, as a job has it."""
    return semisync.GlobalBatchOptimizer(
        de.DynamicEmbeddingOptimizer(optimizer), M, paced=True, **options
    )


def in_batches(make, look_up=None, wrap=wrapped, table_alone=False, batches=None, **more):
    """Trains M batches per global step; returns all values at the end, see `Values`."""
    batches = batches or ALL
    with tf.Graph().as_default():
        model = Model(look_up, **more)
        optimizer = wrap(make())
        train = model.minimize(optimizer, table_alone)
        hook, end = optimizer.make_session_run_hook(True), _AtTheEnd()
        with tf.train.MonitoredTrainingSession(hooks=[hook, end]) as session:
            for each in batches:
                session.run(train, model.feed(each))
        assert hook.ledger.fates["admitted"] == len(batches)
        return end.found


def on_unions(make, **more):
    """Trains TFRA's own optimizer on one batch per M; returns all values at the end."""
    return _by_tfra(make, [union(ALL[at : at + M]) for at in range(0, len(ALL), M)], **more)


def one_by_one(make):
    """Trains the table alone by TFRA's own optimizer; returns all values at the end."""
    return _by_tfra(make, ALL, table_alone=True)


def _by_tfra(make, batches, table_alone=False, **more):
    with tf.Graph().as_default(), contextlib.closing(tf.Session()) as session:
        model = Model(**more)
        train = model.minimize(de.DynamicEmbeddingOptimizer(make()), table_alone)
        values = Values()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for each in batches:
            session.run(train, model.feed(each))
        return values.read(session)


def assert_same(found, expected):
    """Every variable and every row of every table, by name and id."""
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        if isinstance(value, dict):
            assert sorted(found[name]) == sorted(value), name
            value = np.array([value[id] for id in sorted(value)])
            rows = np.array([found[name][id] for id in sorted(found[name])])
        else:
            rows = found[name]
        np.testing.assert_allclose(rows, value, rtol=2e-5, atol=2e-6, err_msg=name)
