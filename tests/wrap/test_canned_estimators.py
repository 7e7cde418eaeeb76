"""Estimators that are not the job's own take the optimizer and the hook; nothing else changes.

In one process, where training batches one after the other is what TensorFlow itself does with the
union of every M of them.
"""

import gc
import weakref

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE

if not hasattr(tf, "estimator") or not hasattr(tf.estimator, "DNNClassifier"):
    pytest.skip("TensorFlow 2.x has no Estimators any more", allow_module_level=True)

M, BATCH, STEPS = 2, 4, 3
MEAN = tf.losses.Reduction.SUM_OVER_BATCH_SIZE


def rows(count):
    rng = np.random.RandomState(0)
    number = rng.randn(count).astype(np.float32)
    word = np.array([b"a", b"b", b"c"])[rng.randint(0, 3, count)]
    return {"number": number, "word": word}, (number > 0).astype(np.int32)


def input_fn(batch, start, batches, names=("number", "word")):
    """Batches of the rows from the `start`-th batch on."""

    def read():
        first, last = start * batch, (start + batches) * batch
        features, labels = rows(M * BATCH * STEPS)
        part = {name: features[name][first:last] for name in names}, labels[first:last]
        return tf.data.Dataset.from_tensor_slices(part).batch(batch)

    return read


def columns():
    number = tf.feature_column.numeric_column("number")
    word = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    return [number], [word], [tf.feature_column.embedding_column(word, 2)]


def adagrad():
    return tf.train.AdagradOptimizer(0.1)


def ftrl():
    return tf.train.FtrlOptimizer(0.1)


def dnn(wrap, config):
    numbers, _, embedded = columns()
    return tf.estimator.DNNClassifier(
        [4], numbers + embedded, optimizer=wrap(adagrad()), loss_reduction=MEAN, config=config
    )


def wide_and_deep(wrap, config):
    numbers, words, embedded = columns()
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=words,
        linear_optimizer=wrap(ftrl()),
        dnn_feature_columns=numbers + embedded,
        dnn_optimizer=wrap(adagrad()),
        dnn_hidden_units=[4],
        loss_reduction=MEAN,
        config=config,
    )


def of_keras(wrap, config):
    inputs = tf.keras.Input([], name="number")
    column = tf.keras.layers.Reshape([1])(inputs)
    kernel = tf.keras.initializers.glorot_uniform(seed=1)
    outputs = tf.keras.layers.Dense(1, kernel_initializer=kernel, name="dense")(column)
    model = tf.keras.Model(inputs, tf.keras.layers.Reshape([])(outputs))
    model.compile(optimizer=wrap(adagrad()), loss="mse")
    return tf.keras.estimator.model_to_estimator(model, config=config)


def config(folder):
    return tf.estimator.RunConfig(str(folder), tf_random_seed=1)


def values(estimator):
    names = estimator.get_variable_names()
    return {name: estimator.get_variable_value(name) for name in names}


@pytest.mark.long
@pytest.mark.parametrize("make", [wide_and_deep, of_keras])
def test_several_calls_of_train_equal_the_union(make, tmp_path):
    """Of the canned one that has the parts of the others, and of a model of Keras."""
    hooks, names = [], ["number"] if make is of_keras else ["number", "word"]

    def wrap(optimizer):
        wrapped = semisync.GlobalBatchOptimizer(optimizer, M, paced=True)
        hooks.append(wrapped.make_session_run_hook(True, patience=PATIENCE))
        return wrapped

    ours = make(wrap, config(tmp_path / "ours"))
    for step in range(STEPS):
        ours.train(input_fn(BATCH, M * step, M, names), hooks=hooks)
    plain = make(lambda optimizer: optimizer, config(tmp_path / "plain"))
    plain.train(input_fn(M * BATCH, 0, STEPS, names))
    found, expected = values(ours), values(plain)
    assert set(found) == set(expected)
    assert found["global_step"] == expected["global_step"] == STEPS
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.long
def test_train_and_evaluate(tmp_path):
    optimizer = semisync.GlobalBatchOptimizer(adagrad(), M, paced=True)
    hook = optimizer.make_session_run_hook(True, patience=PATIENCE)
    estimator = dnn(lambda _: optimizer, config(tmp_path))
    result, _ = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn(BATCH, 0, M * STEPS), max_steps=STEPS, hooks=[hook]),
        tf.estimator.EvalSpec(input_fn(BATCH, 0, 1), steps=1),
    )
    assert result["global_step"] == STEPS


@pytest.mark.long
def test_a_graph_that_is_gone_is_not_kept():
    def build():
        with tf.Graph().as_default() as graph:
            optimizer = semisync.GlobalBatchOptimizer(adagrad(), M)
            loss = tf.square(tf.get_variable("v", initializer=1.0))
            optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
            return weakref.ref(graph)

    graph = build()
    gc.collect()
    assert graph() is None
