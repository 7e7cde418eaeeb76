"""Feature columns that become vectors give TensorFlow's, and are written without sparse tensors."""

import gc
import pathlib
import sys

import numpy as np
import pytest
import torch

from migrate.graph.metagraph import Graph
from migrate.model.load import load_model
from tests.model.features import as_input, outputs_of
from tests.support.require import tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_columns.py")
_SPARSE = ("tags", "kinds", "brands", "shops", "scores")
_PARTS = ("indices", "values", "shape")


@pytest.fixture(scope="module", params=["1.15", "2.x"])
def folder(request):
    return written(tf1_python() if request.param == "1.15" else sys.executable, _WRITER)


@pytest.fixture(params=["layer", "keras"])
def subject(request, folder):
    """(the module, its inputs, what TensorFlow gives)."""
    with np.load(folder / request.param / "rows.npz") as file:
        rows = dict(file)
    expected = [rows.pop("vectors"), rows.pop("predicted")]
    given = {
        name: as_input(value.astype({"U": object, "f": "f"}.get(value.dtype.kind, value.dtype)))
        for name, value in rows.items()
    }
    for name in _SPARSE:
        given[name] = [given.pop(f"{name}/{part}") for part in _PARTS]
    prefix = str(folder / request.param / "model")
    return load_model(prefix, output=["vectors", "predicted"]), given, expected


def test_vectors_are_tensorflows(subject):
    module, given, expected = subject
    for found, wanted in zip(outputs_of(module, given), expected):
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)


@pytest.mark.long
def test_a_batch_of_no_rows_has_no_vectors(subject):
    module, given, expected = subject
    none = {name: value[:0] for name, value in given.items() if name not in _SPARSE}
    for name in _SPARSE:
        indices, values, _ = given[name]
        none[name] = [indices[:0], values[:0], torch.tensor([0, 0])]
    assert outputs_of(module, none)[0].shape == (0, expected[0].shape[1])


@pytest.mark.long
def test_ids_of_dense_features_are_in_no_sparse_tensor(subject):
    source = subject[0].source
    assert source.count("runtime.sparse_to_dense(") == 2  # of tags and of the cross
    assert ".tile(" not in source and "torch.full(" not in source
    assert source.count("runtime.one_hot(") == 9


def test_pooled_ids_are_one_look_up_whatever_weights_and_norms_they_have(subject):
    source = subject[0].source
    for word in ("fill_empty_rows", "segment_", "torch.sqrt", "sparse_reshape", "zeros_like"):
        assert word not in source, word
    assert source.count("positive=True") == 4 and source.count(".pooled(") >= 2


def test_what_an_output_is_asked_for_of_the_ids_is_sparse(folder):
    """As in TensorFlow, ids of values that are there."""
    with np.load(folder / "layer" / "rows.npz") as file:
        city = file["city"].astype(object)
    name = "input_layer/city_indicator/to_sparse_input/values"
    module = load_model(str(folder / "layer" / "model"), output=name)
    found = module({"city": as_input(city)})
    assert found.numpy().tolist() == [word.encode() for (word,) in city.tolist() if word]


@pytest.mark.long
def test_of_a_model_that_is_deleted_no_graph_stays_in_memory(folder):
    def graphs():
        gc.collect()
        return sum(isinstance(one, Graph) for one in gc.get_objects())

    before = graphs()
    for _ in range(2):
        load_model(str(folder / "layer" / "model"), output=["vectors", "predicted"])
    assert graphs() == before
