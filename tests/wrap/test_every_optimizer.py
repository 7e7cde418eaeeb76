"""Invariant 1 for every optimizer of tf.compat.v1: M paced batches equal one batch of the union.

One process and a local session; `test_global_batch` does the same on a cluster. The reference is
the plain optimizer on the union of the batches.
"""

import pytest
import tensorflow

import semisync
from semisync.common.compat import tf
from tests.wrap.one_process import assert_close, assert_equals_the_union, in_batches, on_unions

OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "AdagradDA": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "Adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "RMSProp centered": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "ProximalAdagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1),
    "ProximalGradientDescent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
}
CONTRIB = {
    "LazyAdam": lambda opt: opt.LazyAdamOptimizer(0.1),
    "AdamW": lambda opt: opt.AdamWOptimizer(0.01, learning_rate=0.1),
    "MomentumW": lambda opt: opt.MomentumWOptimizer(0.01, learning_rate=0.1, momentum=0.9),
    "Nadam": lambda opt: opt.NadamOptimizer(0.1),
    "AdaMax": lambda opt: opt.AdaMaxOptimizer(0.1),
}


def minimize(make):
    """See `one_process`. The gradients come first: AdamW would decay what they are read from."""

    def build(model, wrap):
        optimizer = wrap(make())
        pairs = optimizer.compute_gradients(model.loss())
        with tf.control_dependencies([gradient for gradient, _ in pairs if gradient is not None]):
            return optimizer.apply_gradients(pairs, global_step=model.step)

    return build


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.few(1)
def test_paced_batches_equal_one_batch_of_their_union(name):
    """Of references in TensorFlow 1, of resources in TensorFlow 2, as jobs there have them."""
    assert_equals_the_union(minimize(OPTIMIZERS[name]), resource=tf.__version__ >= "2")


@pytest.mark.parametrize(
    "name, resource",
    [
        ("AdaMax", True),
        ("AdamW", False),
        ("LazyAdam", False),
        ("LazyAdam", True),
        ("MomentumW", True),
        ("Nadam", False),
    ],
)
@pytest.mark.long
def test_the_optimizers_of_contrib_do_too(name, resource):
    if not tf.__version__.startswith("1."):
        pytest.skip("tf.contrib ended with TensorFlow 1.15")
    opt = tensorflow.contrib.opt
    assert_equals_the_union(minimize(lambda: CONTRIB[name](opt)), resource)


def test_an_optimizer_of_contrib_keeps_what_it_knows_of_its_step():
    if not tf.__version__.startswith("1."):
        pytest.skip("tf.contrib ended with TensorFlow 1.15")
    inner = tensorflow.contrib.opt.MovingAverageOptimizer(tf.train.AdagradOptimizer(0.1))
    with tf.Graph().as_default():
        step, weight = tf.train.get_or_create_global_step(), tf.get_variable("w", initializer=1.0)
        semisync.GlobalBatchOptimizer(inner, 2).minimize(weight * weight, global_step=step)
        assert inner.swapping_saver()


@pytest.mark.long
@pytest.mark.parametrize("by", ["minimize", "apply_gradients"])
@pytest.mark.skipif(tf.__version__ >= "2", reason="tf.contrib is TensorFlow 1's")
def test_a_further_argument_of_the_wrapped_optimizer_reaches_it(by):
    """AdamW decays what is in decay_var_list alone."""

    def adamw():
        return tensorflow.contrib.opt.AdamWOptimizer(0.3, learning_rate=0.1)

    def minimized(model, wrap):
        loss = model.loss()
        more = {"decay_var_list": model.variables("bias")}
        return wrap(adamw()).minimize(loss, model.step, **more)

    def applied(model, wrap):
        optimizer = wrap(adamw())
        pairs = optimizer.compute_gradients(model.loss())
        more = {"decay_var_list": model.variables("bias")}
        with tf.control_dependencies([gradient for gradient, _ in pairs if gradient is not None]):
            return optimizer.apply_gradients(pairs, model.step, **more)

    before, after = in_batches(minimized if by == "minimize" else applied)
    assert_close(after, on_unions(applied, before))
