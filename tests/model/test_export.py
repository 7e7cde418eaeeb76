"""torch.export of converted modules: the exported program scores as the module does."""

import pytest
import torch

from migrate.model.load import load_model
from tests.model.features import features
from tests.model.zoo.read import models


def halved(value):
    """The first half of the rows; values that are fed once, such as rates, as they are."""
    return value[: len(value) // 2] if value.ndim and len(value) == 48 else value


@pytest.mark.parametrize("name", ["deepfm", "din", "xdeepfm"])
def test_a_module_of_numbers_is_exported_for_any_batch(zoo, name):
    (model,) = [model for model in models(zoo) if model.said["name"] == name]
    module = load_model(model.prefix, output=list(model.said["outputs"].values()))
    inputs = features(model)
    any_size = torch.export.Dim.AUTO
    sizes = {key: {0: any_size} if value.ndim else None for key, value in inputs.items()}
    program = torch.export.export(module, (inputs,), dynamic_shapes=(sizes,)).module()
    for given in (inputs, {key: halved(value) for key, value in inputs.items()}):
        for found, expected in zip(program(given), module(given)):
            assert torch.allclose(found, expected, atol=1e-6)
