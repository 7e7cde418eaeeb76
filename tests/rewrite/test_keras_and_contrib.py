"""Keras layers in a graph of version 1, tf.contrib.layers and slim."""

import pytest

from graph_rewrite import find_batch_norms, find_updates
from semisync.common.compat import tf
from tests.rewrite import zoo
from tests.support.require import skip_without


def check(bn, kind, training, momentum=0.9, gamma="bn/gamma"):
    """That which every layer "bn" of this file has."""
    assert (bn.name, bn.kind, bn.training) == ("bn", kind, training)
    assert (bn.gamma, bn.beta) == (gamma, "bn/beta")
    assert (bn.moving_mean, bn.moving_variance) == ("bn/moving_mean", "bn/moving_variance")
    assert (bn.momentum, bn.epsilon) == (momentum, 1e-3)
    assert bn.bessel == (kind == "fused")
    assert [u.variable for u in bn.updates] == ["bn/moving_mean", "bn/moving_variance"]


@pytest.mark.parametrize("control_flow", [1, 2])
@pytest.mark.parametrize("training", [True, "training"])
@pytest.mark.parametrize("x, kind", [(zoo.rows, "unfused"), (zoo.images, "fused")])
def test_keras(x, kind, training, control_flow):
    with zoo.graph(control_flow) as graph:
        layer = zoo.keras.layers.BatchNormalization(momentum=0.9, name="bn")
        layer(x(), training=zoo.predicate() if training == "training" else training)
    (bn,) = find_batch_norms(graph)
    check(bn, kind, training)
    assert bn.input == "x"
    assert bn.axis == ((1,) if kind == "unfused" else (3,))
    # A Keras layer adds nothing to UPDATE_OPS: its model runs `layer.updates`.
    assert bn.in_collection is False
    assert bn.left_alone == ""
    assert find_updates(graph) == []


@pytest.mark.parametrize("x, kind", [(zoo.rows, "unfused"), (zoo.images, "fused")])
def test_keras_with_its_learning_phase(x, kind):
    with zoo.graph() as graph:
        zoo.keras.layers.BatchNormalization(momentum=0.9, name="bn")(x())
        phase = zoo.keras.backend.learning_phase()
    (bn,) = find_batch_norms(graph)
    check(bn, kind, phase.op.name)


def test_keras_3_weighs_the_old_and_the_new():
    if not zoo.TF2:
        skip_without("keras3", "Keras 3 needs TensorFlow 2")
    import keras

    with zoo.graph() as graph:
        keras.layers.BatchNormalization(momentum=0.9, name="bn")(zoo.rows(), training=True)
    (bn,) = find_batch_norms(graph)
    check(bn, "unfused", True)
    assert bn.left_alone == ""


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("training", [True, "training"])
@pytest.mark.parametrize("x, inputs", [(zoo.rows, "bn/Reshape"), (zoo.images, "x")])
def test_contrib_fused(x, inputs, training, in_place):
    layers = zoo.contrib()
    with zoo.graph() as graph:
        layers.batch_norm(
            x(),
            decay=0.9,
            scale=True,
            is_training=zoo.predicate() if training == "training" else training,
            updates_collections=None if in_place else tf.GraphKeys.UPDATE_OPS,
            scope="bn",
        )
        zoo.group_updates()
    (bn,) = find_batch_norms(graph)
    check(bn, "fused", training)
    assert bn.input == inputs
    assert bn.in_collection is not in_place
    assert bn.left_alone == ""
    if training == "training" and inputs == "bn/Reshape":
        assert (bn.mean, bn.variance) == ("bn/cond/Merge_1", "bn/cond/Merge_2")
        assert [u.in_branch for u in bn.updates] == [True, True]
    assert find_updates(graph) == []


@pytest.mark.parametrize("layout, axis", [("NHWC", 3), ("NCHW", 1)])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("training", [True, "training"])
def test_contrib_unfused(training, in_place, layout, axis):
    layers = zoo.contrib()
    with zoo.graph() as graph:
        layers.batch_norm(
            zoo.images(),
            decay=0.9,
            scale=True,
            fused=False,
            data_format=layout,
            is_training=zoo.predicate() if training == "training" else training,
            updates_collections=None if in_place else tf.GraphKeys.UPDATE_OPS,
            scope="bn",
        )
        zoo.group_updates()
    (bn,) = find_batch_norms(graph)
    check(bn, "unfused", training)
    assert bn.input == "x"
    assert bn.axis == (axis,)
    assert bn.in_collection is not in_place
    assert bn.left_alone == ""


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"renorm": True}, "its mean is kept 2 times, in 'bn/moving_mean' and 'bn/renorm_mean'"),
        ("batch_weights", "its rows are weighted"),
    ],
)
def test_contrib_that_is_left_alone(options, reason):
    layers = zoo.contrib()
    with zoo.graph() as graph:
        if options == "batch_weights":
            options = {"batch_weights": tf.placeholder(tf.float32, [None])}
        layers.batch_norm(zoo.rows(), is_training=True, scope="bn", **options)
    (bn,) = find_batch_norms(graph)
    assert bn.left_alone == reason
    assert bn.moving_mean == "bn/moving_mean"
    assert not bn.shareable


@pytest.mark.parametrize("training", [True, "training"])
@pytest.mark.parametrize("options", [{"fused": True}, {"fused": False}], ids=["fused", "unfused"])
def test_contrib_with_a_mean_that_is_corrected_for_its_start_at_zero(options, training):
    layers = zoo.contrib()
    with zoo.graph() as graph:
        is_training = zoo.predicate() if training == "training" else training
        options = dict(options, zero_debias_moving_mean=True, decay=0.9, scale=True)
        layers.batch_norm(zoo.images(), is_training=is_training, scope="bn", **options)
    (bn,) = find_batch_norms(graph)
    assert (bn.moving_mean, bn.moving_variance) == ("bn/moving_mean", "bn/moving_variance")
    assert bn.shareable
    mean, variance = bn.updates
    assert mean.debias.biased == "bn/bn/moving_mean/biased"
    assert mean.debias.step == "bn/bn/moving_mean/local_step"
    assert len(mean.ops) == 3 and variance.debias is None
    assert find_updates(graph) == []


def test_contrib_without_training():
    layers = zoo.contrib()
    with zoo.graph() as graph:
        layers.batch_norm(zoo.rows(), is_training=False, scope="bn")
    (bn,) = find_batch_norms(graph)
    assert bn.training is False
    assert bn.finding.startswith("nothing updates 'bn/moving_mean'")


def test_slim():
    zoo.contrib()
    from tensorflow.contrib import slim

    with zoo.graph() as graph:
        options = {"is_training": zoo.predicate(), "decay": 0.9}
        for number in range(2):
            slim.conv2d(
                zoo.images(), 3, [3, 3], normalizer_fn=slim.batch_norm,
                normalizer_params=options, scope="conv{}".format(number),
            )  # fmt: skip
        zoo.group_updates()
    names = [bn.name for bn in find_batch_norms(graph)]
    assert names == ["conv0/BatchNorm", "conv1/BatchNorm"]
    for bn in find_batch_norms(graph):
        assert (bn.kind, bn.training, bn.momentum) == ("fused", "training", 0.9)
        assert bn.input == bn.name.replace("BatchNorm", "Conv2D")
        assert bn.in_collection
        assert bn.left_alone == bn.finding == ""
