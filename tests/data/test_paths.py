"""Which files a data set consists of."""

import json

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate.data import Column, open_data
from migrate.data.paths import files_of
from semisync.common.errors import BadInput, UsageError

SCHEMA = [Column("x", "key")]


def write(path, values=(1, 2)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": list(values)}), path)


@pytest.fixture
def folder(tmp_path):
    for name in ("b/day=2/1.parquet", "b/_day=1/0.parquet", "a.parquet", "b/day=10/1.parquet"):
        write(tmp_path / name)
    for name in ("_SUCCESS", ".a.parquet.crc", "b/_temporary/0/c.parquet", "empty.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"" if name == "empty.csv" else b"x")
    return tmp_path


def names(folder, *paths):
    return [path[len(str(folder)) + 1 :] for path in files_of([f"{folder}/{p}" for p in paths])]


def test_folders_and_patterns_leave_out_what_writers_leave_behind(folder):
    inside = ["b/_day=1/0.parquet", "b/day=10/1.parquet", "b/day=2/1.parquet"]
    assert names(folder, "") == ["a.parquet", *inside]
    assert names(folder, "b/day=*") == inside[1:]
    assert names(folder, "**/*.parquet") == ["a.parquet", *inside]
    assert names(folder, "b/*/1.parquet", "a.parquet", "a.parquet") == ["a.parquet", *inside[1:]]
    assert names(folder, "empty.csv") == ["empty.csv"]


def test_a_link_to_a_folder_is_followed(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "link").symlink_to(folder / "b")
    assert len(files_of(other)) == 3


def test_a_path_that_looks_like_a_pattern_is_itself_where_it_exists(tmp_path):
    write(tmp_path / "a[1].parquet")
    write(tmp_path / "a1.parquet")
    assert names(tmp_path, "a[1].parquet") == ["a[1].parquet"]


@pytest.mark.parametrize(
    "paths, sentence",
    [
        ("nothing", "nothing does not exist"),
        ("no*", "no[*] stands for no file that holds data"),
        ("b/_temporary/0/*.crc", "stands for no file"),
        ([], "no path is given"),
        ("s4://bucket/log", "s4://bucket/log cannot be reached|needs one more package"),
    ],
)
def test_a_path_without_files_is_refused(folder, monkeypatch, paths, sentence):
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match=sentence):
        files_of(paths)


@pytest.mark.parametrize("log", ["_delta_log/00.json", ".hoodie/hoodie.properties"])
def test_a_table_whose_log_decides_which_files_count_is_refused(folder, log):
    (folder / "b" / log).parent.mkdir()
    (folder / "b" / log).write_text("{}")
    with pytest.raises(BadInput, match="table, whose folder may hold rows that are deleted"):
        files_of(folder)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_pattern_in_a_delta_table_leaves_out_removed_files(tmp_path, scheme):
    for name in ("old.parquet", "new.parquet", "day=1/old.parquet", "day=1/new.parquet"):
        write(tmp_path / name)
    (tmp_path / "_delta_log").mkdir()
    log = [{"add": {"path": name}} for name in ("new.parquet", "day=1/new.parquet")]
    commit = "\n".join(map(json.dumps, log))
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text(commit)
    for pattern, file in (("*.parquet", "new.parquet"), ("day=*", "day=1/new.parquet")):
        assert list(files_of(f"{scheme}{tmp_path}/{pattern}")) == [f"{scheme}{tmp_path}/{file}"]
    assert names(tmp_path, "day=1") == ["day=1/new.parquet"]
    with pytest.raises(BadInput, match="stands for no file that holds data"):
        files_of(f"{scheme}{tmp_path}/old*")


def test_a_pattern_in_a_hudi_table_is_refused(folder):
    (folder / "b" / ".hoodie").mkdir()
    with pytest.raises(BadInput, match="b is a Hudi table, whose folder may hold rows"):
        files_of(f"{folder}/b/day=*")


def test_urls_read_as_files_do(folder):
    fs = fsspec.filesystem("memory")
    fs.put(str(folder) + "/b", "/bucket/b", recursive=True)
    try:
        data = open_data("memory://bucket/b/day=*", SCHEMA, 4, last="drop")
        assert [batch.keys["x"].to_pylist() for batch in data] == [[1, 2, 1, 2]]
        assert data.digest == open_data(f"{folder}/b/day=*", SCHEMA, 4, last="drop").digest
    finally:
        fs.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"prefetch": 0}, "prefetch is 0"),
        ({"last": "keep"}, "last is 'keep'; it must be 'drop' or 'pad'"),
        ({"on_broken": "ignore"}, "on_broken is 'ignore'"),
        ({"rank": 1}, "given together or not at all"),
        ({"rank": 2, "ranks": 2}, "rank is 2 of 2"),
    ],
)
def test_arguments_without_meaning_are_refused(folder, change, sentence):
    arguments = {"batch_size": 1, "last": "drop", **change}
    with pytest.raises(UsageError, match=sentence):
        open_data(folder, SCHEMA, **arguments)


def test_several_processes_without_torch_distributed_are_refused(folder, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="call init_process_group before open_data"):
        open_data(folder, SCHEMA, 1, last="drop")


def test_fewer_rows_than_a_global_batch_are_refused(folder):
    with pytest.raises(
        BadInput, match="8 rows, less than one global batch of 3 x 3; with last='pad'"
    ):
        open_data(folder, SCHEMA, 3, last="drop", rank=0, ranks=3)
    (folder / "rows.csv").write_text("x\n")
    with pytest.raises(BadInput, match="rows.csv and the other files hold no rows"):
        open_data(folder / "rows.csv", SCHEMA, 3, last="pad")
