"""Every format gives the rows that were written, in batches, whatever their blocks."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import torch

from migrate.data import Column, Shuffle, TextFormat, infer, open_data
from migrate.data.formats import text
from parity.io.formats import open_file
from semisync.common.errors import BadInput
from tests.data.logs import FORMATS, SCHEMA, batch_rows, rows, write

ROWS = rows(500)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for kind in FORMATS:
        for part, start in enumerate((0, 170, 340)):
            more = {"row_group_size": 50} if kind == "parquet" else {}
            write(folder / f"{part}.{kind}", ROWS[start : start + 170], **more)
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 1000)


@pytest.mark.few(5)
@pytest.mark.parametrize("shuffle", [None, Shuffle(3, buffer=120)])
@pytest.mark.parametrize("kind", FORMATS)
def test_each_row_comes_once_and_is_what_was_written(folder, small_blocks, kind, shuffle):
    data = open_data(f"{folder}/*.{kind}", SCHEMA, 64, last="pad", shuffle=shuffle)
    found = [row for batch in data for row in batch_rows(batch)]
    assert sorted(found, key=lambda row: row["row"]) == ROWS
    assert (found == ROWS) == (shuffle is None)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("block", [10, 13, 100, 1 << 20])
def test_a_line_belongs_to_one_block_wherever_blocks_end(tmp_path, monkeypatch, block, size):
    monkeypatch.setattr(text, "BLOCK", block)
    lines = b"\n\r\nid\tx\n" + b"".join(
        b"%d\t%d%s" % (k, 10 ** (k % 9), (b"\r\n", b"\n", b"\n\n", b"\n\r\n\n")[k % 4])
        for k in range(60)
    )
    (tmp_path / "log.tsv").write_bytes(lines + b"60\t5")  # no line end
    schema = [Column("id", "key", "int64"), Column("x", "dense")]
    data = open_data(tmp_path / "log.tsv", schema, size, last="pad")
    assert data.rows == 61
    assert sum((batch.keys["id"].to_pylist() for batch in data), []) == list(range(61))


@pytest.mark.parametrize("block", [40, 1 << 20])
@pytest.mark.parametrize("most", [0, 1 << 30])  # bytes for reading ids and lines in one pass
def test_ids_of_text_are_the_same_however_they_are_read(tmp_path, monkeypatch, block, most):
    monkeypatch.setattr(text, "BLOCK", block)
    monkeypatch.setattr(text, "_AT_ONCE", most)
    lines = ["7|8\tx|y\t\t0.5", f"\t\t{2**62}\t1", "-3\tz\t0000000000000000012\t1e-3"]
    (tmp_path / "log.tsv").write_text("a\tleft\tb\tclick\n" + "\r\n".join(lines * 5))
    schema = [Column("click", "label"), Column("b", "ids", default=-1), Column("a", "ids")]
    (batch,) = open_data(tmp_path / "log.tsv", schema, 15, last="drop")
    found = {name: one.to_dense() for name, one in batch.sparse.to_dict().items()}
    assert [one.tolist() for one in found["a"]] == [[7, 8], [], [-3]] * 5
    assert [one.tolist() for one in found["b"]] == [[-1], [2**62], [12]] * 5
    assert batch.labels["click"].tolist() == [0.5, 1.0, float(np.float32(1e-3))] * 5


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_the_rows_of_orc_stripes_are_known_before_they_are_read(tmp_path, compression):
    many = pa.table({"id": np.random.RandomState(0).randint(0, 1 << 60, 20_000)})
    path = tmp_path / "log.orc"
    pyarrow.orc.write_table(many, path, compression=compression, stripe_size=4096, batch_size=1024)
    found = open_file(str(path)).block_rows()
    file = pyarrow.orc.ORCFile(path)
    assert len(found) > 1
    assert found == [file.read_stripe(k).num_rows for k in range(file.nstripes)]


def test_maps_fixed_lists_dictionaries_and_slices_are_read_too(tmp_path):
    original = pa.table(
        {
            "map": pa.array(
                [[(1, 0.5)], [], [(2, 1.5), (3, 2.0)]], pa.map_(pa.int64(), pa.float32())
            ),
            "fixed": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2)),
            "word": pa.array(["a", "b", "a"]).dictionary_encode(),
            "code": pa.array([7, 8, 7], pa.uint64()).dictionary_encode(),
            "flag": [True, False, True],
        }
    )
    pq.write_table(original, tmp_path / "log.parquet")
    schema = [
        Column("map", "weighted"),
        Column("fixed", "ids", "int32"),
        Column("word", "string"),
        Column("code", "ids", "int32"),
        Column("flag", "label"),
    ]
    (batch,) = open_data(tmp_path / "log.parquet", schema, 3, last="drop")
    assert batch.weighted["map"].values().tolist() == [1, 2, 3]
    assert batch.weighted["map"].weights().tolist() == [0.5, 1.5, 2.0]
    assert batch.sparse["fixed"].values().tolist() == [1, 2, 3, 4, 5, 6]
    assert str(batch.sparse.values().dtype) == "torch.int32"
    assert batch.strings["word"].to_pylist() == [b"a", b"b", b"a"]
    assert batch.labels["flag"].tolist() == [1, 0, 1]


def test_a_text_file_without_a_header_takes_the_names_given(tmp_path):
    (tmp_path / "log.txt").write_text("1;5,6;0.5\n0;;-2\n")
    written = TextFormat(";", names=["click", "ids", "x"], values=",")
    schema = [Column("x", "dense"), Column("ids", "ids"), Column("click", "label")]
    (batch,) = open_data(tmp_path / "log.txt", schema, 2, last="drop", text=written)
    assert batch.sparse["ids"].lengths().tolist() == [2, 0]
    assert batch.dense.tolist() == [[0.5], [-2.0]]
    with pytest.raises(BadInput, match="neither Parquet .* nor ORC nor, by its name"):
        open_data(tmp_path / "log.txt", schema, 2, last="drop")


def test_json_lines_that_lack_values_are_read_as_parquet_is(tmp_path, small_blocks):
    schema = [Column("id", "key", "int64"), Column("day", "string", default="")]
    schema += [Column("ids", "ids"), Column("x", "dense", default=7), Column("tags", "strings")]
    schema += [Column("pairs", "weighted"), Column("pair", "dense", width=2, default=0)]
    full = {"day": "2020-01-31", "ids": [1], "x": 0.5, "tags": ["2020-01-31"], "pair": [1, 2]}
    full["pairs"] = [{"id": 3, "weight": 2}]
    empty = {"ids": [], "tags": [], "pairs": []}
    of = [{"id": k, **(full if k < 9 else empty if k < 200 else {})} for k in range(400)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))
    pairs = pa.list_(pa.struct([("id", pa.int64()), ("weight", pa.float32())]))
    types = [("id", pa.int64()), ("day", pa.string()), ("ids", pa.list_(pa.int64()))]
    types += [("x", pa.float32()), ("tags", pa.list_(pa.string())), ("pairs", pairs)]
    types += [("pair", pa.list_(pa.float32()))]
    for row in of:
        row.setdefault("pair", [0, 0])
    pq.write_table(pa.Table.from_pylist(of, pa.schema(types)), tmp_path / "log.parquet")
    found = [
        [
            (
                batch.keys["id"].to_pylist(),
                batch.dense.tolist(),
                batch.sparse.values().tolist(),
                batch.weighted.weights().tolist(),
                batch.weighted.lengths().tolist(),
                batch.strings["day"].to_pylist(),
                batch.strings["tags"].to_pylist(),
            )
            for batch in open_data(tmp_path / name, schema, 64, last="pad")
        ]
        for name in ("log.jsonl", "log.parquet")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "line", ["[1]", '{"id": 1', '{"id": 1} {"id": 2}', " ", "id", '{"id": 2.5}']
)
def test_a_line_that_is_not_an_object_with_its_columns_is_refused(tmp_path, line):
    (tmp_path / "log.json").write_text('{"id": 1}\n' + line + "\n")
    with pytest.raises(BadInput, match="log.json"):
        list(open_data(tmp_path / "log.json", [Column("id", "ids")], 1, last="drop"))


def test_a_folder_that_names_a_value_gives_it_to_its_rows(tmp_path):
    for day in ("day=3", "day=4"):
        (tmp_path / day).mkdir()
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / day / "log.parquet")
    schema = [Column("id", "ids"), Column("day", "key", "int64")]
    batches = open_data(tmp_path, schema, 2, last="drop")
    assert [batch.keys["day"].to_pylist() for batch in batches] == [[3, 3], [4, 4]]


def test_hives_own_text_is_read_with_its_marks(tmp_path):
    rows = b"1\x012\x023\x01a\x02b\x010.5\n\\N\x01\\N\x01\\N\x01\\N\n4\x01\x01\x01\\N\n"
    (tmp_path / "000000_0").write_bytes(rows)
    names = ["user", "ids", "words", "price"]
    hive = TextFormat("\x01", names, values="\x02", weight="\x03", quote=None, null="\\N")
    schema = [Column("user", "ids", default=-1), Column("ids", "ids"), Column("words", "strings")]
    schema += [Column("price", "dense", default=7)]
    (batch,) = open_data(tmp_path, schema, 3, last="drop", text=hive)
    found = {
        name: [one.tolist() for one in k.to_dense()] for name, k in batch.sparse.to_dict().items()
    }
    assert found == {"user": [[1], [-1], [4]], "ids": [[2, 3], [], []]}
    assert batch.strings["words"].to_pylist() == [[b"a", b"b"], [], []]
    assert batch.dense.tolist() == [[0.5], [7], [7]]
    (tmp_path / "000000_0").write_bytes(rows.replace(b"\x02b", b"\x02\\N"))
    with pytest.raises(BadInput, match="'words' in row 1 has an empty value in its list"):
        list(open_data(tmp_path, schema, 3, last="drop", text=hive))


@pytest.mark.parametrize("kind", FORMATS)
def test_the_suggested_schema_is_the_one_that_the_log_was_written_with(folder, kind):
    suggested = infer(f"{folder}/*.{kind}", label="click", key="row")
    expected = {column.name: column.kind for column in SCHEMA}
    expected["vector"] = "numbers"  # no list says that its length is the same everywhere
    assert {column.name: column.kind for column in suggested} == expected


def test_a_batch_moves_to_a_device_with_all_its_tensors(folder):
    batch = next(iter(open_data(f"{folder}/*.parquet", SCHEMA, 64, last="drop")))
    moved = batch.to(torch.device("meta"), non_blocking=True)
    jagged = (moved.sparse, moved.weighted, moved.numbers)
    tensors = [*(one.values() for one in jagged), moved.dense, *moved.labels.values()]
    assert [tensor.device.type for tensor in tensors] == ["meta"] * 5
    assert batch_rows(batch.to(torch.device("cpu"))) == batch_rows(batch)


def test_a_map_from_text_suggests_no_kind(tmp_path):
    words = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"x": words}), tmp_path / "log.parquet")
    with pytest.raises(BadInput, match="column 'x' holds map<.*, which suggests no kind"):
        infer(tmp_path / "log.parquet")


def test_a_text_column_without_a_value_suggests_no_kind(tmp_path):
    (tmp_path / "log.tsv").write_text("a\tx\n1\t\n2\t\n")
    with pytest.raises(BadInput, match="column 'x' has no value to tell its kind by"):
        infer(tmp_path / "log.tsv")
    assert infer(tmp_path / "log.tsv", columns=["a"]) == [Column("a", "ids")]
