"""Batches as the inputs of a converted model, as TensorFlow's own sparse tensors have them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from migrate.data import Column, inputs_of, open_data
from migrate.runtime.interface import Input
from semisync.common.errors import BadInput, UsageError

SCHEMA = [
    Column("ids", "ids"),
    Column("pair", "ids"),
    Column("weights", "numbers"),
    Column("x", "dense"),
    Column("v", "dense", width=2),
    Column("word", "string"),
    Column("words", "strings"),
    Column("click", "label"),
]


@pytest.fixture
def path(tmp_path):
    rows = {
        "ids": [[5], [], [6, 7]],
        "pair": [[1, 2], [3, 4], [5, 6]],
        "weights": [[0.5], [], [1, 2]],
        "x": [1.0, 2.0, 3.0],
        "v": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "word": ["a", "b", "c"],
        "words": [["p", "q"], [], ["r"]],
        "click": [1, 0, 1],
    }
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def sparse(dtype, name):
    return Input(
        dtype, (None, None), [f"{name}/{part}:0" for part in ("indices", "values", "shape")]
    )


def inputs(path, wanted, columns=None):
    (batch,) = open_data(path, SCHEMA, 3, last="drop", convert=inputs_of(wanted, columns))
    assert batch.columns["click"].to_pylist() == [1, 0, 1]
    return batch.inputs


def test_sparse_inputs_have_indices_values_and_shape(path):
    found = inputs(path, {name: sparse(None, name) for name in ("ids", "weights", "words", "x")})
    indices, values, shape = found["ids"]
    assert indices.tolist() == [[0, 0], [2, 0], [2, 1]] and shape.tolist() == [3, 2]
    assert values.tolist() == [5, 6, 7] and values.dtype == torch.int64
    assert found["weights"][1].tolist() == [0.5, 1, 2]
    assert found["words"][1].numpy().tolist() == [b"p", b"q", b"r"]
    assert found["x"][0].tolist() == [[0, 0], [1, 0], [2, 0]]


def test_dense_inputs_have_the_shape_that_the_model_takes(path):
    wanted = {
        "x": Input("float32", (None, 1), ["x:0"]),
        "v": Input("float32", (None, 2), ["v:0"]),
        "pair": Input("int64", (None, 2), ["pair:0"]),
        "word": Input("string", (None,), ["word:0"]),
        "spare": Input("float32", (), ["spare:0"], optional=True),
    }
    found = inputs(path, wanted)
    assert found["x"].tolist() == [[1], [2], [3]]
    assert found["v"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found["pair"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found["word"].numpy().tolist() == [b"a", b"b", b"c"]
    assert set(found) == {"x", "v", "pair", "word"}


def test_columns_that_are_taken_as_they_are_keep_their_order_and_shapes(tmp_path):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(range(8), pa.float32()), 2)
    columns = {"a": [1, 2, 3, 4], "b": [5, 6, 7, 8], "c": [9, 10, 11, 12], "lists": lists}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    wanted = {
        "c": Input("int64", (None, 1), ["c:0"]),
        "a": Input("int64", (None,), ["a:0"]),
        "b": Input("int64", (None, 1), ["b:0"]),
        "lists": Input("float32", (None, 2), ["lists:0"]),
    }
    schema = [Column(name, "dense", "int64") for name in "abc"]
    schema.append(Column("lists", "dense", width=2))
    path, convert = tmp_path / "log.parquet", inputs_of(wanted)
    _, second = open_data(path, schema, 2, last="drop", convert=convert)
    assert {name: value.tolist() for name, value in second.inputs.items()} == {
        "c": [[11], [12]],
        "a": [3, 4],
        "b": [[7], [8]],
        "lists": [[4, 5], [6, 7]],
    }


def test_an_input_may_have_a_column_of_another_name(path):
    found = inputs(path, {"price": Input("float32", (None,), ["price:0"])}, {"price": "x"})
    assert found["price"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "wanted, sentence",
    [
        (
            {"z": Input("int64", (None,), ["z:0"])},
            "'z' has no column 'z'; the schema has: ids, pair",
        ),
        ({"ids": Input("int64", (None, 1), ["i:0"])}, "'ids' in row 2 has 0 values, expected 1"),
        ({"v": Input("float32", (None, 3), ["v:0"])}, "'v' in row 1 has 2 values, expected 3"),
    ],
)
def test_a_column_that_does_not_fit_its_input_is_refused(path, wanted, sentence):
    with pytest.raises(BadInput, match=sentence):
        inputs(path, wanted)


def test_weighted_ids_and_unknown_inputs_are_refused(path, tmp_path):
    pair = pa.map_(pa.int64(), pa.float32())
    pq.write_table(pa.table({"ids": pa.array([[(1, 0.5)]], pair)}), tmp_path / "map.parquet")
    convert = inputs_of({"ids": sparse("int64", "ids")})
    data = open_data(
        tmp_path / "map.parquet", [Column("ids", "weighted")], 1, last="drop", convert=convert
    )
    with pytest.raises(BadInput, match="holds list<.*numbers, text or lists of them are expected"):
        list(data)
    with pytest.raises(UsageError, match="there is no input 'b'; the model has: a"):
        inputs_of({"a": sparse("int64", "a")}, {"b": "x"})
