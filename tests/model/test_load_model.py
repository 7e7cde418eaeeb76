"""Models that TensorFlow trained score the same in torch, from the same raw features."""

import functools

import numpy as np
import pytest
import torch

import migrate
from migrate.model.load import load_model
from semisync.common.errors import UsageError
from tests.model.features import features, outputs_of
from tests.model.zoo.read import models

TOLERANCE = 2e-6  # float32; relative to a score beyond 1, else absolute


@functools.lru_cache(maxsize=None)
def loaded(prefix, *outputs):
    """A model, loaded once: the tests that take it leave it as it is."""
    return load_model(prefix, output=list(outputs))


@pytest.mark.long
def test_every_model_scores_as_in_tensorflow(zoo_of_each):
    worst = {}
    for model in zoo_of_each:
        expected = model.outputs()
        module = loaded(model.prefix, *model.said["outputs"].values())
        found = outputs_of(module, features(model))
        for name, array in zip(model.said["outputs"], found):
            assert array.shape == expected[name].shape, (model.said["name"], name)
            scale = np.maximum(1, np.abs(expected[name]))
            worst[model.said["name"], name] = (np.abs(array - expected[name]) / scale).max()
    assert {name: error for name, error in worst.items() if error > TOLERANCE} == {}


def test_every_trained_variable_that_a_score_depends_on_is_a_parameter(zoo_of_each):
    for model in zoo_of_each:
        module = loaded(model.prefix, *model.said["outputs"].values())
        kept = module.tensorflow_variables
        parameters = {kept[name] for name, _ in module.named_parameters()}
        assert parameters == set(kept.values()) & set(model.said["trainable"]), model.said["name"]


def test_what_the_parameters_hold_is_what_the_checkpoint_holds(zoo_of_each):
    for model in zoo_of_each:
        checkpoint = migrate.open_checkpoint(model.prefix)
        module = loaded(model.prefix, *model.said["outputs"].values())
        for parameter in set(module.tensorflow_nodes.values()):
            assert parameter.variable in checkpoint
            value = module.state_dict()[parameter.attribute].numpy()
            assert np.array_equal(value, parameter.read(checkpoint)), parameter


@pytest.mark.long
def test_gradients_reach_every_parameter(zoo):
    for model in models(zoo):
        logits = next(iter(model.said["outputs"].values()))
        module = load_model(model.prefix, output=logits)
        score = module(features(model))
        if score.requires_grad:  # an index does not
            score.float().sum().backward()
            assert all(p.grad is not None for p in module.parameters()), model.said["name"]


def test_batch_norm_and_dropout_follow_train_and_eval(zoo):
    (model,) = [model for model in models(zoo) if model.said["name"] == "conv"]
    module = load_model(model.prefix, output="logits/BiasAdd")
    inputs = features(model)
    scored = outputs_of(module, inputs)[0]
    before = {name: value.clone() for name, value in module.named_buffers()}
    module.train()
    torch.manual_seed(0)
    assert not np.allclose(outputs_of(module, inputs)[0], scored, atol=1e-3)
    moved = {name for name, value in module.named_buffers() if not torch.equal(value, before[name])}
    assert moved == set(before)
    module.load_state_dict(before, strict=False)
    assert np.array_equal(outputs_of(module.eval(), inputs)[0], scored)


def test_a_flag_of_any_name_that_switches_batch_norm_is_the_modules_training(tmp_path):
    tf = pytest.importorskip("tensorflow").compat.v1
    from tests.support.control_flow import control_flow

    prefix, x_value = str(tmp_path / "model"), np.random.RandomState(0).randn(6, 3).astype("f")
    with control_flow(1), tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        learns = tf.placeholder(tf.bool, [], name="learns")
        moving = [tf.get_variable(name, [3], trainable=False) for name in ("mean", "variance")]
        moments = tf.cond(
            learns,
            lambda: list(tf.nn.moments(x, [0])),
            lambda: [tf.identity(statistic) for statistic in moving],
        )
        y = tf.nn.batch_normalization(x, *moments, None, None, 1e-3)
        tf.identity(tf.cond(learns, lambda: y * 2.0, lambda: y), name="scores")
        session.run(tf.global_variables_initializer())
        session.run(moving[1].assign([1.0, 2.0, 3.0]))
        expected = [session.run("scores:0", {x: x_value, learns: mode}) for mode in (False, True)]
        tf.train.Saver().save(session, prefix)
    module = load_model(prefix, output="scores")
    for mode in (False, True):
        found = outputs_of(module.train(mode), {"x": torch.tensor(x_value)})[0]
        assert np.allclose(found, expected[mode], atol=1e-5)


def test_a_flag_without_effect_is_no_input(tmp_path):
    tf = pytest.importorskip("tensorflow").compat.v1
    from tests.support.control_flow import control_flow

    prefix, x_value = str(tmp_path / "model"), np.ones((6, 4), "f")
    with control_flow(1), tf.Graph().as_default(), tf.Session() as session:
        x, learns = tf.placeholder(tf.float32, [None, 4], name="x"), tf.placeholder(tf.bool, [])
        heads = tf.concat(tf.split(x * tf.get_variable("w", [4]), 2, axis=1), axis=0)
        kept = tf.cond(learns, lambda: tf.nn.dropout(heads, rate=0.0), lambda: heads)
        tf.identity(kept, name="scores")
        session.run(tf.global_variables_initializer())
        expected = session.run("scores:0", {x: x_value, learns: True})
        tf.train.Saver().save(session, prefix)
    module = load_model(prefix, output="scores")
    assert np.allclose(outputs_of(module, {"x": torch.tensor(x_value)})[0], expected, atol=1e-6)
    assert list(module.tensorflow_features["inputs"]) == ["x"]
    assert 'torch.cat((inputs["x"] * self.w).split(2, 1), 0)' in module.source


def test_a_default_that_is_fed_is_an_input_and_no_constant(tmp_path):
    tf = pytest.importorskip("tensorflow").compat.v1
    prefix = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        scale = tf.placeholder_with_default(3.0, [], name="scale")
        tf.multiply(x * tf.get_variable("w", []), scale, name="y")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
    module = load_model(prefix, output="y")
    ones, one = torch.ones(2), torch.tensor(1.0)
    thrice = module({"x": ones})
    assert torch.equal(thrice, 3 * module({"x": ones, "scale": one}))
    assert torch.equal(thrice, 3 * module({"x:0": ones, "scale:0": one}))
    with pytest.raises(UsageError, match="nothing reads 'scales': it takes 'x', 'scale'"):
        module({"x": ones, "scales": one})
    with pytest.raises(UsageError, match="the model needs 'x'.* was given 'scale'"):
        module({"scale": one})
    labelled = {"x": ones, "scale": one, "label": ones}
    assert torch.equal(module(labelled), module({"x": ones, "scale": one}))
