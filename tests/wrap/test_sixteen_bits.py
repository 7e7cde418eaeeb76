"""Gradients of 16 bits: their mean is that of the numbers, not of what M of them are in 16 bits."""

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE


def trained(dtype, gradients, sparse=False, **options):
    """What a weight of 0 becomes by one global step with gradients of one batch each."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        gradient = tf.placeholder(tf.float32, [])
        shape = [4, 1] if sparse else []
        weight = tf.get_variable("w", shape, dtype, initializer=tf.zeros_initializer())
        rows = tf.gather(weight, [2]) if sparse else weight
        loss = tf.reduce_sum(rows * tf.cast(gradient, dtype))
        optimizer = semisync.GlobalBatchOptimizer(
            tf.train.GradientDescentOptimizer(1.0), len(gradients), paced=True, **options
        )
        train = optimizer.minimize(loss, step)
        hook = optimizer.make_session_run_hook(True, patience=PATIENCE)
        value = tf.cast(weight, tf.float32)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            for one in gradients:
                session.run(train, {gradient: one})
            while session.run(step) < 1:
                pass
            return np.max(-session.run(value))


@pytest.mark.few(1)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_small_gradients_do_not_vanish(sparse):
    """1e-6 / 64 is 0 in float16."""
    found = trained(tf.float16, [1e-6] * 64, sparse)
    assert found == np.float32(np.float16(1e-6))


@pytest.mark.long
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_sum_beyond_float16_has_a_mean(sparse):
    assert trained(tf.float16, [40000.0] * 3, sparse) == 40000.0


@pytest.mark.long
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_bfloat16_is_added_up_in_more_digits(sparse):
    """1 + 1/256 is 1 in bfloat16."""
    exact = (1 + 7 / 256) / 8
    found = trained(tf.bfloat16, [1.0] + [1 / 256] * 7, sparse)
    assert abs(found - exact) <= 2**-11  # half of the last digit


@pytest.mark.long
def test_the_rows_that_a_batch_touched_are_added_up_so_too():
    assert trained(tf.float16, [40000.0] * 3, sparse=True, sparse_mean="touches") == 40000.0
