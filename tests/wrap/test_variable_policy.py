"""`policy`: some variables semi-synchronously, others at once, by name or by function.

The loss is linear in every variable, so that no variable's gradient depends on another. The
reference for "async" is the plain optimizer on one batch after the other, for "semi-sync" the same
on unions.
"""

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.wrap.one_process import STEPS, M, assert_close, in_batches, inputs, on_unions

pytestmark = pytest.mark.one_tensorflow

OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}


def minimize(make):
    def build(model, wrap):
        return wrap(make()).minimize(model.loss(kind="linear"), global_step=model.step)

    return build


def trained(make, policy, resource=False):
    """The values before; those after `policy`; the references by batch and by union."""
    build = minimize(make)
    before, after = in_batches(build, resource, policy=policy)
    by_batch = on_unions(
        build, before, resource, lambda number: inputs(number // M)[number % M], STEPS * M
    )
    return before, after, by_batch, on_unions(build, before, resource)


def assert_split(make, policy, at_once, resource=False):
    """The variables whose names begin with `at_once` were trained by batch, the others by union."""
    before, after, by_batch, by_union = trained(make, policy, resource)
    parts = {name: name.startswith(at_once) for name in after}
    assert_close(after, {n: (by_batch if parts[n] else by_union)[n] for n in after})
    for name in ("kernel", "bias", "table/part_0"):
        assert np.any(after[name] != before[name])
        assert np.abs(by_batch[name] - by_union[name]).max() > 1e-3


@pytest.mark.parametrize(
    "name, resource",
    [
        ("GradientDescent", False),
        ("Momentum", True),
        ("Adagrad", False),
        ("Adagrad", True),
        ("Ftrl", False),
    ],
)
@pytest.mark.few(1)
def test_the_async_variables_are_trained_by_batch_and_the_others_by_union(name, resource):
    assert_split(OPTIMIZERS[name], [("table|bias", "async")], ("table", "bias"), resource)


@pytest.mark.long
def test_the_first_match_wins():
    policy = [("^bias$", "semi-sync"), ("table", "async"), ("bias|table", "semi-sync")]
    assert_split(OPTIMIZERS["Adagrad"], policy, ("table",))


@pytest.mark.long
def test_a_function_may_decide():
    def sparse_at_once(gradient, variable):
        return "async" if isinstance(gradient, tf.IndexedSlices) else "semi-sync"

    assert_split(OPTIMIZERS["Adagrad"], sparse_at_once, ("table", "bias"))


@pytest.mark.long
def test_with_everything_async_the_global_step_still_counts_global_batches():
    _, after, by_batch, _ = trained(OPTIMIZERS["Adagrad"], [("", "async")])
    assert after.pop("global_step") == STEPS
    assert by_batch.pop("global_step") == STEPS * M
    assert_close(after, by_batch)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.few(1)
def test_adams_beta_powers_advance_once_per_global_step(everything, resource):
    policy = [("" if everything else "table|bias", "async")]
    before, after, _, by_union = trained(lambda: tf.train.AdamOptimizer(0.1), policy, resource)
    synchronous = [name for name in after if name.startswith(("beta", "global_step"))]
    if not everything:
        synchronous += [name for name in after if name.startswith("kernel")]
    assert len(synchronous) == (3 if everything else 6)
    assert_close({n: after[n] for n in synchronous}, {n: by_union[n] for n in synchronous})
    assert np.any(after["bias"] != before["bias"])


def with_policy(policy, optimizer=tf.train.GradientDescentOptimizer):
    weight = tf.get_variable("w", initializer=0.0)
    wrapped = semisync.GlobalBatchOptimizer(optimizer(0.1), 2, policy=policy)
    wrapped.minimize(2.0 * weight, global_step=tf.train.get_or_create_global_step())


def loss_scaled(rate):
    return tf.train.experimental.MixedPrecisionLossScaleOptimizer(
        tf.train.GradientDescentOptimizer(rate), 128.0
    )


@pytest.mark.parametrize(
    "policy, says",
    [
        ([("(", "async")], r"\('\(', 'async'\) is no such pair"),
        ([("w", "sync")], "the policy of w is 'semi-sync' or 'async', not 'sync'"),
        ([("w",)], r"\('w',\) is no such pair"),
        (["async"], "'async' is no such pair"),
        ([(5, "async")], r"\(5, 'async'\) is no such pair"),
        (5, "policy is a list"),
        (lambda gradient, variable: None, "the policy of w is 'semi-sync' or 'async', not None"),
    ],
)
def test_a_policy_without_meaning_is_one_sentence(policy, says):
    with tf.Graph().as_default(), pytest.raises(UsageError, match=says) as error:
        with_policy(policy)
    assert "\n" not in str(error.value)


def test_async_needs_the_optimizer_itself():
    with tf.Graph().as_default(), pytest.raises(UsageError, match="wraps another one"):
        with_policy([("w", "async")], loss_scaled)
