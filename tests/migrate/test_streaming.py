"""Streaming: any number of workers write the same bytes; an interruption loses nothing."""

import errno
import os

import numpy as np
import pytest

import migrate
from migrate.conversion import job
from migrate.targets.work_directory import Unfinished, work_directory
from migrate.verification import verify
from semisync.common.errors import BadInput, UsageError
from semisync.common.files import flush
from semisync.encoding.crc32c import combine, masked_value
from tests.support.conversions import contents, interrupt, load_all, make_plan
from tests.support.programs import killed


@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_workers_write_the_same_bytes_as_one_process(
    tf2_checkpoints, tmp_path, small_parts, target
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    alone = migrate.convert(plan, tmp_path / "alone", target=target)
    done = []
    together = migrate.convert(
        plan, tmp_path / "together", target=target, workers=2, progress=lambda *at: done.append(at)
    )
    assert contents(tmp_path / "alone") == contents(tmp_path / "together")
    assert together == alone
    assert len(alone.tensors[0].pieces) > 3
    assert done[-1][0] == done[-1][1]


def test_an_error_in_a_worker_is_the_callers(tf2_checkpoints, tmp_path, small_parts):
    for file in tf2_checkpoints.glob("adagrad_ref.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    plan = make_plan(tmp_path / "adagrad_ref")
    data = tmp_path / "adagrad_ref.data-00001-of-00003"
    data.write_bytes(data.read_bytes()[:-40])
    with pytest.raises(BadInput, match="the file is truncated"):
        migrate.convert(plan, tmp_path / "out", workers=2)
    assert not list(tmp_path.glob("*out*"))


def test_damage_is_found_though_no_reader_sees_a_whole_piece(
    corrupt_checkpoint, tmp_path, small_parts
):
    with pytest.raises(BadInput, match="has crc32c"):
        migrate.convert(make_plan(corrupt_checkpoint), tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("lengths", [(0, 5), (5, 0), (100, 33), (1, 70000), (70000, 1)])
def test_the_crc_of_two_ranges_is_made_from_the_crc_of_each(lengths):
    import google_crc32c

    a, b = (bytes(np.random.RandomState(seed).bytes(n)) for seed, n in enumerate(lengths))
    assert combine(google_crc32c.value(a), google_crc32c.value(b), len(b)) == google_crc32c.value(
        a + b
    )
    assert masked_value(a) != masked_value(a + b) or not b


@pytest.mark.long
@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_a_resumed_conversion_writes_only_what_is_missing(
    tf2_checkpoints, tmp_path, small_parts, target
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    parts = []
    whole = migrate.convert(
        plan, tmp_path / "whole", target=target, progress=lambda *at: parts.append(at)
    )
    interrupt(plan, tmp_path / "out", 10, target=target)
    assert not (tmp_path / "out").exists()
    work = tmp_path / ".out.partial"
    with open(work / "journal", "ab") as journal:
        journal.write(b'{"part": 3, "ru')  # a line that kill -9 cut short
    before = set(job.finished(str(work)))
    assert 10 <= len(before) < len(parts)
    written = []
    resumed = migrate.convert(
        plan, tmp_path / "out", target=target, resume=True, progress=lambda *at: written.append(at)
    )
    assert resumed == whole
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert len(written) == len(parts) - len(before)
    assert not work.exists()


@pytest.mark.long
def test_an_interrupted_conversion_is_neither_lost_nor_mixed_with_another(
    tf2_checkpoints, tmp_path, small_parts
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    interrupt(plan, tmp_path / "out", 4)
    with pytest.raises(UsageError, match="go on with it with --resume, or delete it"):
        migrate.convert(plan, tmp_path / "out")
    for other, options in [
        (make_plan(tf2_checkpoints / "sgd"), {}),
        (make_plan(tf2_checkpoints / "adagrad_ref", module="other"), {}),
        (plan, {"target": "safetensors"}),
    ]:
        with pytest.raises(UsageError, match="was begun with another plan"):
            migrate.convert(other, tmp_path / "out", resume=True, **options)
    assert len(job.finished(str(tmp_path / ".out.partial"))) >= 4
    journal = tmp_path / ".out.partial" / "journal"
    lines = journal.read_bytes()
    journal.write_bytes(b"{}\n" + lines)
    with pytest.raises(UsageError, match="journal is damaged; delete"):
        migrate.convert(plan, tmp_path / "out", resume=True)
    journal.write_bytes(lines)
    migrate.convert(plan, tmp_path / "out", resume=True, workers=2)
    assert load_all(tmp_path / "out", tmp_path / "all.pt")["dense"]["global_step"].item() == 3


def test_two_processes_do_not_work_in_one_directory(tf2_checkpoints, tmp_path):
    plan = make_plan(tf2_checkpoints / "sgd")
    with work_directory(str(tmp_path / "out"), 0), pytest.raises(UsageError, match="another proc"):
        migrate.convert(plan, tmp_path / "out", resume=True)
    assert (tmp_path / "out").is_dir()


def test_nobody_else_works_in_a_directory_until_it_is_in_place(
    tf2_checkpoints, tmp_path, monkeypatch
):
    plan, seen = make_plan(tf2_checkpoints / "sgd"), []

    def flush_and_convert(path):
        if not (tmp_path / "out").exists():
            with pytest.raises(UsageError, match="another process is at work in"):
                migrate.convert(plan, tmp_path / "out", resume=True)
            seen.append(path)
        flush(path)

    monkeypatch.setattr("migrate.targets.work_directory.flush", flush_and_convert)
    migrate.convert(plan, tmp_path / "out")
    assert seen and [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "lock" not in contents(tmp_path / "out")


def test_while_a_failed_conversion_is_removed_nobody_begins_in_it(
    tf2_checkpoints, tmp_path, monkeypatch
):
    plan, remove, seen = make_plan(tf2_checkpoints / "sgd"), os.remove, []

    def remove_and_convert(path):
        if not seen:
            seen.append(path)
            with pytest.raises(UsageError, match="another process is at work in"):
                migrate.convert(plan, tmp_path / "out", resume=True)
        remove(path)

    def fail(*_):
        monkeypatch.setattr(os, "remove", remove_and_convert)
        raise ValueError

    with pytest.raises(ValueError):
        migrate.convert(plan, tmp_path / "out", progress=fail)
    assert seen and not list(tmp_path.iterdir())


def test_a_place_that_was_taken_meanwhile_loses_no_work(tf2_checkpoints, tmp_path):
    plan, out = make_plan(tf2_checkpoints / "sgd"), tmp_path / "out"

    def take(*_):
        out.mkdir(exist_ok=True)
        (out / "theirs").touch()

    with pytest.raises(Unfinished, match="not empty.* the work is whole in .*: move that to a new"):
        migrate.convert(plan, out, progress=take)
    assert [path.name for path in out.iterdir()] == ["theirs"]
    kept = (tmp_path / ".out.partial").rename(tmp_path / "new")
    assert verify(str(tf2_checkpoints / "sgd"), str(kept)).verified


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_what_is_in_its_place_but_not_synced_is_said_to_be_there(
    tf2_checkpoints, tmp_path, monkeypatch, code
):
    def fail_once_moved(path):
        if (tmp_path / "out").exists():
            raise OSError(code, "torn")
        flush(path)

    monkeypatch.setattr("migrate.targets.work_directory.flush", fail_once_moved)
    sentence = r"out is whole, but a power cut may lose it: torn; check the disk and run sync$"
    with pytest.raises(Unfinished, match=sentence):
        migrate.convert(make_plan(tf2_checkpoints / "sgd"), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert verify(str(tf2_checkpoints / "sgd"), str(tmp_path / "out")).verified


def test_a_lock_that_was_taken_away_meanwhile_is_none(tmp_path, monkeypatch):
    work = tmp_path / ".out.partial"
    monkeypatch.setattr(
        "migrate.targets.work_directory.fcntl.flock", lambda *_: (work / "lock").unlink()
    )
    with pytest.raises(UsageError, match="has just ended"), work_directory(
        str(tmp_path / "out"), 0
    ):
        raise AssertionError("two would work in one directory")


CONVERT = """
import signal, sys, migrate
from migrate.stream import regions
regions.CHUNK_BYTES, regions.PART_BYTES, regions.FILE_BYTES = 96, 200, 3000
with migrate.open_checkpoint(sys.argv[1]) as checkpoint:
    plan = migrate.plan(checkpoint)
seen = []
def stop(done, total):
    seen.append(done)
    if len(seen) == 5:
        print("now", flush=True)
        signal.pause()
migrate.convert(plan, sys.argv[2], workers=2, progress=stop)
"""


def test_a_conversion_that_kill_9_ended_resumes(tf2_checkpoints, tmp_path, small_parts):
    prefix = tf2_checkpoints / "adagrad_ref"
    killed(CONVERT, prefix, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    kept = job.finished(str(tmp_path / ".out.partial"))
    assert len(kept) >= 5
    written = []
    plan = make_plan(prefix)
    resumed = migrate.convert(
        plan, tmp_path / "out", resume=True, progress=lambda *at: written.append(at)
    )
    parts = []
    whole = migrate.convert(plan, tmp_path / "whole", progress=lambda *at: parts.append(at))
    assert resumed == whole
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert len(written) == len(parts) - len(kept)
