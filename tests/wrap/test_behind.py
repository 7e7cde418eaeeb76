"""What a job has behind its train op happens once per global step, once that is applied.

The reference is the same job with the plain optimizer on the union of the batches.
"""

import contextlib

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import PATIENCE

M, STEPS = 3, 4


@pytest.fixture(autouse=True)
def control_flow_of_graphs():
    """tf.cond as after tf.disable_v2_behavior(), without functions."""
    if not tf.control_flow_v2_enabled():
        yield
        return
    tf.disable_control_flow_v2()
    yield
    tf.enable_control_flow_v2()


def batch(number):
    """The inputs [4, 3] and the targets [4, 1] of a batch."""
    rng = np.random.RandomState(number)
    return rng.randn(4, 3).astype(np.float32), rng.randn(4, 1).astype(np.float32)


class Model:
    """A linear model in the default graph, whose loss is `loss`."""

    def __init__(self, resource):
        tf.get_variable_scope().set_use_resource(resource)
        self.inputs = tf.placeholder(tf.float32, [None, 3])
        self.targets = tf.placeholder(tf.float32, [None, 1])
        start = np.float32([[1.8], [0.4], [-1.0]])
        self.weight = tf.get_variable("weight", initializer=start)
        self.target = tf.get_variable("target", initializer=np.zeros_like(start), trainable=False)
        self.step = tf.train.get_or_create_global_step()
        self.loss = tf.reduce_mean(tf.square(self.inputs @ self.weight - self.targets))

    def minimize(self, wrap, **options):
        return wrap(tf.train.AdamOptimizer(0.1), **options).minimize(self.loss, self.step)

    def feed(self, numbers):
        inputs, targets = zip(*map(batch, numbers))
        return {self.inputs: np.concatenate(inputs), self.targets: np.concatenate(targets)}


class AtTheEnd(tf.train.SessionRunHook):
    """Every variable after the last global step."""

    def __init__(self):
        self._variables = {variable.op.name: variable for variable in tf.global_variables()}

    def end(self, session):
        self.values = session.run(self._variables)


def wrapped(build, resource, check=lambda graph: None):
    """Every variable after STEPS global batches of M; `build`: (model, wrap) -> what is fetched."""
    optimizers = []

    def wrap(optimizer, **options):
        optimizers.append(semisync.GlobalBatchOptimizer(optimizer, M, paced=True, **options))
        return optimizers[-1]

    with tf.Graph().as_default() as graph:
        model = Model(resource)
        fetched = build(model, wrap)
        hook = optimizers[0].make_session_run_hook(True, patience=PATIENCE)
        end = AtTheEnd()
        with tf.train.MonitoredTrainingSession(hooks=[hook, end]) as session:
            for number in range(M * STEPS):
                session.run(fetched, model.feed([number]))
    check(graph)
    assert hook.ledger.fates["admitted"] == M * STEPS
    return end.values


def plain(build, resource):
    """The same of the plain optimizer, on STEPS batches as large as M."""
    with tf.Graph().as_default(), tf.Session() as session:
        model = Model(resource)
        fetched = build(model, lambda optimizer: optimizer)
        session.run(tf.global_variables_initializer())
        for step in range(STEPS):
            session.run(fetched, model.feed(range(M * step, M * (step + 1))))
        return session.run({variable.op.name: variable for variable in tf.global_variables()})


def clip(model, wrap):
    """As of a WGAN: all that is fetched is a list of assignments."""
    with tf.control_dependencies([model.minimize(wrap)]):
        return [model.weight.assign(tf.clip_by_value(model.weight, -0.3, 0.3))]


def normalise(model, wrap):
    """As of TransE."""
    with tf.control_dependencies([model.minimize(wrap)]):
        length = tf.norm(model.weight)
        normal = model.weight.assign(model.weight / tf.maximum(length, 1.0))
        with tf.control_dependencies([normal]):
            return tf.no_op()


def copy_in_turn(model, wrap):
    """A target network, every second global step, and an average of what was clipped before."""
    with tf.control_dependencies([model.minimize(wrap)]):
        clipped = tf.group(model.weight.assign(tf.clip_by_value(model.weight, -0.3, 0.3)))
    with tf.control_dependencies([clipped]):
        moved = tf.train.ExponentialMovingAverage(0.9, model.step).apply([model.weight])
        copied = tf.cond(
            tf.equal(model.step % 2, 0),
            lambda: tf.identity(tf.assign(model.target, model.weight)),
            lambda: tf.identity(model.target),
        )
    return [copied, moved]


def add_by_hand(model, wrap):
    """A decay of the weights, and a counter."""
    counter = tf.get_variable("counter", initializer=0, trainable=False)
    with tf.control_dependencies([model.minimize(wrap)]):
        return [model.weight.assign_sub(0.1 * model.weight), counter.assign_add(1)]


def scatter(model, wrap):
    rows = [0, 2]
    with tf.control_dependencies([model.minimize(wrap)]):
        return tf.group(tf.scatter_update(model.weight, rows, np.float32([[0.5], [0.6]])))


@pytest.mark.parametrize("build", [clip, normalise, copy_in_turn, add_by_hand, scatter])
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.few(2)
def test_it_equals_the_plain_job_on_the_union(build, resource):
    found, expected = wrapped(build, resource), plain(build, resource)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.few(1)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_averages_are_taken_as_synchronous_replicas_takes_them(resource):
    def average(model, wrap):
        averages = tf.train.ExponentialMovingAverage(0.5)
        more = {"variable_averages": averages, "variables_to_average": [model.weight]}
        return model.minimize(wrap, **more)

    def by_hand(model, wrap):
        with tf.control_dependencies([model.minimize(wrap)]):
            return tf.train.ExponentialMovingAverage(0.5).apply([model.weight])

    found, expected = wrapped(average, resource), plain(by_hand, resource)
    assert sorted(found) == sorted(expected)
    name = "weight/ExponentialMovingAverage"
    np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-6)
    assert np.abs(found[name] - found["weight"]).max() > 0.05


@contextlib.contextmanager
def begun(build, resource=False):
    """The graph of a job whose session is about to be made."""
    with tf.Graph().as_default():
        optimizers = []

        def wrap(optimizer, **options):
            optimizers.append(semisync.GlobalBatchOptimizer(optimizer, M, **options))
            return optimizers[-1]

        build(Model(resource), wrap)
        yield optimizers[0].make_session_run_hook(True)


def with_the_batch(model, wrap):
    with tf.control_dependencies([model.minimize(wrap)]):
        return model.weight.assign(model.weight * tf.reduce_mean(model.inputs), name="scaled")


def in_a_loop(model, wrap):
    with tf.control_dependencies([model.minimize(wrap)]):
        start = model.weight + 0.0
        halved = tf.while_loop(lambda w: tf.norm(w) > 1.0, lambda w: [w / 2.0], [start])
        return model.weight.assign(halved, name="halved")


@pytest.mark.parametrize(
    "build, says",
    [
        (with_the_batch, "scaled waits for the train op and writes weight, and it takes something"),
        (in_a_loop, "halved waits for the train op and writes weight, and it is made in a loop"),
    ],
)
def test_what_cannot_be_the_chiefs_is_refused_by_name(build, says):
    with begun(build) as hook, pytest.raises(UsageError, match=says):
        hook.begin()


def test_a_value_of_before_the_step_is_refused_by_name():
    def build(model, wrap):
        before = model.weight.read_value()
        with tf.control_dependencies([before]), tf.control_dependencies([model.minimize(wrap)]):
            return model.target.assign(model.weight - before, name="moved")

    says = "moved waits for the train op.* may be computed before"
    with begun(build, resource=True) as hook, pytest.raises(UsageError, match=says):
        hook.begin()


def test_what_takes_the_batch_and_trains_nothing_stays_and_is_told_of(monkeypatch):
    said = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *values: said.append(text % values))

    def build(model, wrap):
        mean = tf.get_variable("mean_loss", initializer=0.0, trainable=False)
        with tf.control_dependencies([model.minimize(wrap)]):
            return mean.assign(0.9 * mean + 0.1 * model.loss, name="averaged")

    with begun(build) as hook:
        hook.begin()
    assert [text.partition(" and take")[0] for text in said] == [
        "semisync: averaged wait for the train op"
    ]


@pytest.mark.parametrize(
    "options, says",
    [
        ({"variable_averages": 0.9}, "ExponentialMovingAverage, not 0.9"),
        ({"variables_to_average": []}, "no variable_averages"),
    ],
)
def test_averages_are_checked(options, says):
    with pytest.raises(UsageError, match=says):
        semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(0.1), 2, **options)
