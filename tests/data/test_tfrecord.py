"""TFRecord files of tf.train.Example, as TensorFlow writes and reads them, as training data."""

import gzip

import numpy as np
import pyarrow as pa
import pytest

from migrate.data import Column, Shuffle, infer, open_data
from migrate.data.formats import text
from semisync.common.errors import BadInput
from tests.data.logs import SCHEMA, rows, table
from tests.support.score_files import write_tfrecord

tf = pytest.importorskip("tensorflow")

COLUMNS = [column for column in SCHEMA if column.name != "interests"]
ROWS = [{k: v for k, v in row.items() if k != "interests"} for row in rows(200)]


@pytest.fixture(params=["tfrecord", "tfrecord.gz"])
def folder(request, tmp_path, monkeypatch):
    """Two files, in blocks of a few records where they are not packed."""
    monkeypatch.setattr(text, "BLOCK", 1000)
    whole = table(rows(200)).drop(["interests"])
    for part, start in enumerate((0, 130)):
        path = tmp_path / f"{part}.tfrecord"
        write_tfrecord(path, whole.slice(start, 130 if not part else 70))
        if request.param.endswith("gz"):
            (tmp_path / f"{part}.tfrecord.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    return tmp_path


def parsed(folder):
    """The columns as TensorFlow's own reader and parser have them."""
    paths = sorted(map(str, folder.glob("*.tfrecord*")))
    kind = "GZIP" if paths[0].endswith("gz") else ""
    records = list(tf.data.TFRecordDataset(paths, kind).as_numpy_iterator())
    lists = {"user": tf.int64, "history": tf.int64, "gaps": tf.float32, "tags": tf.string}
    spec = {
        "row": tf.io.FixedLenFeature([], tf.int64),
        "price": tf.io.FixedLenFeature([], tf.float32),
        "vector": tf.io.FixedLenFeature([3], tf.float32),
        "colour": tf.io.FixedLenFeature([], tf.string),
        "click": tf.io.FixedLenFeature([], tf.int64),
        **{name: tf.io.RaggedFeature(kind) for name, kind in lists.items()},
    }
    return {
        name: value.to_list() if name in lists else value.numpy().tolist()
        for name, value in tf.io.parse_example(records, spec).items()
    }


def read(data):
    """The columns of all batches."""
    found = {column.name: [] for column in COLUMNS}
    for batch in data:
        jagged = {**batch.sparse.to_dict(), **batch.numbers.to_dict()}
        for name, one in jagged.items():
            found[name] += [part.tolist() for part in one.to_dense()][: batch.rows]
        dense = batch.dense[: batch.rows].tolist()
        found["price"] += [row[0] for row in dense]
        found["vector"] += [row[1:] for row in dense]
        for name in ("colour", "tags"):
            found[name] += batch.strings[name].to_pylist()
        found["row"] += batch.keys["row"].to_pylist()
        found["click"] += batch.labels["click"].int().tolist()[: batch.rows]
    return found


@pytest.mark.parametrize("shuffle", [None, Shuffle(3, buffer=60)])
def test_each_record_comes_once_and_is_what_tensorflow_parses(folder, shuffle):
    found, expected = read(open_data(folder, COLUMNS, 64, last="pad", shuffle=shuffle)), None
    expected = parsed(folder)
    assert (found["row"] == expected["row"]) == (shuffle is None)
    places = np.argsort(found["row"])
    assert {name: [column[place] for place in places] for name, column in found.items()} == expected


def test_blocks_are_records_that_begin_in_a_stretch_of_the_file(folder):
    data = open_data(folder, COLUMNS, 10, last="drop")
    assert data.rows == 200
    assert len(data._block_rows) == sum(  # a packed file is one block
        1 if path.suffix == ".gz" else -(-path.stat().st_size // 1000) for path in folder.iterdir()
    )


def test_ranks_have_as_many_batches_and_a_state_goes_on_exactly(folder):
    def opened(rank, ranks):
        shuffle = Shuffle(1, buffer=40)
        return open_data(folder, COLUMNS, 8, last="pad", shuffle=shuffle, rank=rank, ranks=ranks)

    two = [opened(rank, 2) for rank in range(2)]
    assert two[0].batches == two[1].batches
    first = []
    for running in map(iter, two):
        for _ in range(5):
            first += next(running).keys["row"].to_pylist()
    three = [opened(rank, 3) for rank in range(3)]
    for data in three:
        data.load_state_dict(two[0].state_dict())
    rest = [key for data in three for batch in data for key in batch.keys["row"].to_pylist()]
    assert sorted(first + rest) == list(range(200))


def test_the_suggested_schema_has_the_kinds_of_the_features(folder):
    suggested = infer(folder, label="click", key="row")
    assert {column.name: column.kind for column in suggested} == {
        column.name: column.kind for column in COLUMNS
    }
    assert {column.width for column in suggested if column.name == "vector"} == {3}


def write(path, *examples):
    """Records of features by name, each a list."""
    whole = b""
    for example in examples:
        write_tfrecord(path, pa.table({name: [values] for name, values in example.items()}))
        whole += path.read_bytes()
    path.write_bytes(whole)
    return path


def test_a_feature_without_values_is_missing(tmp_path):
    path = write(tmp_path / "a.tfrecord", {"id": [1], "x": [0.5], "s": ["a"]}, {"id": []})
    schema = [Column("id", "ids", default=-1), Column("x", "dense", default=7)]
    (batch,) = open_data(path, [*schema, Column("s", "string", default="")], 2, last="drop")
    assert batch.sparse.values().tolist() == [1, -1]
    assert batch.dense.tolist() == [[0.5], [7.0]]
    assert batch.strings["s"].to_pylist() == [b"a", b""]
    schema = [Column("id", "ids"), Column("x", "label")]
    with pytest.raises(BadInput, match="a.tfrecord: column 'x' in row 2 is empty"):
        list(open_data(path, schema, 2, last="drop"))


@pytest.mark.parametrize(
    ("column", "second", "sentence"),
    [
        (Column("y", "ids"), [1], "has no column 'y'; it has: x"),
        (Column("x", "ids"), [0.5], "record 2: feature 'x' holds values of another type"),
        (Column("x", "dense"), [1, 2], "'x' in row 2 has 2 values, expected 1"),
        (Column("x", "label"), [1, 2], "'x' in row 2 has 2 values, expected 1"),
        (Column("x", "weighted"), [1], "'x' holds int64; lists of .id, weight., or maps"),
        (Column("x", "string"), [1], "'x' holds int64, but the model takes text"),
    ],
)
def test_what_the_schema_does_not_say_is_refused(tmp_path, column, second, sentence):
    path = write(tmp_path / "a.tfrecord", {"x": [1]}, {"x": second})
    with pytest.raises(BadInput, match=sentence):
        list(open_data(path, [column], 1, last="drop"))


def test_a_key_is_text_or_a_number_and_never_bytes_of_another_kind(tmp_path):
    path = write(tmp_path / "a.tfrecord", {"k": ["a"]}, {"k": ["ü"]})
    (batch,) = open_data(path, [Column("k", "key")], 2, last="drop")
    assert batch.keys["k"].to_pylist() == ["a", "ü"]
    example = tf.train.Example()
    example.features.feature["k"].bytes_list.value.append(b"\xff")
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(example.SerializeToString())
    with pytest.raises(BadInput, match="a.tfrecord: column 'k' is not text in every record"):
        list(open_data(path, [Column("k", "key")], 1, last="drop"))


@pytest.mark.parametrize("kind", ["tfrecord", "tfrecord.gz"])
@pytest.mark.long
def test_damage_ends_in_a_sentence_or_is_skipped(tmp_path, kind):
    whole = write(tmp_path / "whole", *({"x": [k]} for k in range(50))).read_bytes()
    (tmp_path / "whole").unlink()
    write(tmp_path / "0.tfrecord", {"x": [-1]})
    path = tmp_path / f"1.{kind}"
    refused = 0
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        for content in (bytes(damaged), whole[:place]):
            path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
            try:
                found = list(open_data(path, [Column("x", "label")], 1, last="drop"))
                assert len(found) * len(whole) == 50 * len(content)
            except BadInput as error:
                assert str(path) in str(error)
                assert "\n" not in str(error)
                refused += 1
            data = open_data(tmp_path, [Column("x", "label")], 1, last="pad", on_broken="skip")
            values = [float(batch.labels["x"][0]) for batch in data if batch.rows]
            assert values in ([-1.0], [-1.0, *range(len(values) - 1)])
    places = range(0, len(whole), 7)
    between = [place for place in places if place and not place % (len(whole) // 50)]
    assert refused == 2 * len(places) - len(between)


def test_a_file_of_other_messages_is_no_examples(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        writer.write(b"plain text")
    with pytest.raises(BadInput, match="a.tfrecord: record 1 is not a tf.train.Example"):
        open_data(tmp_path, [Column("x", "ids")], 1, last="drop")


def test_a_file_without_records_holds_no_rows(tmp_path):
    (tmp_path / "0.tfrecord").write_bytes(b"")
    write(tmp_path / "1.tfrecord", {"x": [1]}, {"x": [2]})
    paths = [tmp_path / "0.tfrecord", tmp_path / "1.tfrecord"]
    data = open_data(paths, [Column("x", "ids")], 2, last="drop")
    assert [batch.sparse.values().tolist() for batch in data] == [[1, 2]]
