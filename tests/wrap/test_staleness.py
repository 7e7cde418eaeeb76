"""Each staleness policy is its formula, and the weighed sum is divided by M."""

import math

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import late

POLICIES = [
    (semisync.Threshold(3), lambda s: 1 if s <= 3 else 0),
    (semisync.Threshold(0), lambda s: 1 if s == 0 else 0),
    (semisync.Inverse(), lambda s: 1 / max(s, 1)),
    (semisync.Polynomial(), lambda s: 1 / math.sqrt(s + 1)),
    (semisync.Polynomial(2), lambda s: (s + 1) ** -2),
    (semisync.Hinge(10, 4), lambda s: 1 if s <= 4 else 1 / (10 * (s - 4) + 1)),
    (semisync.Exponential(0.3), lambda s: math.exp(-0.3 * s)),
]


@pytest.mark.parametrize("policy, formula", POLICIES, ids=[repr(policy) for policy, _ in POLICIES])
def test_the_weight_is_the_formula(policy, formula):
    steps = np.arange(200)
    with tf.Graph().as_default(), tf.Session() as session:
        weights = session.run(policy(tf.constant(steps, tf.float32)))
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, [formula(int(s)) for s in steps], rtol=1e-5)
    assert weights[0] == 1.0
    in_numpy = policy(steps.astype(np.float32))  # as `semisync simulate` has it
    assert in_numpy.dtype == np.float32
    np.testing.assert_allclose(in_numpy, weights, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: semisync.Threshold(-1),
        lambda: semisync.Threshold(1.5),
        lambda: semisync.Polynomial(-1),
        lambda: semisync.Hinge(1, float("nan")),
        lambda: semisync.Exponential("0.3"),
        lambda: semisync.Exponential(float("inf")),
    ],
)
def test_a_number_without_meaning_is_refused(make):
    with pytest.raises(UsageError, match="0 or more, not"):
        make()


@pytest.mark.parametrize("policy, formula", POLICIES, ids=[repr(policy) for policy, _ in POLICIES])
@pytest.mark.few(1)
def test_a_late_batch_counts_by_its_weight(policy, formula):
    """Two batches of one step, of staleness 0 and 5: the mean is divided by 2 all the same."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [])
        weight = tf.get_variable("w", initializer=0.0)
        optimizer = semisync.GlobalBatchOptimizer(
            tf.train.GradientDescentOptimizer(1.0), 2, staleness=policy, paced=True
        )
        train = optimizer.minimize(weight * x, global_step=step)
        old_token = late(optimizer, 1)
        found = {}

        class ReadAtEnd(tf.train.SessionRunHook):
            def end(self, session):
                found["w"] = session.run(weight)

        hook = optimizer.make_session_run_hook(True)
        with tf.train.MonitoredTrainingSession(hooks=[hook, ReadAtEnd()]) as session:
            for _ in range(12):
                session.run(train, {x: 0.0})
            session.run(train, {x: 2.0})
            session.run(old_token)
            session.run(train, {x: 4.0})
    assert hook.ledger.staleness == {0: 13, 5: 1}
    assert found["w"] == pytest.approx(-(2.0 + 4.0 * formula(5)) / 2, rel=1e-5)
