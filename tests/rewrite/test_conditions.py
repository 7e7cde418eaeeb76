"""A tf.cond behind the training: what needs no batch is done once a global step, when it is due."""

import numpy as np
import pytest

from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.rewrite import zoo
from tests.rewrite.exported import export, rewrite, train
from tests.wrap.one_process import STEPS, assert_close, on_unions

DUE = STEPS - 1  # global steps between two copies, so that the last step makes none


REF, RESOURCE, FUNCTION = (1, False), (1, True), (2, True)


@pytest.fixture
def resource(request):
    """Whether variables are resources; for (version of control flow, whether they are)."""
    control_flow, resource = request.param
    with zoo.graph(control_flow):
        yield resource


def copying(resource, end):
    """A job that copies its kernel every DUE global steps, as the target network of a DQN.

    Args:
        end: (what tf.cond gives, the loss) -> the train op.
    """

    def build(model, wrap):
        loss = model.loss()
        (kernel,) = model.variables("kernel")
        start = np.zeros(kernel.shape.as_list(), np.float32)
        target = tf.get_variable("target", initializer=start, use_resource=resource)
        tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES).remove(target)
        trained = wrap(tf.train.AdagradOptimizer(0.1)).minimize(loss, global_step=model.step)
        with tf.control_dependencies([trained]):
            due = tf.equal(tf.math.floormod(model.step.read_value(), DUE), 0)
            return end(tf.cond(due, lambda: copy(target, kernel), tf.no_op), loss)

    return build


def copy(target, kernel):
    return tf.group(tf.assign(target, kernel.read_value()))


ENDS = {
    "its value is fetched": lambda copied, loss: copied,
    "it is waited for": lambda copied, loss: tf.group(copied),
    "a batch takes its value": lambda copied, loss: tf.cond(copied, lambda: loss, lambda: -loss),
}


@pytest.mark.parametrize(
    "resource, end",
    [
        (REF, "its value is fetched"),
        (RESOURCE, "it is waited for"),
        (REF, "a batch takes its value"),
        (FUNCTION, "its value is fetched"),
        (FUNCTION, "a batch takes its value"),
    ],
    indirect=["resource"],
    ids=lambda value: {REF: "ref", RESOURCE: "resource", FUNCTION: "function"}.get(value, value),
)
@pytest.mark.long
def test_a_copy_that_is_due_now_and_then_is_made_once_a_global_step(resource, end):
    build = copying(resource, ENDS[end])
    before, after, _ = train(rewrite(export(build, resource), paced=True))
    assert_close(after, on_unions(build, before, resource))
    assert np.any(after["target"]) and np.any(after["target"] != after["kernel"])


def counting(write):
    """A job that counts behind the training.

    Args:
        write: (function that counts and hands a value on, global step, loss) -> the train op.
    """

    def build(model, wrap):
        loss = model.loss()
        seen = tf.get_variable("seen", initializer=0.0, trainable=False)
        trained = wrap(tf.train.AdagradOptimizer(0.1)).minimize(loss, global_step=model.step)

        def counted(value):
            with tf.control_dependencies([tf.assign_add(seen, 1.0)]):
                return value + 1.0

        with tf.control_dependencies([trained]):
            return write(counted, model.step, loss)

    return build


def looping(counted, step, loss):
    return tf.while_loop(lambda n: n < 2.0, counted, [tf.constant(0.0)])


def test_what_a_loop_counts_is_counted_once_a_global_step():
    with zoo.graph():
        build = counting(lambda *parts: tf.group(looping(*parts)))
        _, after, _ = train(rewrite(export(build), paced=True))
    assert after["seen"] == 2 * STEPS


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "write, says",
    [
        (looping, r"Exit\) gives a value after the gradients are applied, .* tf.group"),
        (
            lambda counted, step, loss: tf.cond(step > 1, lambda: counted(loss), lambda: loss),
            "writes seen after the gradients are applied, in a tf.cond whose value needs a batch",
        ),
    ],
    ids=["loop", "branch"],
)
def test_what_the_chief_cannot_do_without_the_batch_or_for_its_value_is_refused(write, says):
    with zoo.graph(), pytest.raises(BadInput, match=says):
        rewrite(export(counting(write)))
