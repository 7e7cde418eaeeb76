"""Invariant 1 for every optimizer of tf.compat.v1: M paced batches equal one batch of the union.

One process and a local session; `test_global_batch` does the same on a cluster. The reference is
the plain optimizer on the union of the batches.
"""

import numpy as np
import pytest

import semisync
from semisync.compat import tf
from tests.tf1.job import batch, build_loss

M, STEPS = 3, 4

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


def inputs(step):
    """The M batches of a global step."""
    return [batch(0, step * M + number) for number in range(M)]


class Model:
    """The tests' model in a graph of its own; every variable starts at the same value."""

    def __init__(self, optimizer, resource, clip):
        self.ids = tf.placeholder(tf.int64, [None, 4])
        self.targets = tf.placeholder(tf.float32, [None])
        step = tf.train.get_or_create_global_step()
        loss = build_loss("square", self.ids, self.targets, resource)
        pairs = optimizer.compute_gradients(loss)
        if clip:
            gradients, variables = zip(*[pair for pair in pairs if pair[0] is not None])
            pairs = list(zip(tf.clip_by_global_norm(gradients, 1000.0)[0], variables))
        self.train = optimizer.apply_gradients(pairs, global_step=step)
        self.variables = {variable.op.name: variable for variable in tf.global_variables()}

    def feed(self, pair):
        return {self.ids: pair[0], self.targets: pair[1]}


class Remember(tf.train.SessionRunHook):
    """Every variable before the first and after the last global step."""

    def __init__(self, variables):
        self._variables = variables

    def after_create_session(self, session, coord):
        self.before = session.run(self._variables)

    def end(self, session):
        self.after = session.run(self._variables)


def semi_synchronous(make, resource, clip):
    """Trains M x STEPS batches; returns the variables before and after."""
    with tf.Graph().as_default():
        optimizer = semisync.GlobalBatchOptimizer(make(), M, paced=True)
        model = Model(optimizer, resource, clip)
        memory = Remember(model.variables)
        hooks = [optimizer.make_session_run_hook(True), memory]
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            for step in range(STEPS):
                for pair in inputs(step):
                    session.run(model.train, model.feed(pair))
    return memory.before, memory.after


def on_the_union(make, resource, clip, before):
    """Trains the plain optimizer on STEPS unions of M batches, from `before`."""
    with tf.Graph().as_default(), tf.Session() as session:
        model = Model(make(), resource, clip)
        assert set(model.variables) == set(before)
        for name, variable in model.variables.items():
            variable.load(before[name], session)
        for step in range(STEPS):
            ids, targets = (np.concatenate(parts) for parts in zip(*inputs(step)))
            session.run(model.train, model.feed((ids, targets)))
        return session.run(model.variables)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_paced_batches_equal_one_batch_of_their_union(name, resource):
    before, after = semi_synchronous(OPTIMIZERS[name], resource, clip=False)
    expected = on_the_union(OPTIMIZERS[name], resource, False, before)
    for variable, value in expected.items():
        np.testing.assert_allclose(after[variable], value, rtol=2e-4, atol=2e-5, err_msg=variable)
    moved = [name for name in ("kernel", "bias") if np.any(after[name] != before[name])]
    assert moved == ["kernel", "bias"]


def test_gradients_may_be_clipped_on_the_way():
    make = OPTIMIZERS["Adagrad"]
    before, after = semi_synchronous(make, resource=False, clip=True)
    expected = on_the_union(make, False, True, before)
    for variable, value in expected.items():
        np.testing.assert_allclose(after[variable], value, rtol=2e-4, atol=2e-5, err_msg=variable)
