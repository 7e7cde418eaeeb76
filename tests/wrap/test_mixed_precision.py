"""Loss scaling: the wrapped optimizer may be TensorFlow's own mixed-precision optimizer.

A global batch with a gradient that is not finite is skipped as the plain optimizer skips the union.
"""

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import (
    PATIENCE,
    STEPS,
    assert_close,
    assert_equals_the_union,
    in_batches,
    inputs,
    late,
    on_unions,
    union,
)

OVERFLOW = 1  # the step one of whose batches has an infinite gradient


def dynamic(optimizer):
    """A loss scale of 2^15, doubled after 2 good steps, halved after a bad one."""
    scale = tf.train.experimental.DynamicLossScale(increment_period=2)
    return tf.train.experimental.MixedPrecisionLossScaleOptimizer(optimizer, scale)


def fixed(optimizer):
    return tf.train.experimental.MixedPrecisionLossScaleOptimizer(optimizer, 128.0)


def skip_where_tensorflow_cannot(scale, resource):
    """The dynamic scale updates in a branch, where TensorFlow 2.x takes no reference variable."""
    if scale is dynamic and not resource and not tf.__version__.startswith("1."):
        pytest.skip("TensorFlow 2.x: no dynamic loss scale with reference variables")


@pytest.fixture
def rewrite():
    """TensorFlow's graph rewrite, which is a switch of the process, set back afterwards."""
    yield tf.train.experimental.enable_mixed_precision_graph_rewrite
    tf.train.experimental.disable_mixed_precision_graph_rewrite()


def minimize(scale, make=lambda: tf.train.AdamOptimizer(0.1)):
    return lambda model, wrap: wrap(scale(make())).minimize(model.loss(), global_step=model.step)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("scale", [dynamic, fixed])
@pytest.mark.long
def test_a_scaled_loss_equals_the_same_on_the_union(scale, resource):
    skip_where_tensorflow_cannot(scale, resource)
    before, after = assert_equals_the_union(minimize(scale), resource)
    assert after["global_step"] == STEPS
    scales = [name for name in before if "loss_scale" in name]
    assert all(after[name] > before[name] for name in scales)
    assert len(scales) == (1 if scale is dynamic else 0)


@pytest.mark.long
def test_the_graph_rewrite_may_come_before_the_wrapper(rewrite):
    assert_equals_the_union(minimize(rewrite), resource=True)


def around(model, wrap):
    """The other order: the loss is scaled around GlobalBatchOptimizer, by each worker."""
    optimizer = dynamic(wrap(tf.train.AdamOptimizer(0.1)))
    return optimizer.minimize(model.loss(), global_step=model.step)


@pytest.mark.long
def test_a_dynamic_scale_around_the_wrapper_leaves_out_the_batches_that_overflow():
    """Each worker judges its own batch, keeps its ticket, and moves the one scale for all."""
    if not tf.__version__.startswith("1."):
        pytest.skip("TensorFlow 2.x: a branch is a function, in which no variable can be made")

    def one_more(step):
        first, second, third = inputs(step)
        overflow = (first[0], np.full_like(first[1], np.inf))
        return [first, overflow, second, third] if step == OVERFLOW else [first, second, third]

    before, after = in_batches(around, batches=one_more)
    expected = on_unions(around, before)
    for values in (after, expected):
        for name in ("current_loss_scale", "good_steps"):
            del values[name]
    assert_close(after, expected)


def test_where_a_branch_is_a_function_the_other_order_is_refused_in_one_sentence():
    if tf.__version__.startswith("1."):
        pytest.skip("TensorFlow 1.15: a branch is a part of the graph")
    with pytest.raises(UsageError, match="MixedPrecisionLossScaleOptimizer") as error:
        in_batches(around, resource=True)
    assert "\n" not in str(error.value)


def batches_with_an_overflow(step):
    """The second batch of one step has a target whose squared error is infinite."""
    found = [(ids, targets.copy()) for ids, targets in inputs(step)]
    if step == OVERFLOW:
        found[1][1][0] = np.inf
    return found


def union_with_an_overflow(step):
    ids, targets = union(step)
    if step == OVERFLOW:
        targets = np.concatenate([pair[1] for pair in batches_with_an_overflow(step)])
    return ids, targets


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.long
def test_an_infinite_gradient_skips_the_step_and_halves_the_scale(resource):
    skip_where_tensorflow_cannot(dynamic, resource)
    build = minimize(dynamic)
    before, after = in_batches(build, resource, batches=batches_with_an_overflow)
    expected = on_unions(build, before, resource, unions=union_with_an_overflow)
    assert_close(after, expected)
    assert after["global_step"] == STEPS - 1
    assert all(np.isfinite(value).all() for value in after.values())
    assert np.any(after["kernel"] != before["kernel"])


@pytest.mark.long
def test_the_scale_is_halved_by_one_bad_step():
    before, after = in_batches(
        minimize(dynamic),
        resource=True,
        batches=lambda step: batches_with_an_overflow(OVERFLOW),
        steps=1,
    )
    (scale,) = [name for name in before if "loss_scale" in name]
    assert after[scale] == before[scale] / 2
    assert after["global_step"] == 0
    np.testing.assert_array_equal(after["kernel"], before["kernel"])


def test_a_stale_batch_with_an_infinite_gradient_does_no_harm():
    """Its weight is 0: its values never come near the others."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [])
        weight = tf.get_variable("w", initializer=0.0, use_resource=True)
        optimizer = semisync.GlobalBatchOptimizer(
            dynamic(tf.train.GradientDescentOptimizer(1.0)),
            1,
            staleness=semisync.Threshold(0),
            paced=True,
        )
        train = optimizer.minimize(weight * x, global_step=step)
        old_token = late(optimizer, 0)
        hook = optimizer.make_session_run_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            session.run(train, {x: 1.0})
            session.run(old_token)
            session.run(train, {x: np.inf})
            assert session.run([weight, step]) == [-1.0, 2]
    assert hook.ledger.fates["stale"] == 1
