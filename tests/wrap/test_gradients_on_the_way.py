"""What jobs do between compute_gradients and apply_gradients, and what can be read afterwards."""

import numpy as np
import pytest

from semisync.common.compat import tf
from tests.wrap.one_process import (
    STEPS,
    M,
    assert_close,
    assert_equals_the_union,
    in_batches,
    on_unions,
)

pytestmark = pytest.mark.one_tensorflow


def adagrad():
    return tf.train.AdagradOptimizer(0.1)


def by_global_norm(gradients):
    return tf.clip_by_global_norm(gradients, 1.0)[0]


def by_value(gradients):
    return [
        tf.IndexedSlices(tf.clip_by_value(g.values, -0.2, 0.2), g.indices, g.dense_shape)
        if isinstance(g, tf.IndexedSlices)
        else tf.clip_by_value(g, -0.2, 0.2)
        for g in gradients
    ]


def clipped(optimizer, loss, clip):
    """Pairs as compute_gradients gives them, without those that have no gradient."""
    pairs = [pair for pair in optimizer.compute_gradients(loss) if pair[0] is not None]
    gradients, variables = zip(*pairs)
    return list(zip(clip(gradients), variables))


def mean(gradients):
    """Of one variable, one per batch."""
    if not isinstance(gradients[0], tf.IndexedSlices):
        return tf.add_n(gradients) / M
    values = tf.concat([g.values for g in gradients], 0) / M
    indices = tf.concat([g.indices for g in gradients], 0)
    return tf.IndexedSlices(values, indices, gradients[0].dense_shape)


def assert_clips_each_batch(clip):
    """The reference is a synchronous job: M towers clip, and the mean is applied."""

    def worker(model, wrap):
        optimizer = wrap(adagrad())
        pairs = clipped(optimizer, model.loss(), clip)
        return optimizer.apply_gradients(pairs, global_step=model.step)

    def towers(model, wrap):
        optimizer = adagrad()
        parts = zip(tf.split(model.ids, M), tf.split(model.targets, M))
        pairs = [clipped(optimizer, model.loss(*part), clip) for part in parts]
        means = [(mean([g for g, _ in column]), column[0][1]) for column in zip(*pairs)]
        return optimizer.apply_gradients(means, global_step=model.step)

    before, after = in_batches(worker)
    assert_close(after, on_unions(towers, before))
    _, unclipped = in_batches(lambda model, wrap: minimize(model, wrap(adagrad())))
    assert np.abs(unclipped["kernel"] - after["kernel"]).max() > 1e-3


def minimize(model, optimizer, **more):
    return optimizer.minimize(model.loss(), global_step=model.step, **more)


@pytest.mark.long
def test_each_batch_is_clipped_by_its_own_global_norm():
    assert_clips_each_batch(by_global_norm)


@pytest.mark.long
def test_each_batch_is_clipped_by_value():
    assert_clips_each_batch(by_value)


@pytest.mark.long
def test_a_norm_that_no_batch_exceeds_changes_nothing():
    def build(model, wrap):
        optimizer = wrap(adagrad())
        pairs = clipped(
            optimizer, model.loss(), lambda gradients: tf.clip_by_global_norm(gradients, 1000.0)[0]
        )
        return optimizer.apply_gradients(pairs, global_step=model.step)

    assert_equals_the_union(build)


def test_a_variable_without_a_gradient_is_left_alone():
    def build(model, wrap):
        optimizer = wrap(adagrad())
        pairs = optimizer.compute_gradients(model.loss())
        assert [v.op.name for g, v in pairs if g is None] == ["unused"]
        return optimizer.apply_gradients(pairs, global_step=model.step)

    _, after = assert_equals_the_union(build)
    assert after["unused"] == 0.0
    assert "unused/Adagrad" not in after
    assert "kernel/Adagrad" in after


@pytest.mark.long
def test_a_gradient_may_be_an_array():
    def build(model, wrap):
        loss, optimizer = model.loss(), wrap(adagrad())
        pairs = optimizer.compute_gradients(loss, model.variables("kernel"))
        (bias,) = model.variables("bias")
        pairs.append((np.ones(bias.shape.as_list(), np.float32), bias))
        with tf.control_dependencies([pairs[0][0]]):
            return optimizer.apply_gradients(pairs, global_step=model.step)

    assert_equals_the_union(build)


@pytest.mark.long
def test_the_train_op_has_its_name_and_is_the_one_that_is_collected():
    def build(model, wrap):
        loss = model.loss()
        with tf.name_scope("training"):
            train = wrap(adagrad()).minimize(loss, global_step=model.step, name="go")
        assert train.name == "training/go"
        assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train]
        return train

    in_batches(build, steps=1)


@pytest.mark.long
def test_two_losses_may_be_summed():
    def build(model, wrap):
        loss = model.loss() + 0.5 * model.loss(kind="linear")
        return wrap(adagrad()).minimize(loss, global_step=model.step)

    assert_equals_the_union(build)


@pytest.mark.long
def test_two_optimizers_may_each_have_a_loss_of_their_own():
    def build(model, wrap):
        square, linear = model.loss(), model.loss(kind="linear")
        first = wrap(adagrad()).minimize(
            square, global_step=model.step, var_list=model.variables("table", "kernel")
        )
        second = wrap(tf.train.MomentumOptimizer(0.1, 0.9)).minimize(
            linear, var_list=model.variables("bias")
        )
        return tf.group(first, second)

    assert_equals_the_union(build)


def test_the_aggregated_gradients_are_those_of_the_union():
    seen, names = [], []

    def observe(optimizers, hooks):
        pairs = optimizers[0].aggregated_gradients
        names.extend(variable.op.name for _, variable in pairs)
        hooks[0].observe(
            [gradient for gradient, _ in pairs], lambda step, values: seen.append((step, values))
        )

    def plain_gradients(model):
        variables = {v.op.name: v for v in tf.trainable_variables()}
        return tf.gradients(model.loss(), [variables[name] for name in names])

    def build(model, wrap):
        return minimize(model, wrap(adagrad()))

    before, _ = in_batches(build, observe=observe)
    _, expected = on_unions(build, before, fetch=plain_gradients)
    assert [step for step, _ in seen] == list(range(STEPS))
    shapes = {name: before[name].shape for name in names}
    for (_, found), wanted in zip(seen, expected):
        for name, gradient, other in zip(names, found, wanted):
            total, reference = (dense(g, shapes[name]) for g in (gradient, other))
            np.testing.assert_allclose(total, reference, rtol=2e-4, atol=2e-5, err_msg=name)


def dense(gradient, shape):
    """A fetched gradient as an array; the rows of one id summed."""
    if not hasattr(gradient, "indices"):
        return gradient
    total = np.zeros(shape, np.float32)
    np.add.at(total, gradient.indices, gradient.values)
    return total


@pytest.mark.long
def test_an_aggregated_sparse_gradient_has_each_id_once():
    seen = []

    def observe(optimizers, hooks):
        sparse = [
            g for g, _ in optimizers[0].aggregated_gradients if isinstance(g, tf.IndexedSlices)
        ]
        assert len(sparse) == 4  # three partitions and the bias
        hooks[0].observe([g.indices for g in sparse], lambda step, values: seen.extend(values))

    in_batches(lambda model, wrap: minimize(model, wrap(adagrad())), observe=observe)
    assert len(seen) == 4 * STEPS
    assert all(len(set(ids)) == len(ids) > 0 for ids in map(list, seen))
