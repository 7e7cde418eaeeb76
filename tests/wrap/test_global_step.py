"""Who counts the global step where the job has more than one way to count."""

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import PATIENCE, STEPS, in_batches


class LeavesTheStep(tf.train.GradientDescentOptimizer):
    """As BERT's optimizer does: it is given the global step, and the job counts it."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        return super().apply_gradients(grads_and_vars, None, name)


def left_to_the_job(count):
    """A job that counts by itself: step -> what counts it."""

    def build(model, wrap):
        optimizer = wrap(LeavesTheStep(0.1))
        trained = optimizer.minimize(model.loss(), global_step=model.step)
        return tf.group(trained, count(model.step))

    return build


@pytest.mark.long
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_a_step_that_the_optimizer_leaves_to_the_job_counts_global_batches(resource):
    _, after = in_batches(left_to_the_job(lambda step: tf.assign_add(step, 1)), resource)
    assert after["global_step"] == STEPS


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_a_job_that_sets_it_to_the_next_number_is_told_not_to(resource):
    build = left_to_the_job(lambda step: tf.assign(step, step + 1))
    with pytest.raises(UsageError, match="to the next number with every batch.*leave that op out"):
        in_batches(build, resource)


def test_an_optimizer_that_is_given_the_step_counts_it_and_no_other_one():
    """As with a discriminator, trained several times as often as what it judges."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        weights = [tf.get_variable(name, initializer=0.0) for name in "dg"]
        discriminator, generator = (
            semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(1.0), 1, paced=True)
            for _ in weights
        )
        train = discriminator.minimize(weights[0])
        train_other = generator.minimize(weights[1], global_step=step)
        hooks = [
            optimizer.make_session_run_hook(True, patience=PATIENCE)
            for optimizer in (discriminator, generator)
        ]
        last = []
        seen = tf.train.FinalOpsHook([step.read_value()] + [w.read_value() for w in weights])
        with tf.train.MonitoredTrainingSession(hooks=hooks + [seen]) as session:
            for _ in range(2):
                for _ in range(3):
                    session.run(train)
                session.run(train_other)
        last = seen.final_ops_values
    np.testing.assert_array_equal(last, [2, -6, -2])
