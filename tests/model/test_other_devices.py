"""A model on another device: text stays on the CPU, numbers are where the weights are."""

import numpy as np
import pytest
import torch

from migrate import runtime
from migrate.model.load import load_model
from tests.model.features import features
from tests.model.zoo.read import models
from tests.support.other_device import META, There, there

TOLERANCE = 2e-6  # as on the CPU


@pytest.mark.long
def test_every_model_scores_on_another_device(zoo_of_each):
    worst = {}
    for model in zoo_of_each:
        module = load_model(model.prefix, output=list(model.said["outputs"].values()))
        inputs, expected = features(model), model.outputs()
        with there(), torch.no_grad():
            module.to(META)
            assert all(isinstance(one, There) for one in module.parameters())
            found = module(inputs)
        found = found if isinstance(found, tuple) else (found,)
        for name, one in zip(model.said["outputs"], found):
            scale = np.maximum(1, np.abs(expected[name]))
            worst[model.said["name"], name] = (np.abs(one.here - expected[name]) / scale).max()
    assert {name: error for name, error in worst.items() if error > TOLERANCE} == {}
    assert worst


def test_inputs_may_be_on_either_device(zoo):
    (model,) = [one for one in models(zoo) if one.said["name"] == "wide_and_deep"]
    module = load_model(model.prefix, output=list(model.said["outputs"].values()))
    inputs = features(model)
    with there(), torch.no_grad():
        module.to(META)
        from_here = module(inputs)[0]
        moved = {
            name: one.to(META) if isinstance(one, torch.Tensor) else one
            for name, one in inputs.items()
        }
        assert torch.equal(module(moved)[0].here, from_here.here)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_ragged_ranges_are_where_their_limits_are(dtype):
    given = [torch.tensor(one, dtype=dtype) for one in ([0, 5, 0], [3, 2, 0], [2, -1, 1])]
    with there():
        found = runtime.ragged_range(*(one.to(META) for one in given))
    for one, here in zip(found, runtime.ragged_range(*given)):
        assert torch.equal(one.here, here)


def test_text_is_read_on_the_cpu_whatever_the_default_device_is(zoo):
    (model,) = [one for one in models(zoo) if one.said["name"] == "wide_and_deep"]
    module = load_model(model.prefix, output=list(model.said["outputs"].values()))
    inputs = features(model)
    with torch.no_grad():
        expected = module(inputs)[0]
        with there(), META:
            assert torch.equal(module(inputs)[0], expected)
