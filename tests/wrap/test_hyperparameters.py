"""What is fed for a batch goes with the batch; what would have no effect is refused.

The model is w -> w - rate x mean(x), so that w tells the rate that the chief has used.
"""

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import Job, Remember

pytestmark = pytest.mark.one_tensorflow


class Rates(Job):
    """A job with gradient descent of a rate that `make` builds.

    Args:
        make: function without arguments; returns the rate that the optimizer is given, and the
            tensor that is fed for each batch.
    """

    def __init__(
        self, make, batches_per_step=2, optimizer=tf.train.GradientDescentOptimizer, **more
    ):
        built = []

        def build():
            rate, fed = make()
            built.append(fed)
            return optimizer(rate)

        super().__init__(batches_per_step, build, paced=True, **more)
        self.fed = built[0]

    def feed(self, session, *pairs):
        """Trains a batch per (rate, x); a rate of None is not fed."""
        for rate, x in pairs:
            feed = {self.x: x} if rate is None else {self.x: x, self.fed: rate}
            session.run(self.train_op, feed)


def same(tensor):
    return tensor, tensor


PLACEHOLDERS = {
    "scalar": lambda: same(tf.placeholder(tf.float32, [])),
    "without a shape": lambda: same(tf.placeholder(tf.float32)),
    "with a default": lambda: same(tf.placeholder_with_default(7.0, [])),
    "a constant": lambda: same(tf.constant(7.0)),
}


@pytest.mark.parametrize("kind", sorted(PLACEHOLDERS))
@pytest.mark.few(1)
def test_a_rate_that_is_fed_is_used(kind):
    job = Rates(PLACEHOLDERS[kind])
    with job.session() as session:
        job.feed(session, (0.5, 1.0), (0.5, 3.0), (0.25, 4.0), (0.25, 4.0))
    assert job.after["w"] == -(0.5 * 2 + 0.25 * 4)


def test_what_a_hook_feeds_is_used():
    job = Rates(PLACEHOLDERS["a constant"])

    class Schedule(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, {job.fed: 0.5})

    with job.graph.as_default():
        memory = Remember()
        hooks = [job.optimizer.make_session_run_hook(True), Schedule(), memory]
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            job.train(session, 1, 3)
    assert memory.after["w"] == -1.0


def test_batches_of_different_rates_take_their_mean():
    job = Rates(PLACEHOLDERS["scalar"])
    with job.session() as session:
        job.feed(session, (0.2, 1.0), (0.4, 1.0))
    np.testing.assert_allclose(job.after["w"], -0.3, rtol=1e-6)


def test_one_rate_is_used_to_the_last_bit():
    job = Rates(PLACEHOLDERS["scalar"], batches_per_step=3)
    with job.session() as session:
        job.feed(session, *[(0.1, 1.0)] * 3)
    assert job.after["w"] == -np.float32(0.1)


def test_a_part_of_a_global_batch_takes_its_own_mean():
    job = Rates(PLACEHOLDERS["scalar"], batches_per_step=4)
    with job.session() as session:
        job.feed(session, (0.2, 1.0), (0.4, 1.0))
    np.testing.assert_allclose(job.after["w"], -0.3, rtol=1e-6)


def test_a_batch_that_does_not_count_brings_no_rate():
    job = Rates(PLACEHOLDERS["scalar"], batches_per_step=1, staleness=semisync.Threshold(0))
    with job.session() as session:
        job.feed(session, (0.5, 1.0))
        job.feed(session, (0.5, 1.0))
        session.run(job.set_token, {job.new_token: 0})
        job.feed(session, (100.0, 1.0))
        job.feed(session, (0.5, 1.0))
    assert job.hook.ledger.fates["stale"] == 1
    assert job.after["w"] == -1.5


def test_a_step_in_which_no_batch_counts_uses_the_rate_before():
    """Momentum moves the variable even then."""

    def momentum(rate):
        return tf.train.MomentumOptimizer(rate, 0.5)

    job = Rates(PLACEHOLDERS["scalar"], 1, momentum, staleness=semisync.Threshold(0))
    with job.session() as session:
        job.feed(session, (0.5, 1.0), (0.5, 1.0))
        session.run(job.set_token, {job.new_token: 0})
        job.feed(session, (100.0, 1.0))
    assert job.after["w"] == -0.5 * (1 + 1.5 + 0.75)


def test_a_schedule_over_the_global_step_is_the_chiefs_own():
    def schedule():
        step = tf.train.get_or_create_global_step()
        rate = tf.train.piecewise_constant(step, [tf.constant(0, step.dtype)], [0.5, 0.25])
        return rate, rate

    job = Rates(schedule)
    with job.session() as session:
        job.feed(session, *[(None, 1.0)] * 6)
    assert job.after["w"] == -(0.5 + 0.25 + 0.25)
    assert "hyperparameter" not in " ".join(op.name for op in job.graph.get_operations())


def test_a_schedule_that_is_fed_is_refused():
    def schedule():
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.5, step, 10, 0.5)
        return rate, rate

    job = Rates(schedule)
    with pytest.raises(
        UsageError, match="is fed, and would have no effect"
    ), job.session() as session:
        job.feed(session, (0.5, 1.0))


def local(use_resource):
    """A variable that every worker has for itself."""
    collections = [tf.GraphKeys.LOCAL_VARIABLES]
    return tf.Variable(0.5, trainable=False, collections=collections, use_resource=use_resource)


def test_a_variable_of_a_worker_is_refused():
    with pytest.raises(UsageError, match="every process has for itself: pass tf.identity"):
        Rates(lambda: same(local(use_resource=True)))


@pytest.mark.few(1)
@pytest.mark.parametrize("use_resource", [False, True])
def test_the_value_of_a_variable_of_a_worker_goes_with_its_batch(use_resource):
    job = Rates(lambda: same(tf.identity(local(use_resource))))
    with job.session() as session:
        job.feed(session, (None, 1.0), (None, 3.0))
    assert job.after["w"] == -1.0


def test_a_variable_on_the_ps_is_the_chiefs_own():
    def shared():
        rate = tf.get_variable("rate", initializer=0.5, trainable=False)
        return rate, rate

    job = Rates(shared)
    with job.session() as session:
        job.feed(session, (None, 1.0), (None, 3.0))
    assert job.after["w"] == -1.0


@pytest.mark.parametrize(
    "name", ["AdamOptimizer", "AdagradOptimizer", "RMSPropOptimizer", "FtrlOptimizer"]
)
@pytest.mark.few(1)
def test_every_optimizer_trains_with_what_is_fed_as_tensorflow_does(name):
    """M batches of one rate make the step of the plain optimizer with that rate."""
    optimizer = getattr(tf.train, name)
    job = Rates(PLACEHOLDERS["with a default"], 2, optimizer)
    with job.session() as session:
        job.feed(session, (0.5, 1.0), (0.5, 3.0), (0.25, 4.0), (0.25, 4.0))
    with tf.Graph().as_default(), tf.Session() as session:
        rate, x = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        weight = tf.get_variable("w", initializer=0.0)
        train = optimizer(rate).minimize(weight * x)
        session.run(tf.global_variables_initializer())
        session.run(train, {rate: 0.5, x: 2.0})
        session.run(train, {rate: 0.25, x: 4.0})
        expected = session.run(weight)
    np.testing.assert_allclose(job.after["w"], expected, rtol=1e-6)


def test_what_cannot_go_with_a_batch_is_refused():
    class Scaled(tf.train.GradientDescentOptimizer):
        """Its rate grows with a count that is fed."""

        def __init__(self, rate):
            super().__init__(rate)
            self._count = tf.placeholder(tf.int32, [], name="count")

        def _prepare(self):
            super()._prepare()
            self._learning_rate_tensor *= tf.cast(self._count, tf.float32)

    with pytest.raises(UsageError, match="count.*of type int32.*depends on count"):
        Job(optimizer=lambda: Scaled(0.1))


@pytest.mark.long
def test_workers_with_different_rates_stop_the_job():
    from semisync import settings

    def described(rate):
        job = Job(optimizer=lambda: tf.train.AdamOptimizer(rate))
        weights = np.ones(len(settings.PROBES))
        return settings.describe(job.optimizer.handles.settings, weights)

    said = settings.difference(described(0.1), described(0.2))
    assert "the optimizer's lr is 0.1 here and 0.2 there" in said
    assert settings.difference(described(0.1), described(np.float64(0.1))) == ""
