"""`semisync.wrap`: one line per mode of training."""

import contextlib

import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import PATIENCE, late

MODES = ("sync", "balanced", "semi-sync", "async", "hybrid")
M = 3


class Preset:
    """loss = x * (w + one row of an embedding)."""

    def __init__(self, mode, batches_per_step=M, **more):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step = tf.train.get_or_create_global_step()
            self.x = tf.placeholder(tf.float32, [])
            self.dense = tf.get_variable("w", initializer=0.0)
            self.table = tf.get_variable("table", initializer=tf.zeros([5, 1]))
            row = tf.reduce_sum(tf.nn.embedding_lookup(self.table, [2]))
            self.optimizer = semisync.wrap(
                tf.train.GradientDescentOptimizer(1.0), mode, 8 * batches_per_step, 8, **more
            )
            self.train_op = self.optimizer.minimize(
                self.x * (self.dense + row), global_step=self.step
            )
            token = tf.placeholder(tf.int64, [])
            self.token, self.set_token = token, late(self.optimizer, token)
            self.hook = None

    @contextlib.contextmanager
    def session(self, observer=None):
        with self.graph.as_default():
            self.hook = self.optimizer.make_session_run_hook(True, patience=PATIENCE)
            if observer:
                self.hook.observe([], lambda step, _: observer(self.hook.ledger))
            with tf.train.MonitoredTrainingSession(hooks=[self.hook]) as session:
                yield session

    def train(self, session, *inputs):
        for value in inputs:
            session.run(self.train_op, {self.x: value})

    def values(self, session):
        """The dense variable and the embedding's row."""
        dense, table = session.run([self.dense, self.table])
        return float(dense), float(table[2, 0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.few(1)
def test_the_global_step_counts_m_batches_in_every_mode(mode):
    preset, last = Preset(mode), []

    class Last(tf.train.SessionRunHook):
        def end(self, session):
            last.append(int(session.run(preset.step)))

    with preset.graph.as_default():
        hook = preset.optimizer.make_session_run_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(hooks=[hook, Last()]) as session:
            preset.train(session, *[1.0] * (4 * M))
    assert last == [4]
    assert preset.optimizer.batches_per_step == M


def test_sync_has_no_staleness():
    preset = Preset("sync")
    with preset.session() as session:
        preset.train(session, *[1.0] * 30)
    assert preset.hook.ledger.staleness == {0: 30}


@pytest.mark.parametrize("batches_per_step, most", [(16, 0.125), (8, 0.125), (4, 0.25)])
@pytest.mark.few(1)
def test_balanced_lets_an_eighth_of_a_step_or_one_batch_be_late(batches_per_step, most):
    preset = Preset("balanced", batches_per_step)
    with preset.session() as session:
        preset.train(session, *[1.0] * (10 * batches_per_step))
    staleness = preset.hook.ledger.staleness
    assert set(staleness) <= {0, 1} and sum(staleness.values()) == 10 * batches_per_step
    assert staleness.get(1, 0) <= most * 9 * batches_per_step
    assert preset.optimizer.options.paced == semisync.MeanStaleness(most)


def test_semi_sync_counts_a_batch_of_4_steps_of_staleness_and_none_of_5():
    """Paced besides, so that the other batches are never late."""
    preset = Preset("semi-sync", paced=True)
    with preset.session() as session:
        preset.train(session, *[0.0] * (5 * M))
        session.run(preset.set_token, {preset.token: 1})
        preset.train(session, 3.0)
        session.run(preset.set_token, {preset.token: 0})
        preset.train(session, 30.0, 0.0)
        assert preset.values(session) == (-1.0, -1.0)
    assert preset.hook.ledger.fates["stale"] == 1


def test_async_applies_each_batch_at_once():
    preset = Preset("async")
    with preset.session() as session:
        preset.train(session, 3.0)
        assert preset.values(session) == (-3.0, -3.0)
        preset.train(session, 5.0)
        assert preset.values(session) == (-8.0, -8.0)


def test_hybrid_applies_embeddings_at_once_and_the_rest_by_global_batch():
    preset = Preset("hybrid", paced=True)
    with preset.session() as session:
        preset.train(session, 3.0, 6.0)
        assert preset.values(session) == (0.0, -9.0)
        preset.train(session, 9.0)
        assert preset.values(session) == (-6.0, -18.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("in_flight", [1, 2])
def test_no_more_batches_are_out_than_may_be_in_flight(in_flight):
    out = []
    preset = Preset("hybrid", in_flight=in_flight)
    with preset.session(lambda ledger: out.append(len(ledger.outstanding))) as session:
        preset.train(session, *[1.0] * (10 * M))
    assert len(out) == 10
    assert max(out) <= in_flight


def test_further_arguments_replace_the_modes_own():
    preset = Preset("semi-sync", staleness=semisync.Inverse(), paced=True, on_stale="drop")
    with preset.session() as session:
        preset.train(session, *[0.0] * (5 * M))
        session.run(preset.set_token, {preset.token: 0})
        preset.train(session, 15.0, 0.0, 0.0)
        assert preset.values(session) == (-1.0, -1.0)
    assert preset.optimizer.options.on_stale == "drop"


@pytest.mark.parametrize(
    "mode, sizes, more, says",
    [
        ("bsp", (8, 4), {}, "mode is 'sync' or 'balanced' or .* or 'hybrid', not 'bsp'"),
        ("sync", (10, 4), {}, "the global batch, 10, is not a multiple of the local batch, 4"),
        ("sync", (4, 8), {}, "not a multiple"),
        ("sync", (0, 4), {}, "a whole number of examples, not 0"),
        ("sync", (8, 0), {}, "a whole number of examples, not 0"),
        ("sync", (8, 4.0), {}, "not 4.0"),
        ("sync", (True, 1), {}, "not True"),
        ("hybrid", (8, 4), {"in_flight": 0}, "in_flight is .* not 0"),
        ("hybrid", (8, 4), {"in_flight": -1}, "in_flight is .* not -1"),
    ],
)
def test_a_mistake_is_one_sentence(mode, sizes, more, says):
    with tf.Graph().as_default(), pytest.raises(UsageError, match=says) as error:
        semisync.wrap(tf.train.GradientDescentOptimizer(1.0), mode, *sizes, **more)
    assert "\n" not in str(error.value)
