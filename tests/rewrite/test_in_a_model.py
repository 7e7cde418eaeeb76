"""Batch normalisations stay what they are when a model grows around them, or is imported."""

import pytest

from graph_rewrite import find_batch_norms, find_updates
from semisync.common.compat import tf
from semisync.common.tensor_names import split
from tests.rewrite import zoo

WORLDS = [(1, False), (1, True), (2, True)]  # (version of control flow, resource variables)


def alone(found):
    """BatchNorms without what depends on them."""
    return [
        bn._replace(dependents=[], updates=[u._replace(dependents=[]) for u in bn.updates])
        for bn in found
    ]


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize("x", [zoo.rows, zoo.images])
def test_gradients_and_an_optimizer_change_nothing(x, world):
    with zoo.graph(*world) as graph:
        y = zoo.layers.batch_normalization(x(), training=zoo.predicate(), name="bn")
        before = find_batch_norms(graph)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            tf.train.AdamOptimizer().minimize(tf.reduce_sum(y))
    after = find_batch_norms(graph)
    assert alone(after) == alone(before)
    assert after[0].dependents
    assert after[0].finding == ""
    assert {u.variable for u in find_updates(graph)} == {"beta1_power", "beta2_power"}


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_an_imported_graph_has_the_same_under_its_scope(world):
    with zoo.graph(*world):
        zoo.layers.batch_normalization(zoo.rows(), training=zoo.predicate(), name="bn")
        meta = tf.train.export_meta_graph()
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta, import_scope="here")
    (bn,) = find_batch_norms(graph)
    assert (bn.name, bn.input, bn.training) == ("here/bn", "here/x", "here/training")
    assert bn.moving_mean == "here/bn/moving_mean"
    assert bn.in_collection


@pytest.mark.parametrize("x", [zoo.rows, zoo.images])
@pytest.mark.parametrize("training", [True, "training"])
def test_two_of_the_same_input_keep_apart(x, training):
    with zoo.graph() as graph:
        batch = x()
        training = zoo.predicate() if training == "training" else training
        for name in ("one", "two"):
            zoo.layers.batch_normalization(batch, training=training, name=name)
    for name, bn in zip(("one", "two"), find_batch_norms(graph)):
        assert bn.input == "x"
        assert bn.moving_mean == name + "/moving_mean"
        assert [u.variable for u in bn.updates] == [
            name + "/moving_mean",
            name + "/moving_variance",
        ]
        assert bn.left_alone == ""


@pytest.mark.parametrize("x, name", [(zoo.rows, "bn/Cast"), (zoo.images, "x")])
def test_half_precision_is_found_and_its_statistics_are_those_in_float32(x, name):
    with zoo.graph() as graph:
        half = tf.placeholder(tf.float16, x(name="shape").shape, "x")
        zoo.layers.batch_normalization(half, training=True, name="bn")
    (bn,) = find_batch_norms(graph)
    assert bn.input == name
    assert bn.gamma == "bn/gamma"
    assert len(bn.updates) == 2
    assert bn.left_alone == ""
    maker, output = split(bn.mean)
    assert graph.get_operation_by_name(maker).outputs[output].dtype == tf.float32


@pytest.mark.parametrize("value", [True, False])
def test_a_constant_predicate_is_no_predicate(value):
    with zoo.graph() as graph:
        zoo.layers.batch_normalization(zoo.rows(), training=tf.constant(value), name="bn")
    (bn,) = find_batch_norms(graph)
    assert bn.training is value
    assert bool(bn.finding) is not value


def test_a_whole_model_in_the_branches_of_one_condition():
    """Two towers, one for training and one for inference, that share their variables."""
    with zoo.graph() as graph:
        x, training = zoo.rows(), zoo.predicate()
        layer = zoo.layers.BatchNormalization(name="bn")
        layer.build(x.shape)

        def tower(trains):
            y = layer.apply(x * 2.0, training=trains)
            with tf.control_dependencies(layer.updates if trains else []):
                return tf.identity(y)

        tf.cond(training, lambda: tower(True), lambda: tower(False))
    train, infer = find_batch_norms(graph)
    assert (train.training, infer.training) == ("training", False)
    assert train.input.startswith("cond/")
    assert len(train.updates) == 2
    assert all(update.in_branch for update in train.updates)
    assert infer.updates == []
    assert infer.finding == ""
