"""Columns reach the model in its types, the same from every format, or are refused by row."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
import pytest

from migrate.scoring.features import feature
from migrate.scoring.model import Input
from migrate.scoring.run import rows_of
from parity.inputs.checks import Column
from parity.io.formats import Columns
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput, UsageError
from tests.support.score_files import write_tfrecord

AT = Column("c", "f.parquet", skipped=10)


def one(values, dtype=None, sparse=False, shape=None, **more):
    values = values if isinstance(values, pa.Array) else pa.array(values)
    return feature(pa.chunked_array([values]), AT, Input("c", "c", dtype, sparse, shape), **more)


@pytest.mark.parametrize(
    ("values", "dtype", "kind", "expected"),
    [
        ([1, 2], None, None, np.array([1, 2])),
        ([1.5, 2], None, None, np.array([1.5, 2], np.float32)),
        ([0.1, 2], None, "float64", np.array([0.1, 2])),
        ([True, False], "float32", None, np.array([1, 0], np.float32)),
        ([1.0, 2.0], "int64", None, np.array([1, 2])),
        ([2**24 + 1, 1], "float32", None, np.array([2**24, 1], np.float32)),
        ([" 7", "-8"], "int64", None, np.array([7, -8])),
        (["0.1", "1e400"], "float32", None, np.array([0.1, np.inf], np.float32)),
        ([7, 8], "bytes", "string", np.array([b"7", b"8"], object)),
        ([1e10, 0.5], "bytes", "string", np.array([b"10000000000", b"0.5"], object)),
        (["a ", "ü"], None, None, np.array([b"a ", "ü".encode()], object)),
        ([[1, 2], [3, 4]], "float32", None, np.array([[1, 2], [3, 4]], np.float32)),
        (
            pa.array(["a", "b", "a"]).dictionary_encode(),
            "bytes",
            None,
            np.array([b"a", b"b", b"a"]),
        ),
    ],
)
def test_values_become_what_the_model_takes(values, dtype, kind, expected):
    found = one(values, dtype, kind=kind)
    assert found.lengths is None
    assert np.array_equal(found.numpy(), expected)
    assert found.numpy().dtype == expected.dtype or expected.dtype.kind == "S"


@pytest.mark.parametrize(
    ("values", "shape", "expected"),
    [
        ([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], None, (2, 2, 2)),
        ([[1, 2, 3, 4], [5, 6, 7, 8]], [None, 2, 2], (2, 2, 2)),
        ([[1, 2, 3, 4], [5, 6, 7, 8]], [None, None, 2, 1], (2, 2, 2, 1)),
        ([[1, 2, 3, 4], [5, 6, 7, 8]], [None, None, None], (2, 4, 1)),
        ([1, 2], [None, 1, 1], (2, 1, 1)),
        ([[[], []], [[], []]], None, (2, 2, 0)),
    ],
)
@pytest.mark.parametrize("text", [False, True])
def test_lists_have_the_shape_that_the_model_takes(values, shape, expected, text):
    flat = np.array(values, "int64")
    kind = pa.large_binary() if text else pa.int64()
    for _ in range(flat.ndim - 1):
        kind = pa.list_(kind)
    given = np.vectorize(lambda value: b"%d" % value, [object])(flat) if text else flat
    found = one(pa.array(given.tolist(), kind), "bytes" if text else "int64", shape=shape)
    assert found.numpy().shape == expected
    assert found.numpy().reshape(-1).tolist() == given.reshape(-1).tolist()
    assert found.part(1, 2).padded(2).numpy().shape == (3, *expected[1:])


def test_sparse_values_have_lengths_and_a_missing_row_has_none():
    lists = pa.array([[9], [1, 2], None, [], [3]]).slice(1)
    found = one(lists, "int64", sparse=True)
    assert (found.values.tolist(), found.lengths.tolist()) == ([1, 2, 3], [2, 0, 0, 1])
    found = one([5, None, 6], "int64", sparse=True)
    assert (found.values.tolist(), found.lengths.tolist()) == ([5, 6], [1, 0, 1])
    fixed = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    assert one(fixed, sparse=True).lengths.tolist() == [2, 0, 2]


def test_a_missing_value_is_filled_where_that_is_asked_for():
    assert one([1.5, None], fill="0").values.tolist() == [1.5, 0]
    assert one(pa.nulls(2), "bytes", fill="").values.tolist() == [b"", b""]
    assert one(["a", None], fill="").values.tolist() == [b"a", b""]
    with pytest.raises(UsageError, match="'none' cannot fill what is missing"):
        one([1, None], fill="none")


@pytest.mark.parametrize(
    ("values", "more", "sentence"),
    [
        ([1, None], {}, r"'c' in row 12 is empty; every row needs a value: --fill"),
        ([[1], None], {}, r"'c' in row 12 is empty"),
        ([[1], [2, None]], {"sparse": True}, r"'c' in row 12 has an empty value in its list"),
        ([[1, 2, 3, 4]], {"shape": [None, 3, 2]}, r"'c' in row 11 has 4 values, expected 6"),
        ([[1], [2, 3]], {}, r"'c' in row 12 has 2 values, the first of its batch 1; .*--sparse"),
        ([[[1], [2]], [[3], [4, 5]]], {}, r"'c' in row 12 has 2 values, the first of its batch 1"),
        ([[[1], [2]], [[3], None]], {}, r"'c' in row 12 has an empty value in its list"),
        ([[[1], [2]], [[3], [None]]], {}, r"'c' in row 12 has an empty value in its list"),
        ([1, 1.5], {"dtype": "int64"}, r"'c' in row 12 is 1.5; int64 is expected"),
        ([1.0, 2.0**53], {"kind": "string"}, r"'c' in row 12 is 9007199254740992.0, in double"),
        ([1.0, float("nan")], {"kind": "string"}, r"'c' in row 12 is nan; text is expected"),
        ([1, 2.0**53], {"dtype": "int64"}, r"'c' in row 12 is 9007199254740992.0, in double"),
        (
            pa.array([[1], [2, 2.0**24]], pa.list_(pa.float32())),
            {"dtype": "int32", "sparse": True},
            r"'c' in row 12 is 16777216.0, in float, which cannot hold every whole number of that",
        ),
        ([1, 2**40], {"dtype": "int32"}, r"'c' in row 12 is 1099511627776; int32 is expected"),
        ([[1], [2, 2**40]], {"dtype": "int32", "sparse": True}, r"'c' in row 12 is 1099"),
        (pa.array([1, 2**63], pa.uint64()), {}, r"'c' in row 12 is 9223372036854775808; int64 is"),
        (["1", "x"], {"dtype": "float32"}, r"'c' in row 12 is 'x'; a number is expected"),
        ([1, 2], {"dtype": "bytes"}, r"'c' holds int64, but the model takes text; --type"),
        ([{"a": 1}], {}, r"'c' holds struct<.*; numbers, text or lists of them"),
        ([[[1]]], {"sparse": True}, r"'c' holds list<.*numbers, text"),
        (pa.array([0], pa.timestamp("s")), {}, r"'c' holds timestamp\[s\]"),
    ],
)
def test_what_the_model_cannot_take_is_named_by_row(values, more, sentence):
    with pytest.raises(BadInput, match=r"^f.parquet: column " + sentence):
        one(values, **more)


def table(rows=7):
    number = np.arange(rows)
    return pa.table(
        {
            "id": [f"{n:03d}" for n in number],
            "price": number / 4,
            "tags": [list(range(n % 3)) for n in number],
        }
    )


def write(path, data):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(data, path)
    elif path.suffix == ".orc":
        pyarrow.orc.write_table(data, path)
    elif path.suffix == ".csv":
        lists = ["+".join(map(str, tags)) for tags in data["tags"].to_pylist()]
        pyarrow.csv.write_csv(data.set_column(2, "tags", [lists]), path)
    else:
        write_tfrecord(path, data)
    return str(path)


TEXT = dict.fromkeys(["id", "tags", "tag", "cost"], pa.string())
COLUMNS = Columns(["id", "price", "tags"], types=TEXT, several=True, lists={"tags"})


@pytest.mark.parametrize("suffix", [".parquet", ".orc", ".csv", ".tfrecord"])
def test_every_format_gives_the_same_batches(tmp_path, suffix):
    for name, part in (("b", table().slice(0, 5)), ("a", table().slice(5))):
        write(tmp_path / f"{name}{suffix}", part)
    found = list(rows_of(str(tmp_path), COLUMNS, 2, TextFormat(values="+")))
    assert [(batch.file[-len(suffix) - 1], batch.skipped) for batch in found] == [
        ("a", 0),
        ("b", 0),
        ("b", 2),
        ("b", 4),
    ]
    rows = {"id": [], "price": [], "tags": []}
    for batch in found:
        assert batch.table.num_rows <= 2
        rows["id"] += [one(batch.table["id"].combine_chunks(), "bytes").values]
        rows["price"] += [one(batch.table["price"].combine_chunks(), "float32").values]
        sparse = one(batch.table["tags"].combine_chunks(), "int64", sparse=True)
        rows["tags"] += np.split(sparse.values, np.cumsum(sparse.lengths))[:-1]
    order = [5, 6, 0, 1, 2, 3, 4]
    assert [key.decode() for key in np.concatenate(rows["id"])] == [f"{n:03d}" for n in order]
    assert np.concatenate(rows["price"]).tolist() == [n / 4 for n in order]
    assert [tags.tolist() for tags in rows["tags"]] == [list(range(n % 3)) for n in order]


@pytest.mark.parametrize("size", [2, 100])
def test_a_feature_that_no_record_has_is_refused_before_a_value_of_it_is_missed(size, tmp_path):
    path = write(tmp_path / "a.tfrecord", table())
    found = rows_of(path, COLUMNS._replace(names=["id", "tag"]), size)
    with pytest.raises(
        BadInput, match="no record has the feature 'tag'; the first have: id, price"
    ):
        next(found)


def test_a_data_set_without_rows_or_without_a_column_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("id,price,tags\n")
    with pytest.raises(BadInput, match="has no rows to score"):
        list(rows_of(str(tmp_path / "a.csv"), COLUMNS, 2))
    with pytest.raises(BadInput, match="no column 'cost'; it has: id, price, tags"):
        list(rows_of(str(tmp_path / "a.csv"), COLUMNS._replace(names=["cost"]), 2))
