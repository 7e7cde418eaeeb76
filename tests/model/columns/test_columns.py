"""Feature columns that become vectors give TensorFlow's, and are written without sparse tensors."""

import pathlib
import sys

import numpy as np
import pytest
import torch

from migrate.model.load import load_model
from tests.model.features import as_input, outputs_of
from tests.support.require import tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_columns.py")
_PARTS = ("indices", "values", "shape")


@pytest.fixture(scope="module", params=["1.15", "2.x"])
def folder(request):
    return written(tf1_python() if request.param == "1.15" else sys.executable, _WRITER)


@pytest.fixture(params=["layer", "keras"])
def subject(request, folder):
    """(the module, its inputs, what TensorFlow gives)."""
    with np.load(folder / request.param / "rows.npz") as file:
        rows = dict(file)
    expected = [rows.pop("vectors"), rows.pop("scores")]
    given = {
        name: as_input(value.astype({"U": object, "f": "f"}.get(value.dtype.kind, value.dtype)))
        for name, value in rows.items()
    }
    given["tags"] = [given.pop(f"tags/{part}") for part in _PARTS]
    prefix = str(folder / request.param / "model")
    return load_model(prefix, output=["vectors", "scores"]), given, expected


def test_vectors_are_tensorflows(subject):
    module, given, expected = subject
    for found, wanted in zip(outputs_of(module, given), expected):
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)


def test_a_batch_of_no_rows_has_no_vectors(subject):
    module, given, expected = subject
    none = {name: value[:0] for name, value in given.items() if name != "tags"}
    indices, values, _ = given["tags"]
    none["tags"] = [indices[:0], values[:0], torch.tensor([0, 0])]
    assert outputs_of(module, none)[0].shape == (0, expected[0].shape[1])


def test_ids_of_dense_features_are_in_no_sparse_tensor(subject):
    source = subject[0].source
    assert source.count("runtime.sparse_to_dense(") == 2  # of tags and of the cross
    assert ".tile(" not in source and "torch.full(" not in source
    assert "city_indicator = runtime.one_hot(" in source


def test_what_an_output_is_asked_for_of_the_ids_is_sparse(folder):
    """As in TensorFlow, ids of values that are there."""
    with np.load(folder / "layer" / "rows.npz") as file:
        city = file["city"].astype(object)
    name = "input_layer/city_indicator/to_sparse_input/values"
    module = load_model(str(folder / "layer" / "model"), output=name)
    found = module({"city": as_input(city)})
    assert found.numpy().tolist() == [word.encode() for (word,) in city.tolist() if word]
