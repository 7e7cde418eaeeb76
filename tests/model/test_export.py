"""torch.export of converted modules: the exported program scores as the module does."""

import io

import pytest
import torch

from migrate import runtime
from migrate.model.load import load_model
from tests.model.features import features
from tests.model.zoo.read import models

ROWS = 48


def half(value):
    """The first half of the rows; values that are fed once, such as rates, as they are."""
    if isinstance(value, list):
        indices, values, shape = value
        kept = indices[:, 0] < ROWS // 2
        return [indices[kept], values[kept], torch.tensor([ROWS // 2, *shape[1:].tolist()])]
    return value[: ROWS // 2] if value.shape[:1] == (ROWS,) else value


def numeric(zoo, name):
    """(module of a model's numbers, what it takes for all rows and for half of them)."""
    (model,) = [model for model in models(zoo) if model.said["name"] == name]
    module = load_model(model.prefix, output=list(model.said["outputs"].values()))
    inputs = features(model)
    batches = [inputs, {key: half(value) for key, value in inputs.items()}]
    if hasattr(module, "transform"):
        batches = [module.transform(batch) for batch in batches]
        module = runtime.NumericPart(module)
    return module, batches


def exported(zoo, name):
    """(module, its program, what the program takes for all rows and for half of them)."""
    module, batches = numeric(zoo, name)
    sizes = torch.export.AdditionalInputs()
    for batch in batches:
        sizes.add((batch,))
    return module, torch.export.export(module, (batches[0],), dynamic_shapes=sizes), batches


@pytest.mark.parametrize("name", ["deepfm", "din", "canned_linear", "words", "dssm"])
@pytest.mark.long
def test_the_numeric_part_is_exported_for_any_batch(zoo, name):
    module, program, batches = exported(zoo, name)
    for batch in batches:
        for found, expected in zip(program.module()(batch), module(batch)):
            assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", ["deepfm", "canned_linear", "words"])
@pytest.mark.few(1)
def test_the_numeric_part_is_one_graph_for_torch_compile(zoo, name):
    module, batches = numeric(zoo, name)
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="eager")
    for batch in batches:
        for found, expected in zip(compiled(batch), module(batch)):
            assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.long
def test_a_program_that_reads_bags_is_saved_and_loaded(zoo):
    module, program, batches = exported(zoo, "canned_linear")
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    again = torch.export.load(file).module()
    for found, expected in zip(again(batches[1]), module(batches[1])):
        assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.long
def test_what_transform_returns_is_numbers_alone(zoo):
    for model in models(zoo):
        module = load_model(model.prefix, output=list(model.said["outputs"].values()))
        if hasattr(module, "transform"):
            given = torch.utils._pytree.tree_leaves(module.transform(features(model)))
            assert all(isinstance(value, (torch.Tensor, int, runtime.Bags)) for value in given)
