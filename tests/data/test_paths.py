"""Which files a data set consists of."""

import json

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate.data import Column, open_data
from migrate.data.listing import files_of, other_order
from semisync.common.errors import BadInput, UsageError
from semisync.storage.folders import below

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
    inside = ["b/_day=1/0.parquet", "b/day=2/1.parquet", "b/day=10/1.parquet"]
    assert names(folder, "") == ["a.parquet", *inside]
    assert names(folder, "b/day=*") == inside[1:]
    assert names(folder, "**/*.parquet") == ["a.parquet", *inside]
    assert names(folder, "b/*/1.parquet", "a.parquet", "a.parquet") == ["a.parquet", *inside[1:]]
    assert names(folder, "empty.csv") == ["empty.csv"]


@pytest.mark.parametrize(
    "named, read_first",
    [
        (["jan.parquet", "feb.parquet"], "feb.parquet before {}jan.parquet"),
        (["feb.parquet", "jan.parquet"], None),
        (["day-9.parquet", "day-10.parquet", "day-9.parquet"], None),
        (["day-*.parquet", "jan.parquet", "feb.parquet"], "feb.parquet before {}jan.parquet"),
        (["."], None),
    ],
)
def test_an_order_other_than_that_of_the_paths_is_told(tmp_path, named, read_first):
    for name in ("jan", "feb", "day-9", "day-10"):
        write(tmp_path / f"{name}.parquet")
    found = other_order([str(tmp_path / name) for name in named])
    if read_first is None:
        assert found is None
    else:
        assert found.endswith(read_first.format(f"{tmp_path}/"))


def test_numbers_in_names_sort_by_their_size(tmp_path):
    parts = [f"part-{name}.parquet" for name in ("01", "1", "2", "9", "10", "10a", 10**30, "a2")]
    for name in reversed(parts):
        write(tmp_path / name)
    assert names(tmp_path, "") == names(tmp_path, "*") == parts


def test_in_a_folder_what_is_no_data_is_left_out_and_what_may_be_is_refused(folder):
    expected = names(folder, "")
    for name in ("README.txt", "metrics.json"):
        (folder / name).write_text("{}")
    assert names(folder, "") == expected
    (folder / "000000_0").write_text("1")
    assert "000000_0" in [name.rpartition("/")[2] for name in files_of(folder, written=True)]
    with pytest.raises(BadInput, match="000000_0 may be data, but it is neither Parquet nor ORC"):
        files_of(folder)


def test_lines_of_json_that_spark_did_not_write_are_named_by_a_pattern(tmp_path):
    (tmp_path / "log.json").write_text("{}")
    with pytest.raises(
        BadInput, match="a folder without .*; its .json files are data if a pattern"
    ):
        files_of(tmp_path)
    assert names(tmp_path, "*.json") == ["log.json"]


def test_a_link_to_a_folder_is_followed(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "link").symlink_to(folder / "b")
    assert len(files_of(other)) == 3


@pytest.mark.parametrize(
    "path", ["{}", "file://{}", "{}/b*", "file://{}/b*", "{}/**/*.parquet", "file://{}/**"]
)
def test_links_to_a_folder_in_which_they_lie_are_named(folder, path):
    for name in ("one", "other"):
        (folder / "b" / name).symlink_to(folder)
    with pytest.raises(BadInput, match="/b/(one|other).* leads back to .*: remove the link"):
        files_of(path.format(folder))


@pytest.mark.parametrize("pattern", ["b/**/*.parquet", "b*/**/*.parquet", "[a-c]/**/*.parquet"])
def test_a_pattern_looks_for_circles_where_it_looks_for_files(folder, monkeypatch, pattern):
    (folder / "other").mkdir()
    (folder / "other" / "up").symlink_to(folder)
    monkeypatch.chdir(folder)
    assert files_of(pattern)


class Links(fsspec.AbstractFileSystem):
    """A server that lists a link to a folder as sftp's does: neither as a file nor entered."""

    protocol = "links"
    folders = {"log": {"a.csv": "file", "part": "link"}, "ring": {"c.csv": "file", "part": "link"}}
    targets = {"log/part": {"b.csv": "file"}}

    def isdir(self, path):
        return path.endswith("/part")

    def find(self, path, detail=False, **options):
        names = self.targets.get(path) or self.folders[path.partition("/")[0]]
        return {f"{path}/{name}": {"type": kind, "size": 4} for name, kind in names.items()}


def test_a_link_that_a_server_lists_is_entered_and_a_circle_named():
    fsspec.register_implementation("links", Links, clobber=True)
    found = below("links://log", lambda name: False)
    assert found == {"links://log/a.csv": 4, "links://log/part/b.csv": 4}
    with pytest.raises(BadInput, match="leads in circles: remove the link"):
        below("links://ring", lambda name: False)


def test_a_path_that_looks_like_a_pattern_is_itself_where_it_exists(tmp_path):
    write(tmp_path / "a[1].parquet")
    write(tmp_path / "a1.parquet")
    assert names(tmp_path, "a[1].parquet") == ["a[1].parquet"]


@pytest.mark.parametrize(
    "paths, sentence",
    [
        ("nothing", "nothing does not exist"),
        ("no*", "no file matches no[*]"),
        ("no/**/*.csv", "no file matches no/"),
        ("b/_temporary/0/*.crc", "no file matches"),
        ([], "no path is given"),
        ("s4://bucket/log", "s4://bucket/log cannot be reached|needs one more package"),
    ],
)
def test_a_path_without_files_is_refused(folder, monkeypatch, paths, sentence):
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match=sentence):
        files_of(paths)


@pytest.fixture(params=["", "file://", "memory://"])
def delta(tmp_path, request):
    """The place of a Delta table of two partitions, each with a file that was removed."""
    table = tmp_path / "table"
    for name in ("old.parquet", "new.parquet", "day=1/old.parquet", "day=1/new.parquet"):
        write(table / name)
    (table / "_delta_log").mkdir()
    log = [{"add": {"path": name}} for name in ("new.parquet", "day=1/new.parquet")]
    commit = "\n".join(map(json.dumps, log))
    (table / "_delta_log" / f"{0:020d}.json").write_text(commit)
    if request.param != "memory://":
        yield f"{request.param}{table}"
        return
    fs = fsspec.filesystem("memory")
    fs.put(str(table), "/bucket/table", recursive=True)
    yield "memory:///bucket/table"
    fs.rm("/bucket", recursive=True)


def test_of_a_delta_table_the_files_of_its_last_version_are_read(delta):
    for inside, expected in (
        ("", ["day=1/new.parquet", "new.parquet"]),
        ("/*.parquet", ["new.parquet"]),
        ("/day=*", ["day=1/new.parquet"]),
        ("/day=1", ["day=1/new.parquet"]),
    ):
        assert list(files_of(delta + inside)) == [f"{delta}/{name}" for name in expected]
    with pytest.raises(BadInput, match="no file matches"):
        files_of(f"{delta}/old*")


def test_a_delta_table_that_lacks_a_file_of_its_last_version_is_refused(delta):
    fs, table = fsspec.url_to_fs(delta)
    fs.rm(f"{table}/day=1/new.parquet")
    for inside in ("", "/day=1"):
        with pytest.raises(BadInput, match="day=1/new.parquet does not exist, but is part of the"):
            files_of(delta + inside)


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
        ({"last": "keep"}, "last is 'keep', which takes a convert="),
        ({"last": "most"}, "last is 'most'; it must be 'drop' or 'pad' or 'keep'"),
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
        BadInput, match="8 rows, less than one global batch of 3 x 3, which last='drop' leaves out"
    ):
        open_data(folder, SCHEMA, 3, last="drop", rank=0, ranks=3)
    (folder / "rows.csv").write_text("x\n")
    with pytest.raises(BadInput, match="rows.csv and the other files hold no rows"):
        open_data(folder / "rows.csv", SCHEMA, 3, last="pad")
