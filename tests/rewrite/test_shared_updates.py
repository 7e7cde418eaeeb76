"""Updates of other variables, such as counters, share the fate of their batch."""

import re

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import PATIENCE, late

pytestmark = pytest.mark.one_tensorflow


class Job:
    """loss = w * x, and beside it what `build(x)` updates before each train op.

    Attributes:
        after: {name: value} of every variable at the end.
    """

    def __init__(self, build, batches_per_step=3, resource=False, **options):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.get_variable_scope().set_use_resource(resource)
            self.x = tf.placeholder(tf.float32, [])
            loss = tf.get_variable("w", initializer=0.0) * self.x
            with tf.control_dependencies([build(self.x)]):
                self.optimizer = semisync.GlobalBatchOptimizer(
                    tf.train.GradientDescentOptimizer(1.0), batches_per_step, paced=True, **options
                )
                step = tf.train.get_or_create_global_step()
                self.train_op = self.optimizer.minimize(loss, global_step=step)
            self.late = late(self.optimizer, 0)

    def train(self, *inputs, stale=()):
        """Trains a batch for each input; those whose number is in `stale` with an old token."""
        with self.graph.as_default():
            hook = self.optimizer.make_session_run_hook(True, patience=PATIENCE)
            with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
                for number, x in enumerate(inputs):
                    if number in stale:
                        session.run(self.late)
                    session.run(self.train_op, {self.x: x})
                self.after = session.run({v.op.name: v for v in tf.global_variables()})
        return self.after["moved"]


def moved(value, kind):
    """Returns a function of x that updates the variable "moved" with [x, 2 x]."""

    def build(x):
        variable = tf.get_variable("moved", initializer=value, trainable=False)
        return getattr(tf, kind)(variable, tf.cast(tf.stack([x, 2 * x]), variable.dtype.base_dtype))

    return build


@pytest.mark.parametrize(
    "kind, how, expected, resource",
    [
        ("assign_add", "sum", [106, 112], False),
        ("assign_add", "mean", [102, 104], True),
        ("assign_add", "last", [103, 106], False),
        ("assign_sub", "sum", [94, 88], False),
        ("assign_sub", "sum", [94, 88], True),
        ("assign", "sum", [6, 12], False),
        ("assign", "mean", [2, 4], False),
        ("assign", "last", [3, 6], True),
    ],
)
@pytest.mark.few(3)
def test_the_batches_of_a_global_step_update_together(kind, how, expected, resource):
    job = Job(moved([100.0, 100.0], kind), resource=resource, shared_updates=[("moved", how)])
    np.testing.assert_allclose(job.train(1, 2, 3), expected)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize(
    "kind, how, expected",
    [
        ("scatter_add", "sum", [[6, 6], [0, 0], [3, 6], [0, 0]]),
        ("scatter_sub", "mean", [[-2, -2], [0, 0], [-1, -2], [0, 0]]),
    ],
)
@pytest.mark.few(1)
def test_what_is_added_to_rows_is_added_together(kind, how, expected, resource):
    """Each batch adds [x, x] to row 0, and to row 2, in two parts, [x / 2, x]."""

    def build(x):
        variable = tf.get_variable("moved", [4, 2], initializer=tf.zeros_initializer())
        tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES).remove(variable)
        rows = tf.constant([2, 0, 2], tf.int64)
        return getattr(tf, kind)(variable, rows, tf.stack([[x / 2, x / 2], [x, x], [0, x / 2]]))

    job = Job(build, resource=resource, shared_updates=[("moved", how)])
    np.testing.assert_allclose(job.train(1, 2, 3), expected)


def test_a_counter_of_whole_numbers_stays_whole():
    job = Job(moved(np.array([10, 10], np.int64), "assign_add"), shared_updates=[("mov", "sum")])
    np.testing.assert_array_equal(job.train(1, 2, 3), [16, 22])


@pytest.mark.parametrize(
    "kind, how", [("assign_add", "sum"), ("assign_add", "mean"), ("assign", "last")]
)
@pytest.mark.few(1)
def test_a_stale_batch_updates_nothing(kind, how):
    job = Job(
        moved([100.0, 100.0], kind),
        batches_per_step=1,
        shared_updates=[("moved", how)],
        staleness=semisync.Threshold(0),
    )
    before = [101, 102] if kind == "assign_add" else [1, 2]
    np.testing.assert_allclose(job.train(1, 50, stale=[1]), before)


@pytest.mark.long
@pytest.mark.parametrize("kind, resource", [("assign", False), ("assign_add", True)])
def test_the_variable_knows_the_shape_that_an_update_does_not(kind, resource):
    def build(x):
        variable = tf.get_variable("moved", initializer=[0.0, 0.0], trainable=False)
        return getattr(tf, kind)(variable, tf.placeholder_with_default(tf.stack([x, 2 * x]), None))

    job = Job(build, resource=resource, shared_updates=[("moved", "sum")])
    np.testing.assert_allclose(job.train(1, 2, 3), [6, 12])


def test_an_update_of_another_shape_is_one_sentence():
    def build(x):
        variable = tf.get_variable("moved", initializer=[0.0, 0.0], trainable=False)
        return tf.assign(variable, tf.stack([x, x, x]), validate_shape=False)

    says = "has the shape (3,) and the variable (2,)"
    with pytest.raises(UsageError, match=re.escape(says)):
        Job(build, shared_updates=[("moved", "last")])


def test_the_shadows_of_a_moving_average_share_the_fate_too():
    def build(x):
        average = tf.train.ExponentialMovingAverage(0.5)
        return average.apply([tf.identity(tf.stack([x, 2 * x]), name="seen")])

    job = Job(build, shared_updates=[("ExponentialMovingAverage", "mean")])
    with pytest.raises(KeyError):
        job.train(1, 2, 3)
    shadow = next(v for name, v in job.after.items() if name.endswith("ExponentialMovingAverage"))
    np.testing.assert_allclose(shadow, [1, 2])  # half of the mean batch


def test_what_is_not_named_is_left_alone():
    job = Job(moved([100.0, 100.0], "assign_add"))
    np.testing.assert_allclose(job.train(1, 2), [103, 106])


@pytest.mark.parametrize("batch_norm", ["aggregate", "async"])
def test_moving_statistics_are_shared_once(batch_norm):
    """A rule that names what `batch_norm` shares already adds nothing; without that it does."""

    def build(x):
        mean, variance = tf.nn.moments(tf.stack([x, 3 * x]), [0], keep_dims=True)
        moving = tf.get_variable("moved", initializer=[0.0], trainable=False)
        tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
        return tf.assign(moving, moving * 0.5 + mean * 0.5)

    options = {"batch_norm": batch_norm, "shared_updates": [("moved", "last")]}
    if batch_norm == "async":
        np.testing.assert_allclose(Job(build, **options).train(1, 2, 3), [3])  # half of 6
    else:
        with pytest.raises(UsageError, match="'moved' matches shares the fate .* as a BatchNorm's"):
            Job(build, **options)


@pytest.mark.parametrize(
    "rules, says",
    [
        ([("other", "sum")], "no update of a variable that is not trained matches 'other'"),
        (
            [("moved", "sum"), ("^mov", "last")],
            "what '^mov' matches shares the fate of its batch already, by a rule before it",
        ),
        ([("moved", "median")], "'sum' or 'mean' or 'last', not 'median'"),
        ("moved", "is no such pair"),
    ],
)
def test_a_mistake_is_one_sentence(rules, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        Job(moved([100.0, 100.0], "assign_add"), shared_updates=rules)
