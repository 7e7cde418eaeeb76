"""What becomes of a row: of an id that is new, or restricted, and of one that a batch repeats."""

import numpy as np
import pytest
from tensorflow_recommenders_addons import dynamic_embedding as de

import semisync
from semisync.common.compat import tf
from tests.tfra.model import tables
from tests.wrap.one_process import late

M, RATE = 4, 0.5


class Job:
    """Each batch adds RATE / M to each row that it has looked up, once per occurrence.

    Args:
        optimizer: that TFRA wraps.
        restricted: to how many rows, at the end; None: to any number.
        more: arguments of `de.get_variable`.
    """

    def __init__(self, optimizer=None, staleness=None, restricted=None, options=None, **more):
        self.ids = tf.placeholder(tf.int64, [None])
        self.table = de.get_variable("table", dim=2, **more)
        loss = -tf.reduce_sum(de.embedding_lookup(self.table, self.ids))
        tfras = de.DynamicEmbeddingOptimizer(optimizer or tf.train.GradientDescentOptimizer(RATE))
        self.optimizer = semisync.GlobalBatchOptimizer(
            tfras, M, staleness, paced=staleness is None, **(options or {})
        )
        self.train = self.optimizer.minimize(loss, tf.train.get_or_create_global_step())
        self.rows = {name: table.export() for name, table in tables().items()}
        self._restrict = tf.no_op() if restricted is None else self.table.restrict(restricted)

    def run(self, batches, before=None):
        """Trains batches of ids; returns {table: {id: row}}.

        Args:
            before: {number of a batch: an op that is run before it}.
        """
        hook = self.optimizer.make_session_run_hook(True)
        found = {}

        class AtTheEnd(tf.train.SessionRunHook):
            def end(_, session):
                session.run(self._restrict)
                for name, (ids, rows) in session.run(self.rows).items():
                    found[name] = dict(zip(ids.tolist(), rows.tolist()))

        with tf.train.MonitoredTrainingSession(hooks=[hook, AtTheEnd()]) as session:
            for number, ids in enumerate(batches):
                if number in (before or {}):
                    session.run(before[number])
                session.run(self.train, {self.ids: ids})
        return found


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def test_an_id_that_is_new_in_several_batches_begins_from_one_draw_and_takes_all_gradients():
    job = Job(initializer=tf.random_uniform_initializer(-0.01, 0.01))
    rows = job.run([[7, 7], [7], [8], [-9]])["table"]
    assert sorted(rows) == [-9, 7, 8]
    for id, occurrences in ((7, 3), (8, 1), (-9, 1)):
        draw = np.array(rows[id]) - occurrences * RATE / M
        assert np.all(np.abs(draw) <= 0.01 + 1e-6)
    assert rows[7] != rows[8]


def test_every_occurrence_counts_and_no_update_is_lost():
    job = Job(initializer=tf.constant_initializer(0.0))
    rows = job.run([[1, 1, 2]] * 100)["table"]
    np.testing.assert_allclose([rows[1], rows[2]], [[200 * RATE / M] * 2, [100 * RATE / M] * 2])


def test_of_an_id_that_a_look_up_repeats_the_last_counts_where_the_job_says_so():
    job = Job(options={"repeated_ids": "last"}, initializer=tf.constant_initializer(0.0))
    rows = job.run([[1, 1, 2]] * 100)["table"]
    np.testing.assert_allclose([rows[1], rows[2]], [[100 * RATE / M] * 2] * 2)


@pytest.mark.parametrize("gathered", [False, True])
def test_the_last_of_repeated_ids_is_the_one_that_tfra_keeps(gathered):
    """Against TFRA alone, with a gradient of its own at each place."""

    def job(wrap):
        ids, weights = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, 1])
        zero = tf.constant_initializer(0.0)
        table = de.get_variable("table", dim=2, initializer=zero, devices=["/CPU:0"] * 2)
        vectors = de.embedding_lookup(table, ids)
        vectors = tf.gather(vectors, [3, 1, 2, 0, 2]) if gathered else vectors
        loss = tf.reduce_sum(vectors * weights)
        tfras = de.DynamicEmbeddingOptimizer(tf.train.AdagradOptimizer(1.0))
        optimizer = wrap(tfras)
        train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
        hooks = [optimizer.make_session_run_hook(True)] if optimizer is not tfras else []
        rows, found = table.export(), {}

        class AtTheEnd(tf.train.SessionRunHook):
            def end(_, session):
                keys, values = session.run(rows)
                found.update(zip(keys.tolist(), values.tolist()))

        with tf.train.MonitoredTrainingSession(hooks=[*hooks, AtTheEnd()]) as session:
            of_each = [[1.0], [2.0], [3.0], [4.0], [5.0]][: 5 if gathered else 4]
            session.run(train, {ids: [1, 2, 1, -3], weights: of_each})
        return found

    alone = job(lambda tfras: tfras)
    with tf.Graph().as_default():
        ours = job(
            lambda tfras: semisync.GlobalBatchOptimizer(tfras, 1, paced=True, repeated_ids="last")
        )
    assert sorted(ours) == sorted(alone)
    np.testing.assert_allclose([ours[id] for id in alone], list(alone.values()), rtol=1e-5)


def test_tfra_alone_counts_an_id_of_one_look_up_once():
    """What the test before would find without semisync: docs/wrap/hash_tables.md says so."""
    ids = tf.placeholder(tf.int64, [None])
    table = de.get_variable("table", dim=1, initializer=tf.constant_initializer(0.0))
    loss = -tf.reduce_sum(de.embedding_lookup(table, ids))
    sgd = de.DynamicEmbeddingOptimizer(tf.train.GradientDescentOptimizer(1.0))
    train = sgd.minimize(loss, global_step=tf.train.get_or_create_global_step())
    rows = table.lookup(tf.constant([1], tf.int64))
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(10):
            session.run(train, {ids: [1, 1]})
        assert session.run(rows).tolist() == [[10.0]]


def test_a_batch_that_is_too_stale_leaves_no_row():
    job = Job(staleness=semisync.Threshold(0), initializer=tf.constant_initializer(0.0))
    make_late = late(job.optimizer, tf.constant(-5, tf.int64))
    rows = job.run([[1], [2], [3], [4]], before={1: make_late})["table"]
    assert set(rows) == {1, 3, 4}


def test_a_restrict_policy_sees_each_id_once_per_global_step_and_takes_its_slots_along():
    batches = [[1, 1], [1], [2], [3], [1], [1], [3], [3]]
    seen = []
    for restricted in (None, 2):
        with tf.Graph().as_default():
            job = Job(
                tf.train.AdagradOptimizer(RATE),
                restricted=restricted,
                initializer=tf.constant_initializer(0.0),
                restrict_policy=de.FrequencyRestrictPolicy,
            )
            job.rows["frequency"] = job.table.restrict_policy.freq_var.export()
            seen.append(job.run(batches))
    counts = {id: row[0] for id, row in seen[0]["frequency"].items()}
    assert counts == {1: 2, 2: 1, 3: 2}
    for name in ("table", "table/Adagrad/accumulator", "frequency"):
        assert set(seen[1][name]) == {1, 3}
