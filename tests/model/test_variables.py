"""What each variable of a graph becomes in the module, its type and its name."""

import numpy as np
import pytest
import torch

from migrate import runtime
from migrate.model.load import load_model
from migrate.model.training.build import build_training
from semisync import cli
from semisync.common.errors import BadInput
from tests.model.features import outputs_of
from tests.support.control_flow import control_flow

tf = pytest.importorskip("tensorflow").compat.v1

X = np.random.RandomState(0).randn(6, 3).astype(np.float32)


def scored(prefix, build, *feeds):
    """What TensorFlow scores for each of `feeds`, by a graph that it saves at `prefix` before."""
    with control_flow(1), tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        tf.identity(build(), name="scores")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
        return [session.run("scores:0", fed) for fed in feeds]


@pytest.mark.parametrize("kind", ["float16", "float64"])
def test_variables_of_another_float_keep_their_type(kind, tmp_path):
    prefix, ids = str(tmp_path / "model"), np.array([0, 3, 1, 1])

    def build():
        rows = tf.nn.embedding_lookup(
            tf.get_variable("table", [4, 3], kind), tf.placeholder(tf.int64, [None], name="ids")
        )
        net = tf.matmul(rows, tf.get_variable("kernel", [3, 2], kind))
        moving = [
            tf.get_variable(name, initializer=tf.constant([0.3, 0.7], kind), trainable=False)
            for name in ("moving_mean", "moving_variance")
        ]
        return tf.nn.batch_normalization(net, *moving, None, None, 1e-3)

    (expected,) = scored(prefix, build, {"ids:0": ids})
    module = load_model(prefix, output="scores").eval()
    assert {str(kept.dtype) for kept in module.state_dict().values()} == {"torch." + kind}
    assert isinstance(module.moving_mean, runtime.BatchNorm)
    (found,) = outputs_of(module, {"ids": torch.tensor(ids)})
    assert found.dtype == expected.dtype == kind
    assert np.allclose(found, expected, rtol=8 * np.finfo(kind).eps, atol=4 * np.finfo(kind).eps)


def test_batch_norm_within_the_branches_of_a_cond_scores_alike_and_is_not_trained(tmp_path):
    prefix = str(tmp_path / "model")

    def build():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        learns = tf.placeholder_with_default(False, [], name="is_training")
        scale = tf.get_variable("scale", [3])
        mean = tf.get_variable("pop_mean", [3], trainable=False)
        variance = tf.get_variable(
            "pop_var", initializer=tf.constant([1.0, 2.0, 3.0]), trainable=False
        )

        def training():
            moments = tf.nn.moments(x, [0])
            moved = [
                tf.assign(statistic, statistic * 0.9 + moment * 0.1)
                for statistic, moment in zip([mean, variance], moments)
            ]
            with tf.control_dependencies(moved):
                return tf.nn.batch_normalization(x, *moments, None, scale, 1e-3)

        def scoring():
            return tf.nn.batch_normalization(x, mean, variance, None, scale, 1e-3)

        scores = tf.cond(learns, training, scoring)
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(scores - x)))
        return scores

    modes = (False, True)
    expected = scored(prefix, build, *({"x:0": X, "is_training:0": mode} for mode in modes))
    module = load_model(prefix, output="scores")
    for mode, scores in zip(modes, expected):
        (found,) = outputs_of(module.train(mode), {"x": torch.tensor(X)})
        assert np.allclose(found, scores, rtol=1e-5, atol=1e-6)
    with pytest.raises(BadInput, match="the model reads 'pop_(mean|var)', which each step changes"):
        build_training(prefix)


@pytest.mark.parametrize("form", ["sum", "difference", "other"])
def test_statistics_that_a_job_assigns_by_hand_keep_its_rate_or_are_not_trained(form, tmp_path):
    prefix = str(tmp_path / "model")
    next_value = {
        "sum": lambda old, new: old * 0.8 + new * 0.2,
        "difference": lambda old, new: old - (old - new) * 0.2,
        "other": tf.maximum,
    }[form]

    def build():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        learns = tf.placeholder_with_default(False, [], name="is_training")
        scale, shift = tf.get_variable("scale", [3]), tf.get_variable("shift", [3])
        mean = tf.get_variable("pop_mean", initializer=tf.zeros([3]), trainable=False)
        variance = tf.get_variable("pop_var", initializer=tf.ones([3]), trainable=False)
        pixels = x[:, tf.newaxis, tf.newaxis, :]

        def training():
            y, *moments = tf.nn.fused_batch_norm(pixels, scale, shift, is_training=True)
            moved = [
                tf.assign(old, next_value(old, new)) for old, new in zip([mean, variance], moments)
            ]
            with tf.control_dependencies(moved):
                return tf.identity(y)

        def scoring():
            return tf.nn.fused_batch_norm(pixels, scale, shift, mean, variance, is_training=False)[
                0
            ]

        scores = tf.cond(learns, training, scoring)[:, 0, 0, :]
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(scores - x)))
        return scores

    (expected,) = scored(prefix, build, {"x:0": X})
    module = load_model(prefix, output="scores").eval()
    assert np.allclose(outputs_of(module, {"x": torch.tensor(X)})[0], expected, atol=1e-6)
    if form == "other":
        with pytest.raises(BadInput, match="the model reads 'pop_(mean|var)', which each step"):
            build_training(prefix)
    else:
        assert module.pop_mean.momentum == pytest.approx(0.2)


def test_a_scope_called_like_a_method_of_the_module_does_not_replace_it(tmp_path):
    prefix = str(tmp_path / "model")
    methods = ["register_buffer", "load_state_dict", "numeric", "transform", "train", "half"]

    def build():
        scores = tf.placeholder(tf.float32, [None, 3], name="x")
        for name in methods:
            with tf.variable_scope(name):
                scores = tf.matmul(scores, tf.get_variable("kernel", [3, 3]))
        rows = tf.get_variable("table", [4, 3], trainable=False)
        return scores + tf.gather(rows, tf.cast(scores[:, 0] > 0, tf.int32))

    (expected,) = scored(prefix, build, {"x:0": X})
    module = load_model(prefix, output="scores").eval()
    for name in methods:
        assert not isinstance(getattr(module, name, None), torch.nn.Module), name
    assert np.allclose(outputs_of(module, {"x": torch.tensor(X)})[0], expected, atol=1e-5)


def test_a_variable_partitioned_along_its_columns_is_refused_as_such(tmp_path):
    prefix = str(tmp_path / "model")

    def build():
        kernel = tf.get_variable("kernel", [3, 4], partitioner=tf.fixed_size_partitioner(2, axis=1))
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        return tf.matmul(x, tf.convert_to_tensor(kernel))

    scored(prefix, build)
    message = (
        r"'kernel/part_0', \[3, 2\], is a part of the checkpoint's \[3, 4\] along another axis"
    )
    with pytest.raises(BadInput, match=message):
        load_model(prefix, output="scores")


def moved(x, moments):
    for name, moment in zip(["pop_mean", "pop_var"], moments):
        moving = tf.get_variable(name, initializer=tf.ones([3]), trainable=False)
        tf.assign_sub(moving, (moving - moment) * 0.1)


def divided(x):
    """Normalised as no library does, for none of them takes the root before it adds epsilon."""
    mean, variance = tf.nn.moments(x, [0])
    moved(x, [mean, variance])
    return (x - mean) / (tf.sqrt(variance) + 1e-3)


def fused(x):
    """By the kernel, beside which nothing keeps an average."""
    ones, zeros = tf.get_variable("scale", [3]), tf.get_variable("shift", [3])
    pixels = x[:, tf.newaxis, tf.newaxis, :]
    return tf.nn.fused_batch_norm(pixels, ones, zeros, is_training=True)[0][:, 0, 0, :]


def usual(x):
    mean, variance = tf.nn.moments(x, [0])
    moved(x, [mean, variance])
    return tf.nn.batch_normalization(x, mean, variance, None, tf.get_variable("scale", [3]), 1e-3)


@pytest.mark.parametrize("form, said", [(divided, True), (fused, True), (usual, False)])
def test_a_batch_norm_of_no_known_form_is_said_to_score_by_the_batch(form, said, tmp_path, capsys):
    prefix = str(tmp_path / "model")

    def build():
        return form(tf.placeholder(tf.float32, [None, 3], name="x"))

    whole, one = scored(prefix, build, {"x:0": X}, {"x:0": X[:1]})
    assert not np.allclose(whole[:1], one)
    note = "note: BatchNorm is of a form that is not known here: model.py takes the statistics of"
    converting = ["convert", prefix, str(tmp_path / "out"), "--model", "--output", "scores"]
    assert cli.main(converting) == 0
    assert (note in capsys.readouterr().out) == said
    module = load_model(prefix, output="scores").eval()
    alike = [outputs_of(module, {"x": torch.tensor(rows)})[0] for rows in (X, X[:1])]
    assert np.allclose(alike[0][:1], alike[1]) != said


def test_layer_normalization_by_the_kernel_is_no_batch_norm(tmp_path, capsys):
    prefix = str(tmp_path / "model")

    def build():
        return tf.keras.layers.LayerNormalization()(tf.placeholder(tf.float32, [None, 3], name="x"))

    (whole,) = scored(prefix, build, {"x:0": X})
    converting = ["convert", prefix, str(tmp_path / "out"), "--model", "--output", "scores"]
    assert cli.main(converting) == 0
    assert "BatchNorm" not in capsys.readouterr().out
    module = load_model(prefix, output="scores").eval()
    (found,) = outputs_of(module, {"x": torch.tensor(X)})
    np.testing.assert_allclose(found, whole, atol=1e-6)


@pytest.mark.parametrize("version", [1, 2])
def test_what_a_step_in_a_cond_changes_is_a_parameter_of_a_graph_without_collections(
    version, tmp_path
):
    prefix = str(tmp_path / "model")
    with control_flow(version), tf.Graph().as_default() as graph, tf.Session() as session:
        table = tf.get_variable("table", [4, 3], use_resource=version == 2)
        kernel = tf.get_variable("kernel", [3, 1], use_resource=version == 2)
        fixed = tf.get_variable("fixed", [3, 1])
        optimizers = [tf.train.GradientDescentOptimizer(0.1), tf.train.AdagradOptimizer(0.1)]
        rows = tf.nn.embedding_lookup(table, tf.placeholder(tf.int64, [None], name="ids"))
        logits = tf.matmul(rows, kernel + fixed, name="logits")
        loss = tf.reduce_mean(tf.square(logits - 1))
        grads = tf.gradients(loss, [table, kernel])
        applied = [[(grad, var)] for grad, var in zip(grads, [table, kernel])]
        optimizers[1]._create_slots([kernel])
        tf.cond(
            tf.less(loss, 9),
            lambda: tf.group(*(o.apply_gradients(one) for o, one in zip(optimizers, applied))),
            tf.no_op,
        )
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        saver.save(session, prefix, write_meta_graph=False)
        for key in (tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.TRAIN_OP):
            graph.clear_collection(key)
        saver.export_meta_graph(prefix + ".meta")
    module = load_model(prefix, output="logits")
    trained = {module.tensorflow_variables[name] for name, _ in module.named_parameters()}
    assert trained == {"table", "kernel"}
