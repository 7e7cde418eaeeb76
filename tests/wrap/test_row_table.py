"""A table of rows that a job trains by hand is trained by the global batch, by raw id."""

import contextlib

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.fault_cluster import (
    Job,
    check_kills,
    rows_by_id,
)

M, DIM, RATE, INITIAL = 3, 2, 0.1, 0.1
IDS = np.array([-4, 0, 1, 2**40, 2**62 - 1])
SEED = np.random.RandomState(0)
BATCHES = [(SEED.choice(IDS[: 2 + at], 6), SEED.randn(6).astype(np.float32)) for at in range(4)]
BATCHES = [BATCHES[number % 4] for number in range(7)]  # the last global batch has one


def loss_of(vectors, targets):
    # Of a reference variable the rows' gradient may read what the update has already written.
    kernel = tf.get_variable("kernel", initializer=[[1.0], [2.0]], use_resource=True)
    return tf.reduce_mean(tf.square(tf.matmul(vectors, kernel)[:, 0] - targets))


class ByHand:
    """Adagrad over two hash tables, as a job without an optimizer for them has it."""

    def __init__(self):
        self.ids, self.targets = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32)
        self.rate = tf.placeholder(tf.float32, [])
        self.rows, self.sums = (
            tf.lookup.experimental.DenseHashTable(
                tf.int64, tf.float32, [value] * DIM, empty_key=-1, deleted_key=-2, name=name
            )
            for name, value in (("rows", 0.5), ("sums", INITIAL))
        )
        unique, places = tf.unique(self.ids)
        looked_up = self.rows.lookup(unique)
        self.loss = loss_of(tf.gather(looked_up, places), self.targets)
        (gradient,) = tf.gradients(self.loss, [looked_up])
        self.gradient = tf.IndexedSlices(tf.convert_to_tensor(gradient), unique)

    def update(self, ids, gradient):
        sums = self.sums.lookup(ids) + tf.square(gradient)
        rows = self.rows.lookup(ids) - self.rate * gradient / tf.sqrt(sums)
        return tf.group(self.sums.insert(ids, sums), self.rows.insert(ids, rows))


class AtTheEnd(tf.train.SessionRunHook):
    """Stands after the optimizer's hook, whose `end` applies the last global batch."""

    def __init__(self, fetches):
        self._fetches = fetches

    def end(self, session):
        self.found = session.run(self._fetches)


def by_semisync(batches, **options):
    """(rows by id, sums by id, kernel) after all batches."""
    with tf.Graph().as_default():
        model, step = ByHand(), tf.train.get_or_create_global_step()
        sgd = tf.train.GradientDescentOptimizer(model.rate)
        optimizer = semisync.GlobalBatchOptimizer(sgd, M, **options)
        table = semisync.RowTable("by_hand", DIM, "/cpu:0", model.update)
        pairs = optimizer.compute_gradients(model.loss) + [(model.gradient, table)]
        train = optimizer.apply_gradients(pairs, global_step=step)
        fetches = [model.rows.export(), model.sums.export(), *tf.trainable_variables()]
        end = AtTheEnd(fetches)
        hooks = [optimizer.make_session_run_hook(True), end]
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            for ids, targets in batches:
                feed = {model.ids: ids, model.targets: targets, model.rate: RATE}
                session.run(train, feed)
        rows, sums, kernel = end.found
        return by_id(*rows), by_id(*sums), kernel


def by_id(ids, rows):
    found = dict(zip(ids.ravel().tolist(), rows))
    return np.array([found.get(one, np.full(DIM, np.nan)) for one in IDS.tolist()])


def by_tensorflow(unions):
    """The same of a variable that TensorFlow's Adagrad trains, a row per id."""
    with tf.Graph().as_default(), tf.Session() as session:
        places, targets = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32)
        table = tf.get_variable("table", initializer=np.full((len(IDS), DIM), 0.5, np.float32))
        loss = loss_of(tf.nn.embedding_lookup(table, places), targets)
        adagrad = tf.train.AdagradOptimizer(RATE, initial_accumulator_value=INITIAL)
        (kernel,) = [v for v in tf.trainable_variables() if v is not table]
        sgd = tf.train.GradientDescentOptimizer(RATE)
        grads = tf.gradients(loss, [table, kernel])
        train = tf.group(
            adagrad.apply_gradients([(grads[0], table)]), sgd.apply_gradients([(grads[1], kernel)])
        )
        session.run(tf.global_variables_initializer())
        for ids, wanted in unions:
            rows = np.searchsorted(IDS, ids)
            session.run(train, {places: rows, targets: wanted})
        return session.run([table, adagrad.get_slot(table, "accumulator"), kernel])


def assert_same(found, expected):
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def unions():
    groups = [BATCHES[at : at + M] for at in range(0, len(BATCHES), M)]
    return [tuple(map(np.concatenate, zip(*group))) for group in groups]


def test_the_update_is_that_of_the_exact_global_batch():
    assert_same(by_semisync(BATCHES, paced=True), by_tensorflow(unions()))


@pytest.mark.long
def test_asynchronously_each_batch_is_applied_at_once():
    found = by_semisync(BATCHES, policy=[("", "async")])
    assert_same(found, by_tensorflow(BATCHES))


@pytest.mark.parametrize(
    "gradient, says",
    [
        (lambda model: model.gradient.values, "is one tensor: give tf.IndexedSlices"),
        (
            lambda model: tf.IndexedSlices(
                model.gradient.values, tf.cast(model.gradient.indices, tf.int32)
            ),
            "has ids of type int32",
        ),
        (
            lambda model: tf.IndexedSlices(tf.zeros([3, 1]), tf.zeros([3], tf.int64)),
            r"rows \(1,\) of type float32",
        ),
    ],
)
def test_what_is_no_gradient_of_rows_is_refused(gradient, says):
    with tf.Graph().as_default():
        model, step = ByHand(), tf.train.get_or_create_global_step()
        optimizer = semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(0.1), M)
        table = semisync.RowTable("by_hand", DIM, "/cpu:0", model.update)
        with pytest.raises(UsageError, match=says):
            optimizer.apply_gradients([(gradient(model), table)], global_step=step)


@pytest.mark.long
@pytest.mark.one_tensorflow
def test_no_update_is_lost_torn_or_doubled_when_a_worker_and_the_chief_are_killed(tmp_path):
    job = Job(tmp_path, 3, patience=60.0, hash_table="by hand")
    with contextlib.ExitStack() as stack:
        stack.callback(job.stop)
        tables, free = ("by_hand_0", "by_hand_1"), (-1, -2)
        check_kills(job, lambda reader: rows_by_id(reader, tables, free))
