"""Models with loops, as they are written for TensorFlow 1.15, give its outputs and gradients."""

import pathlib

import numpy
import pytest
import torch

from migrate.model.load import load_model
from migrate.model.training.build import build_training
from tests.support.require import tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_models.py")
NAMES = ["boxes", "hierarchical", "raw", "stacked", "tagger", "teacher", "tree"]
OTHERS = ["beams"]


@pytest.fixture(scope="module", params=["1", "2"], ids=["dataflow", "functions"])
def models(request):
    """A function: the folder of a model."""

    def folder(name):
        names = NAMES if name in NAMES else OTHERS
        return written(tf1_python(), _WRITER, request.param, *names) / name

    return folder


@pytest.mark.parametrize(
    "name", NAMES + [pytest.param(name, marks=pytest.mark.long) for name in OTHERS]
)
@pytest.mark.long
def test_it_gives_tensorflows_outputs_and_gradients(models, name):
    folder = models(name)
    with numpy.load(folder / "feeds.npz") as file:
        feeds = {key: torch.from_numpy(file[key]) for key in file}
    with numpy.load(folder / "expected.npz") as file:
        expected = dict(file)
    outputs = [key for key in expected if not key.startswith("d/")]
    found = load_model(folder / "model", output=outputs)(feeds)
    for key, value in zip(outputs, found if isinstance(found, tuple) else [found]):
        _compare(value, expected.pop(key), key)
    if expected:
        training = build_training(folder / "model")
        training.module(feeds).backward()
        targets = {"d/" + target.name: target for target in training.optimizer.targets}
        assert set(targets) == set(expected)
        for key, target in targets.items():
            wanted, axes = expected[key], target.parameter.axes
            wanted = wanted if axes is None else wanted.transpose(axes)
            _compare(target.tensor.grad.to_dense(), wanted, key)


def _compare(value, wanted, name):
    numpy.testing.assert_allclose(value.detach(), wanted, 1e-4, 1e-4, err_msg=name)
