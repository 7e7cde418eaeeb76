"""Models that TensorFlow trained score the same in torch, from the same raw features."""

import numpy as np
import pytest
import torch

import migrate
from migrate.model.load import load_model
from tests.model.features import features, outputs_of
from tests.model.zoo.read import models

ABSOLUTE = 2e-6  # of logits, float32


@pytest.fixture(scope="module", params=["zoo", "zoo_tf2"])
def written(request):
    return models(request.getfixturevalue(request.param))


def test_every_model_scores_as_in_tensorflow(written):
    worst = {}
    for model in written:
        expected = model.outputs()
        module = load_model(model.prefix, output=list(model.said["outputs"].values()))
        found = outputs_of(module, features(model))
        for name, array in zip(model.said["outputs"], found):
            assert array.shape == expected[name].shape, (model.said["name"], name)
            worst[model.said["name"], name] = np.abs(array - expected[name]).max()
    assert {name: error for name, error in worst.items() if error > ABSOLUTE} == {}


def test_every_trained_variable_that_a_score_depends_on_is_a_parameter(written):
    for model in written:
        module = load_model(model.prefix, output=list(model.said["outputs"].values()))
        kept = module.tensorflow_variables
        parameters = {kept[name] for name, _ in module.named_parameters()}
        assert parameters == set(kept.values()) & set(model.said["trainable"]), model.said["name"]


def test_what_the_parameters_hold_is_what_the_checkpoint_holds(written):
    for model in written:
        checkpoint = migrate.open_checkpoint(model.prefix)
        module = load_model(checkpoint, output=list(model.said["outputs"].values()))
        for parameter in set(module.tensorflow_nodes.values()):
            assert parameter.variable in checkpoint
            value = module.state_dict()[parameter.attribute].numpy()
            assert np.array_equal(value, parameter.read(checkpoint)), parameter


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
