"""Conversions into a store that fsspec serves, here the one in memory."""

import fsspec
import numpy as np
import pytest

import migrate
from migrate.checkpoint.pieces import Piece, Tensor
from migrate.conversion import job
from migrate.targets.work_directory import Unfinished, partial_path
from migrate.to_tensorflow.write import write_index
from semisync import cli
from semisync.common.errors import BadInput, UsageError
from semisync.encoding.dtypes import DTYPES
from tests.migrate.raw_tables import write_hugectr
from tests.support.conversions import contents, interrupt, make_plan

OUT = "memory://bucket/out"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The file system in memory; the scratch folder is the current one, scratch in tmp_path."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "scratch")
    fs = fsspec.filesystem("memory")
    yield fs
    fs.rm("/", recursive=True)


def stored(fs, folder="/bucket/out"):
    """The bytes of every file, by its name in the folder."""
    return {name[len(folder) + 1 :]: fs.cat_file(name) for name in fs.find(folder)}


def uploads(fs, monkeypatch):
    """Names of the files as they are uploaded, from now on."""
    names = []
    original = type(fs).put_file

    def put_file(self, path, url, *more, **options):
        names.append(url.rpartition("/")[2])
        return original(self, path, url, *more, **options)

    monkeypatch.setattr(type(fs), "put_file", put_file)
    return names


@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_a_store_gets_the_files_of_a_disk_and_the_manifest_last(
    store, tf2_checkpoints, tmp_path, monkeypatch, small_parts, target
):
    prefix = str(tf2_checkpoints / "adagrad_ref")
    plan = make_plan(prefix)
    names = uploads(store, monkeypatch)
    there = migrate.convert(plan, OUT, target)
    here = migrate.convert(plan, tmp_path / "here", target)
    of_values = contents(tmp_path / "here")
    assert {n: d for n, d in stored(store).items() if n != "manifest.json"} == {
        n: d for n, d in of_values.items() if n != "manifest.json"
    }
    assert [one.fqn for one in there.tensors] == [one.fqn for one in here.tensors]
    assert names[-1] == "manifest.json" and len(names) == len(set(names)) == len(of_values)
    assert cli.main(["verify", prefix, OUT]) == 0
    assert not list((tmp_path / "scratch").iterdir())


def test_what_was_uploaded_is_not_uploaded_again(
    store, tf2_checkpoints, tmp_path, monkeypatch, small_parts
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    whole = migrate.convert(plan, OUT + "-whole")
    interrupt(plan, OUT, 2, workers=1)
    before = stored(store)
    assert before and "manifest.json" not in before
    with pytest.raises(BadInput, match="there is no such file|cannot be opened"):
        migrate.read_manifest(OUT)
    with pytest.raises(UsageError, match="go on with it with --resume"):
        migrate.convert(plan, OUT)
    work = partial_path(OUT)
    journal = {job.read(work).parts[number][0].file for number in job.finished(work)}
    assert len(journal) == 2 and journal <= set(before)
    lost = min(journal)
    store.pipe_file(f"/bucket/out/{lost}", before[lost][:-1])
    names = uploads(store, monkeypatch)
    assert migrate.convert(plan, OUT, resume=True) == whole
    assert stored(store) == stored(store, "/bucket/out-whole")
    assert journal.intersection(names) == {lost}


def test_what_is_lost_during_the_conversion_is_seen_before_the_manifest(
    store, tf2_checkpoints, tmp_path, small_parts
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")

    def lose(done, total):
        for name in store.find("/bucket/out"):
            store.rm_file(name)

    with pytest.raises(Unfinished, match="has no bytes, and had .* go on with --resume"):
        migrate.convert(plan, OUT, progress=lose)
    assert "manifest.json" not in stored(store)
    migrate.convert(plan, OUT, resume=True)
    assert cli.main(["verify", str(tf2_checkpoints / "adagrad_ref"), OUT]) == 0


@pytest.mark.long
def test_a_store_that_refuses_leaves_the_work_to_be_resumed(
    store, tf2_checkpoints, tmp_path, monkeypatch, capsys, small_parts
):
    original, left = type(store).put_file, [2]

    def put_file(self, path, url, *more, **options):
        left[0] -= 1
        if left[0] < 0:
            raise PermissionError("Access Denied")
        return original(self, path, url, *more, **options)

    monkeypatch.setattr(type(store), "put_file", put_file)
    prefix = str(tf2_checkpoints / "adagrad_ref")
    assert cli.main(["convert", prefix, OUT, "--workers", "1"]) == 3
    said = capsys.readouterr().err
    assert "cannot be written: Access Denied; what was done is kept, go on with --resume" in said
    left[0] = 10**9
    assert cli.main(["convert", prefix, OUT, "--resume"]) == 0
    monkeypatch.setattr(type(store), "pipe_file", put_file)
    left[0] = 0
    assert cli.main(["convert", prefix, "memory://bucket/other"]) == 3
    assert "memory://bucket/other cannot be written: Access Denied" in capsys.readouterr().err
    assert not list((tmp_path / "scratch").iterdir())


def test_a_place_that_holds_something_is_refused(store, tf2_checkpoints, tmp_path):
    plan = make_plan(tf2_checkpoints / "sgd")
    store.pipe_file("/bucket/out/theirs", b"1")
    with pytest.raises(UsageError, match="is not empty, and .*partial is not there"):
        migrate.convert(plan, OUT)
    migrate.convert(plan, OUT + "2/", scratch=tmp_path / "scratch")
    with pytest.raises(UsageError, match="holds a conversion; give a new place"):
        migrate.convert(plan, OUT + "2", resume=True)
    with pytest.raises(UsageError, match="scratch is for a URL"):
        migrate.convert(plan, tmp_path / "here", scratch=str(tmp_path))
    assert stored(store) == {"theirs": b"1"}


def test_a_damaged_source_leaves_no_manifest_and_says_what_to_delete(store, corrupt_checkpoint):
    plan = make_plan(corrupt_checkpoint)
    with pytest.raises(BadInput, match=f"crc32c.*; delete what was uploaded to {OUT}"):
        migrate.convert(plan, OUT)
    assert "manifest.json" not in stored(store)


@pytest.mark.parametrize("mode", ["rows", "mpzch", "dynamicemb"])
def test_hash_tables_are_sorted_in_the_scratch_folder(store, tmp_path, mode):
    source = write_hugectr(
        tmp_path / "hugectr", np.arange(300)[::-1], np.random.rand(300, 4).astype(np.float32)
    )
    plan = make_plan(source, ids=mode)
    migrate.convert(plan, OUT)
    migrate.convert(plan, tmp_path / "here")
    assert cli.main(["verify", str(source), OUT]) == 0
    here = {str(p.relative_to(tmp_path / "here")) for p in (tmp_path / "here").rglob("*.*")}
    assert set(stored(store)) == {name for name in here if (tmp_path / "here" / name).is_file()}


@pytest.mark.long
def test_a_changed_value_in_the_store_is_found(store, tf2_checkpoints, capsys):
    prefix = str(tf2_checkpoints / "adagrad_ref")
    for target, name in (
        ("dcp", "__0_0.distcp"),
        ("safetensors", "model-00001-of-00001.safetensors"),
    ):
        out = f"{OUT}-{target}"
        assert cli.main(["convert", prefix, out, "--target", target]) == 0
        path = f"/bucket/out-{target}/{name}"
        data = bytearray(store.cat_file(path))
        written = migrate.read_manifest(out).tensors
        source = next(one.source for one in written if one.fqn.endswith("item.weight"))
        place = data.index(migrate.open_checkpoint(prefix).read(source)[3].tobytes())
        data[place] ^= 1
        store.pipe_file(path, bytes(data))
        assert cli.main(["verify", prefix, out]) == 1
        store.pipe_file(path, bytes(data[: len(data) // 2]))
        assert cli.main(["verify", prefix, out]) in (1, 3)


TERABYTE = 1 << 40


@pytest.mark.long
def test_a_dry_run_plans_a_terabyte_that_no_disk_here_holds(store, tmp_path, capsys):
    """Sparse files: the index and the sizes are real, the values are not there."""
    rows, dim, shards = TERABYTE // 512 // 64 * 64, 128, 64
    of_shard = rows // shards
    pieces = tuple(
        Piece((n * of_shard, 0), (of_shard, dim), n, 0, of_shard * dim * 4, 0)
        for n in range(shards)
    )
    table = Tensor(DTYPES[1], (rows, dim), pieces, True)
    prefix = tmp_path / "big"
    with open(f"{prefix}.index", "wb") as file:
        write_index(file, shards, {"table": table})
    for n in range(shards):
        with open(f"{prefix}.data-{n:05d}-of-{shards:05d}", "wb") as file:
            file.truncate(of_shard * dim * 4)
    command = ["convert", str(prefix), OUT, "--tables", "table", "--partition-strategy", "div"]
    assert cli.main([*command, "--dry-run"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("schema: semisync.plan/1")
    assert f"reads {TERABYTE:,} bytes (files: 64), writes {TERABYTE:,} " in said.err
    assert "(files: about 16,384, parts: 16,384)" in said.err
    assert "needs 545,259,520 bytes and has" in said.err  # eight threads with a file of 65 MiB
    command[2] = str(tmp_path / "here")
    assert cli.main([*command, "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert f"{tmp_path} needs {TERABYTE:,} bytes" in said and "free, too little" in said
    assert cli.main(command) == 3
    assert "bytes free, but the conversion needs" in capsys.readouterr().err
    assert not (tmp_path / "here").exists()
