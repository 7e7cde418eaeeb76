"""Folders as Spark, Hive and Delta write them, and standard input."""

import gzip
import io
import json
import subprocess
import sys
import types
import urllib.parse

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.io.batches import batches_of, read_columns
from parity.io.blocks import blocks
from parity.io.data_files import files_of
from parity.io.formats import Columns
from parity.io.partitions import partitions_of
from parity.io.readers import ColumnNames, read_one, read_two
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.parity.kinds import columns
from tests.support.score_files import write

NAMES = ColumnNames("y", "p", "q", parts=("day",))
COLUMNS = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q", "--margin", "0.2"]


def table(rows=8, start=0):
    number = np.arange(start, start + rows)
    return pa.table({"id": number, "y": number % 2, "p": number / 100, "q": number / 100 + 1e-3})


def parquet(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(data, path)


@pytest.fixture
def spark(tmp_path):
    """What a job of Spark leaves: two days, its own files, a task that died, an empty part."""
    folder = tmp_path / "scores"
    for day in (9, 10):
        parquet(folder / f"day={day}" / "part-00000-1f.c000.snappy.parquet", table(8, day))
        parquet(folder / f"day={day}" / "part-00001-1f.c000.snappy.parquet", table(0))
        (folder / f"day={day}" / ".part-00000-1f.c000.snappy.parquet.crc").write_bytes(b"crc")
    parquet(folder / "_temporary" / "0" / "day=9" / "part-00000.parquet", table(3, 50))
    parquet(folder / "day=9" / ".hive-staging" / "part-00000.parquet", table(3, 50))
    (folder / "_SUCCESS").write_bytes(b"")
    return folder


def rows_of(path, names=NAMES):
    """Day and score of every row, in memory and in batches."""
    sample = read_one(str(path), names)
    yield list(zip(sample.parts["day"].tolist(), sample.baseline.tolist()))
    found = list(blocks(str(path), names))
    yield [
        (day, score)
        for block in found
        for day, score in zip(block.names["day"].to_pylist(), block.rows.baseline.tolist())
    ]


EXPECTED = [(day, (day + i) / 100) for day in (9, 10) for i in range(8)]


def test_a_folder_of_spark_is_its_data_and_nothing_else(spark):
    for found in rows_of(spark):
        assert sorted(found) == EXPECTED
    assert len(files_of(str(spark))) == 4
    reference = pyarrow.dataset.dataset(spark, partitioning="hive", ignore_prefixes=["_", "."])
    assert reference.to_table().num_rows == 16


@pytest.mark.parametrize("pattern", ["day=*", "day=*/*.parquet", "*", "**/*.parquet"])
def test_a_pattern_leaves_out_what_a_folder_does(spark, pattern):
    for found in rows_of(spark / pattern):
        assert sorted(found) == EXPECTED


def test_one_file_of_a_partition_has_its_column(spark):
    path = spark / "day=9" / "part-00000-1f.c000.snappy.parquet"
    assert {day for found in rows_of(path) for day, _ in found} == {9}


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "tfrecord"])
def test_partitions_are_columns_of_every_format(tmp_path, kind):
    for label in (0, 1):
        path = tmp_path / f"y={label}" / "day=a%20b" / f"part.{kind}"
        path.parent.mkdir(parents=True)
        data = table(8, 10 * label).drop(["y"])
        if kind == "parquet":
            pyarrow.parquet.write_table(data, path)
        elif kind == "orc":
            pyarrow.orc.write_table(data, path)
        elif kind == "csv":
            pyarrow.csv.write_csv(data, path)
        else:
            from tests.support.score_files import write_tfrecord

            write_tfrecord(path, data)
    assert read_one(str(tmp_path), NAMES).labels.tolist() == [False] * 8 + [True] * 8
    for found in rows_of(tmp_path):
        assert {day for day, _ in found} == {"a b"}


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "jsonl", "tfrecord"])
def test_rows_of_which_only_the_path_is_asked_for_are_all_there(tmp_path, kind):
    path = tmp_path / "day=3" / f"part.{kind}"
    path.parent.mkdir()
    write(path, table())
    assert read_columns(str(tmp_path), [], ["day"])["day"].to_pylist() == [3] * 8
    for several in (False, True):
        found = batches_of(str(tmp_path), Columns(["day"], several=several), 5)
        assert sum(batch.table.num_rows for batch in found) == 8


@pytest.mark.parametrize("several", [False, True])
def test_a_feature_of_the_records_must_not_contradict_their_path(tmp_path, several):
    path = tmp_path / "y=0" / "part.tfrecord"
    path.parent.mkdir()
    write(path, table().select(["y"]).slice(0, 1))
    columns = Columns(["y"], several=several)
    assert [batch.placed for batch in batches_of(str(path), columns, 8)] == [frozenset()]
    write(path, table().select(["y"]))
    with pytest.raises(BadInput, match="column 'y' has other values than its folder"):
        list(batches_of(str(path), columns, 8))


@pytest.mark.parametrize(
    ("folder", "values"),
    [
        ("a%20b", pa.array(["a b"] * 8)),
        ("07", pa.array([7] * 8)),
        ("2024-01-31", pa.array([19753] * 8, pa.date32())),
        ("x", pa.array(["x"] * 8).dictionary_encode()),
    ],
)
def test_a_files_own_column_goes_before_its_paths_and_must_not_contradict_it(
    tmp_path, folder, values
):
    parquet(tmp_path / f"day={folder}" / "part.parquet", table().append_column("day", values))
    own = values.cast(pa.string()).to_pylist()
    for found in rows_of(tmp_path):
        assert [str(day) for day, _ in found] == own
    (tmp_path / f"day={folder}").rename(tmp_path / "day=8")
    with pytest.raises(BadInput, match="column 'day' has other values than its folder.*says '8'"):
        read_one(str(tmp_path), NAMES)


@pytest.mark.parametrize("memory", ["4", "0"])
def test_a_partition_without_a_value_is_missing_and_not_a_name(tmp_path, capsys, memory):
    for day in ("1", "__HIVE_DEFAULT_PARTITION__"):
        parquet(tmp_path / f"day={day}" / "part.parquet", table(8, int(day == "1")))
    more = ["--day", "day", "--memory", memory, "--out", str(tmp_path / "out")]
    assert main(["parity", str(tmp_path), *COLUMNS, *more]) == 3
    assert "PARTITION__/part.parquet: column 'day' in row 1 is empty" in capsys.readouterr().err
    assert main(["parity", str(tmp_path), *COLUMNS, *more[2:]]) in (0, 2), "it is not asked for"


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.text(min_size=1).filter(lambda text: text != "."), min_size=2, max_size=2),
        min_size=1,
        max_size=5,
    )
)
def test_values_in_paths_are_those_that_pyarrow_finds(values):
    schema = pa.schema([("day", pa.string()), ("country of user", pa.string())])
    hive = pyarrow.dataset.partitioning(schema, flavor="hive")
    files = []
    for pair in values:
        quoted = [urllib.parse.quote(value.encode("utf-8", "replace"), safe="") for value in pair]
        files.append(f"data/day={quoted[0]}/country of user={quoted[1]}/part.parquet")
    for file, found in partitions_of(files).items():
        expected = pyarrow.dataset.get_partition_keys(hive.parse(file))
        assert {name: str(value.as_py()) for name, value in found.items()} == expected


def test_partition_values_are_numbers_only_where_all_of_them_are():
    def kinds(*days):
        found = partitions_of([f"day={day}/part" for day in days])
        return [found[f"day={day}/part"]["day"].as_py() for day in days]

    assert kinds("9", "10", "-3") == [9, 10, -3]
    assert kinds("9", "010") == ["9", "010"]
    assert kinds("9", "2024-01-31") == ["9", "2024-01-31"]
    assert kinds("9", "__HIVE_DEFAULT_PARTITION__") == [9, None]


def test_lines_of_json_that_spark_wrote_are_data(tmp_path):
    lines = "".join(json.dumps(row) + "\n" for row in table().to_pylist())
    (tmp_path / "part-00000-c000.json").write_text(lines)
    (tmp_path / "part-00001-c000.json.gz").write_bytes(gzip.compress(lines.encode() + b"\n"))
    assert len(read_one(str(tmp_path), ColumnNames("y", "p", "q")).labels) == 16


def test_files_without_a_suffix_are_read_by_their_magic(tmp_path):
    pyarrow.orc.write_table(table(), tmp_path / "000000_0")
    parquet(tmp_path / "part-00001", table(8, 20))
    (tmp_path / "000002_0").write_bytes(b"")
    (tmp_path / "README.txt").write_text("not data")
    (tmp_path / "metrics.json").write_text("[]")
    assert len(read_one(str(tmp_path), ColumnNames("y", "p", "q")).labels) == 16
    (tmp_path / "000003_0").write_text("1\x010.3\x010.4\n")
    with pytest.raises(BadInput, match="000003_0 may be data, but it is neither Parquet nor ORC"):
        files_of(str(tmp_path))


def test_empty_parts_are_no_copies_of_each_other(tmp_path):
    for i in range(3):
        pyarrow.csv.write_csv(table(0), tmp_path / f"empty-{i}.csv")
        (tmp_path / f"nothing-{i}.csv").write_bytes(b"")
        (tmp_path / f"packed-{i}.csv.gz").write_bytes(gzip.compress(b""))
    pyarrow.csv.write_csv(table(), tmp_path / "rows.csv")
    assert len(read_one(str(tmp_path), ColumnNames("y", "p", "q")).labels) == 8
    for memory in ("4", "0"):
        more = ["--memory", memory, "--out", str(tmp_path / "out")]
        assert main(["parity", str(tmp_path), *COLUMNS, *more]) in (0, 2)
    (tmp_path / "again.csv").write_bytes((tmp_path / "rows.csv").read_bytes())
    with pytest.raises(BadInput, match=r"rows\.csv is a copy of .*again\.csv"):
        read_one(str(tmp_path), ColumnNames("y", "p", "q"))


def test_empty_parts_of_two_days_merge(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    labels, old, new = columns(400)
    for i in (0, 1):
        data = pa.table({"y": labels, "p": old, "q": new}).slice(200 * i, 200)
        parquet(tmp_path / f"day={i}" / "part-0.parquet", data)
        parquet(tmp_path / f"day={i}" / "part-1.parquet", data.slice(0, 0))
        assert main(["parity", f"day={i}", *COLUMNS[:6], "--partial", f"{i}.part"]) == 0
    merged = ["--merge", "0.part", "1.part", "--margin", "0.5", "--out", "out"]
    assert main(["parity", *merged]) == 0
    assert "400 rows" in capsys.readouterr().out


def test_a_parquet_part_without_a_byte_is_damage(tmp_path):
    parquet(tmp_path / "1.parquet", table())
    (tmp_path / "2.parquet").write_bytes(b"")
    with pytest.raises(BadInput, match=r"2\.parquet is empty \(0 bytes\)"):
        read_one(str(tmp_path), ColumnNames("y", "p", "q"))


def commit(folder, version, *actions):
    log = folder / "_delta_log"
    log.mkdir(exist_ok=True)
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def added(path, **more):
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "dataChange": True, **more}}


@pytest.fixture
def delta(tmp_path):
    """Version 2 of a table: of three files one was removed, another replaced."""
    for i, start in enumerate((0, 20, 40)):
        parquet(tmp_path / f"{i}.parquet", table(8, start))
    parquet(tmp_path / "day=a%20b" / "3.parquet", table(8, 60))
    parquet(tmp_path / "day=a%20b" / "stale.parquet", table(8, 80))
    commit(tmp_path, 0, {"metaData": {"id": "x"}}, added("0.parquet"), added("1.parquet"))
    commit(tmp_path, 1, {"remove": {"path": "0.parquet", "dataChange": True}}, added("2.parquet"))
    removed = {"remove": {"path": "1.parquet"}}
    commit(tmp_path, 2, {"commitInfo": {}}, removed, added("day=a%2520b/3.parquet"))
    return tmp_path


def test_of_a_delta_table_the_files_of_its_last_version_are_read(delta):
    expected = [str(delta / "2.parquet"), str(delta / "day=a%20b" / "3.parquet")]
    assert files_of(str(delta)) == expected
    assert files_of(str(delta / "*.parquet")) == expected[:1]
    assert files_of(str(delta / "day=a%20b")) == expected[1:]
    checkpoint = pa.table({"add": [{"path": "0.parquet"}, {"path": "1.parquet"}, None]})
    name = "00000000000000000000.checkpoint.parquet"
    pyarrow.parquet.write_table(checkpoint, delta / "_delta_log" / name)
    (delta / "_delta_log" / "00000000000000000000.json").unlink()
    assert files_of(str(delta)) == expected


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (added("9.parquet", deletionVector={"storageType": "u"}), "rows marked as deleted in 9"),
        (added("s3://bucket/9.parquet"), "with files elsewhere"),
        ({"add": {"no": "path"}}, "_delta_log cannot be read, it may be cut short or corrupt"),
    ],
)
def test_a_delta_table_that_is_not_read_as_a_whole_is_refused(delta, action, sentence):
    commit(delta, 3, action)
    with pytest.raises(BadInput, match=sentence):
        files_of(str(delta))


def checkpoint(folder, name, **kinds):
    path = folder / "_delta_log" / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pa.table(kinds), path)


PARTS = [f"{2:020d}.checkpoint.{part:010d}.{2:010d}" for part in (1, 2)]


def test_a_delta_checkpoint_counts_once_all_its_parts_are_there(delta):
    expected = files_of(str(delta))
    checkpoint(delta, PARTS[0], add=[{"path": "2.parquet"}])
    assert files_of(str(delta)) == expected  # by the commits
    checkpoint(delta, f"{0:020d}.checkpoint", add=[{"path": "0.parquet"}, {"path": "1.parquet"}])
    (delta / "_delta_log" / f"{0:020d}.json").unlink()
    assert files_of(str(delta)) == expected  # by an older checkpoint
    for version in (1, 2):
        (delta / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(BadInput, match="_delta_log lacks commits: 00000000000000000001.json and"):
        files_of(str(delta))
    checkpoint(delta, PARTS[1], add=[{"path": "day=a%2520b/3.parquet"}])
    assert files_of(str(delta)) == expected


def test_a_delta_checkpoint_is_read_with_its_sidecar_files(delta):
    expected = files_of(str(delta))
    added = [{"path": "2.parquet"}, {"path": "day=a%2520b/3.parquet"}]
    (delta / "_delta_log" / "_sidecars").mkdir()
    checkpoint(delta, f"{2:020d}.checkpoint", add=[None], sidecar=[{"path": "x.parquet"}])
    checkpoint(delta, "_sidecars/x", add=added)
    for version in (0, 1, 2):
        (delta / "_delta_log" / f"{version:020d}.json").unlink()
    assert files_of(str(delta)) == expected


UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.parametrize("sidecar", [False, True])
def test_a_delta_checkpoint_with_a_uuid_in_its_name_is_whole(delta, kind, sidecar):
    """Two of a version are alike: either is read, and beside them a part of many is passed over."""
    expected = files_of(str(delta))
    adds = [{"path": "2.parquet"}, {"path": "day=a%2520b/3.parquet"}]
    if sidecar:
        (delta / "_delta_log" / "_sidecars").mkdir()
        checkpoint(delta, "_sidecars/x", add=adds)
    actions = {"sidecar": [{"path": "x.parquet"}]} if sidecar else {"add": adds}
    for start in (UUID, UUID[::-1]):
        name = f"{2:020d}.checkpoint.{start}"
        if kind == "parquet":
            checkpoint(delta, name, **actions)
        else:
            lines = [{key: one} for key, ones in actions.items() for one in ones]
            lines = [{"checkpointMetadata": {"version": 2}}, *lines]
            text = "\n".join(map(json.dumps, lines))
            (delta / "_delta_log" / f"{name}.json").write_text(text)
    checkpoint(delta, PARTS[0], add=[{"path": "2.parquet"}])
    for version in (0, 1, 2):
        (delta / "_delta_log" / f"{version:020d}.json").unlink()
    assert files_of(str(delta)) == expected


def test_of_a_delta_table_what_is_refused_must_be_live(delta):
    """As DELETE writes, RESTORE, then DELETE again and REORG ... APPLY (PURGE)."""
    expected = files_of(str(delta))
    vectors = [
        {"deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "offset": offset}}
        for offset in (1, 99)
    ]
    plain, first, second = (added("2.parquet", **more) for more in ({}, *vectors))
    gone = [{"remove": action["add"]} for action in (plain, first, second)]
    commit(delta, 3, first, gone[0])
    commit(delta, 4, second, gone[1])
    with pytest.raises(BadInput, match="rows marked as deleted in 2"):
        files_of(str(delta))
    commit(delta, 5, plain, gone[2])
    assert files_of(str(delta)) == expected
    elsewhere = added("s3://bucket/9.parquet")
    commit(delta, 6, first, gone[0], elsewhere)
    commit(delta, 7, gone[1], added("1.parquet"), {"remove": elsewhere["add"]})
    assert files_of(str(delta)) == [str(delta / "1.parquet"), expected[1]]


@pytest.mark.parametrize("inside", ["", "day=1", "day=1/*.parquet"])
def test_a_hudi_table_is_refused(tmp_path, inside):
    parquet(tmp_path / "day=1" / "0.parquet", table())
    (tmp_path / ".hoodie").mkdir()
    with pytest.raises(BadInput, match="is a Hudi table, whose folder may hold rows"):
        files_of(str(tmp_path / inside))


def test_a_delta_log_with_a_gap_is_refused(delta):
    commit(delta, 4, added("0.parquet"))
    with pytest.raises(BadInput, match="_delta_log lacks commits: 00000000000000000000.json and"):
        files_of(str(delta))


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "tsv", "text"])
@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.few(1)
def test_standard_input_is_a_file_like_any_other(tmp_path, monkeypatch, capsys, kind, memory):
    labels, old, new = columns()
    data = pa.table({"y": labels, "p": old, "q": new})
    written, more = io.BytesIO(), []
    if kind == "text":
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter="\x01")
        pyarrow.csv.write_csv(data, written, options)
        more = ["--text", json.dumps({"separator": "\x01", "names": ["y", "p", "q"]})]
    elif kind == "parquet":
        pyarrow.parquet.write_table(data, written)
    elif kind == "orc":
        pyarrow.orc.write_table(data, written)
    else:
        options = pyarrow.csv.WriteOptions(delimiter="," if kind == "csv" else "\t")
        pyarrow.csv.write_csv(data, written, options)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(written.getvalue())))
    monkeypatch.chdir(tmp_path)
    assert main(["parity", "-", *COLUMNS, "--out", "out", "--memory", memory, *more]) == 0
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert record["rows"] == 3000
    assert record["provenance"]["files"][0]["path"] == "-"
    assert "Column 'p' of - against column 'q'" in capsys.readouterr().out


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("data", "files", "sentence"),
    [
        (b"", ["-"], "standard input is empty (0 bytes)"),
        (b"y,p\n1,0.5\n", ["-"], "standard input has no column 'q'; it has: y, p"),
        (b"y,p,q\n0,0,0\n1,1,x\n", ["-"], "standard input: column 'q' in row 2 is 'x'; a number"),
        (b'{"y": 1, "p": 0}\n', ["-"], "standard input has no column 'q'; it has: y, p"),
        (b"\x1f\x8b\x08", ["-"], "standard input is compressed; pipe it through gzip -dc"),
        (b"", ["-", "-", "--key", "id"], "standard input (-) is named twice"),
    ],
)
def test_what_is_wrong_with_standard_input_is_said_of_it(
    interpreters, tmp_path, data, files, sentence
):
    command = [interpreters / "python", "-m", "semisync.cli", "parity", *files, *COLUMNS]
    command += ["--out", str(tmp_path / "out")]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == 3
    assert sentence in done.stderr.decode()


def test_two_folders_are_joined_by_a_key_in_their_paths(tmp_path):
    for side in ("old", "new"):
        for i in range(4):
            data = pa.table({"y": [i % 2], "p": [i / 10]})
            parquet(tmp_path / side / f"id={i}" / "part.parquet", data)
    names = ColumnNames("y", "p", "p", key="id")
    sample = read_two(str(tmp_path / "old"), str(tmp_path / "new"), names)
    assert sample.baseline.tolist() == sample.candidate.tolist() == [0, 0.1, 0.2, 0.3]
    assert read_columns(str(tmp_path / "old"), [], ["id"])["id"].to_pylist() == [0, 1, 2, 3]
