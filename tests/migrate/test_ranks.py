"""One conversion by several processes that share nothing but a directory."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import migrate
from migrate.conversion import job, ranks, said
from migrate.launcher import Rank, from_environment
from migrate.manifest.manifest import FILE
from migrate.stream.columns import FOLDER
from migrate.targets.work_directory import Unfinished
from semisync.common.errors import SemisyncError, UsageError
from semisync.storage.remote import Unreachable
from tests.support.conversions import contents, make_plan
from tests.support.require import environment

# Small chunks and parts, so that a small checkpoint has many; only rank 0 decides on them.
RANK_0 = """
import sys
from migrate.stream import regions
from semisync.cli import main
regions.CHUNK_BYTES, regions.PART_BYTES, regions.FILE_BYTES = 96, 200, 3000
sys.exit(main(sys.argv[1:]))
"""


def standing_still(module, name, call):
    """A program that blocks forever in a call of a function, numbered from 1."""
    package, _, module = module.rpartition(".")
    return f"""
import signal, sys
from {package} import {module}
from semisync.cli import main
original, seen = {module}.{name}, []
def stopping(*arguments):
    seen.append(1)
    if len(seen) == {call}:
        print("now", flush=True)
        signal.pause()
    return original(*arguments)
{module}.{name} = stopping
sys.exit(main(sys.argv[1:]))
"""


STOPPING = standing_still("migrate.stream.writing", "_write_part", call=3)
STANDING = standing_still("migrate.verification.shares", "compare_share", call=2)

FAILING = """
import sys
from migrate.stream import writing
from semisync.cli import main
from semisync.common.errors import BadInput
def failing(*arguments):
    raise BadInput("the disk is torn")
writing._write_part = failing
sys.exit(main(sys.argv[1:]))
"""

DIFFERING = """
import sys
from migrate.verification import shares
from semisync.cli import main
compare_share = shares.compare_share
def differing(*arguments):
    found = compare_share(*arguments)
    found.result.differs("row 7 is torn")
    return found
shares.compare_share = differing
sys.exit(main(sys.argv[1:]))
"""


GONE = FAILING.replace("BadInput", "Unreachable").replace(
    "from semisync.common.errors", "from semisync.storage.remote"
)


@pytest.fixture
def start(interpreters):
    """Starts `semisync convert` as a rank of several, or what `code` makes of it."""

    def popen(rank, count, *arguments, code=None):
        program = ["-c", code] if code else ["-m", "semisync"]
        return subprocess.Popen(
            [str(interpreters / "python"), *program, "convert", *map(str, arguments)],
            env=environment(RANK=str(rank), WORLD_SIZE=str(count), TORCHELASTIC_RUN_ID="one"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return popen


def ends(*processes):
    """Exit code, stdout and stderr of each."""
    found = [process.communicate(timeout=300) for process in processes]
    return [(process.returncode, *said) for process, said in zip(processes, found)]


@pytest.mark.long
def test_ranks_share_the_parts_and_a_killed_one_is_named_and_resumed(
    start, tf2_checkpoints, tmp_path, small_parts
):
    arguments = [tf2_checkpoints / "adagrad_ref", tmp_path / "out"]
    limited = [*arguments, "--deadline", "8"]  # in which the other one starts, too
    stopping = start(1, 2, *arguments, "--workers", "1", code=STOPPING)
    first = start(0, 2, *limited, code=RANK_0)
    assert stopping.stdout.readline() == "now\n", stopping.communicate()
    os.kill(stopping.pid, signal.SIGKILL)
    (code, _, said), _ = ends(first, stopping)
    assert code == 3
    assert "nothing was heard for 8 s of rank 1 of 2" in said and "--resume" in said
    work = tmp_path / ".out.partial"
    kept = len(job.finished(str(work)))
    assert 2 <= kept < len(job.read(str(work)).parts)

    three = [start(0, 3, *arguments, "--resume", code=RANK_0)]
    three += [start(rank, 3, *arguments, "--resume") for rank in (1, 2)]
    found = ends(*three)
    assert [code for code, _, _ in found] == [0, 0, 0], found
    assert [out.partition(" wrote ")[0] for _, out, _ in found[1:]] == [
        "rank 1 of 3",
        "rank 2 of 3",
    ]
    migrate.convert(make_plan(tf2_checkpoints / "adagrad_ref"), tmp_path / "alone")
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert not work.exists()


@pytest.mark.long
def test_ranks_share_the_comparison_and_a_killed_one_is_named_and_resumed(
    start, tf2_checkpoints, tmp_path, small_parts
):
    arguments = [tf2_checkpoints / "adagrad_ref", tmp_path / "out"]
    limited = [*arguments, "--deadline", "8"]
    standing = start(1, 2, *arguments, "--workers", "1", code=STANDING)
    first = start(0, 2, *limited, code=RANK_0)
    assert standing.stdout.readline() == "now\n", standing.communicate()
    os.kill(standing.pid, signal.SIGKILL)
    (code, _, told), _ = ends(first, standing)
    assert code == 3
    assert re.search("for 8 s of rank 1 of 2, which had [1-9][0-9]* parts to compare", told)
    two = [start(0, 2, *arguments, "--resume", code=RANK_0), start(1, 2, *arguments, "--resume")]
    found = ends(*two)
    assert [code for code, _, _ in found] == [0, 0], found
    assert "rank 1 of 2 wrote 0 parts" in found[1][1]
    migrate.convert(make_plan(arguments[0]), tmp_path / "alone")
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_what_another_rank_finds_different_is_told_by_rank_0(start, tf2_checkpoints, tmp_path):
    arguments = [tf2_checkpoints / "adagrad_ref", tmp_path / "out"]
    both = start(0, 2, *arguments, code=RANK_0), start(1, 2, *arguments, code=DIFFERING)
    (code, _, told), _ = ends(*both)
    assert code == 3
    assert "is not what" in told and "row 7 is torn; nothing was kept" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_torchrun_starts_the_ranks(tf2_checkpoints, tmp_path):
    prefix = tf2_checkpoints / "adagrad_ref"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["-m", "semisync", "convert", str(prefix), str(tmp_path / "out")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "rank 1 of 2 wrote 0 parts" in done.stdout
    migrate.convert(make_plan(prefix), tmp_path / "alone")
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


@pytest.mark.long
def test_what_another_rank_cannot_read_ends_all(start, tf2_checkpoints, tmp_path):
    arguments = [tf2_checkpoints / "adagrad_ref", tmp_path / "out"]
    found = ends(start(0, 2, *arguments, code=RANK_0), start(1, 2, *arguments, code=FAILING))
    assert [code for code, _, _ in found] == [3, 3]
    assert "rank 1 of 2: the disk is torn" in found[0][2]
    assert "the disk is torn" in found[1][2]
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_server_that_went_away_from_another_rank_leaves_the_work_to_be_resumed(
    start, tf2_checkpoints, tmp_path, small_parts
):
    arguments = [tf2_checkpoints / "adagrad_ref", tmp_path / "out"]
    found = ends(start(0, 2, *arguments, code=RANK_0), start(1, 2, *arguments, code=GONE))
    assert [code for code, _, _ in found] == [3, 3]
    expected = "rank 1 of 2: the disk is torn; what was done is kept, go on with --resume"
    assert expected in found[0][2]
    work = str(tmp_path / ".out.partial")
    assert len(job.finished(work)) >= len(job.read(work).parts) // 2
    (last,) = ends(start(0, 1, *arguments, "--resume", code=RANK_0))
    assert last[0] == 0, last
    migrate.convert(make_plan(arguments[0]), tmp_path / "alone")
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def test_ranks_that_have_written_their_share_hear_that_rank_0_has_given_up(tmp_path, monkeypatch):
    out, two = str(tmp_path / "out"), Rank(0, 2)
    work = ranks.partial_path(out)
    os.makedirs(work)

    def write(_):
        raise Unreachable("the server is gone")
        yield

    with pytest.raises(Unreachable), ranks.led(work):
        list(ranks.written(work, two, True, [0, 1], write))
    given_up = said.read(work)
    assert given_up.over == "given up"
    said.write(work, given_up._replace(over=""))
    joined = []

    def join(*arguments):
        joined.append(arguments)
        said.write(work, given_up)
        return 1

    monkeypatch.setattr(ranks, "_join", join)
    with pytest.raises(SemisyncError, match="rank 0 has given up"):
        ranks.assist(out, two._replace(number=1))
    assert len(joined) == 1
    with pytest.raises(SemisyncError, match="of rank 0, which begins it"):  # a run of yesterday
        ranks.assist(out, Rank(1, 2, 0))


@pytest.mark.parametrize("made", [False, True])
def test_an_empty_place_is_no_conversion_when_rank_0_has_removed_its_work(
    tmp_path, monkeypatch, made
):
    out = tmp_path / "out"
    work = pathlib.Path(ranks.partial_path(str(out)))
    work.mkdir()
    if made:
        out.mkdir()
    said.write(str(work), said.Announcement("1", 2, [0, 1]))

    def join(*_):
        shutil.rmtree(work)
        return 1

    monkeypatch.setattr(ranks, "_join", join)
    with pytest.raises(SemisyncError, match="rank 0 has given up"):
        ranks.assist(str(out), Rank(1, 2))


def test_a_rank_is_done_where_the_place_of_the_whole_work_was_taken(
    tf2_checkpoints, tmp_path, monkeypatch
):
    plan, out = make_plan(tf2_checkpoints / "sgd"), tmp_path / "out"
    work = pathlib.Path(ranks.partial_path(str(out)))
    work.mkdir()
    said.write(str(work), said.Announcement("1", 2, [0, 1]))

    def take(*_):
        out.mkdir(exist_ok=True)
        (out / "theirs").touch()

    def join(*_):
        with pytest.raises(Unfinished, match="the work is whole in"):
            migrate.convert(plan, out, resume=True, progress=take)
        return 1

    monkeypatch.setattr(ranks, "_join", join)
    assert ranks.assist(str(out), Rank(1, 2, 5)) == 1


def test_of_a_failed_conversion_the_manifest_goes_first(tf2_checkpoints, tmp_path, monkeypatch):
    """Without a job beside it, it would tell the other ranks that the work is whole."""
    remove, removed = os.remove, []

    def fail(*_, **__):
        monkeypatch.setattr(os, "remove", lambda path: (removed.append(path), remove(path)))
        raise SemisyncError("the disk is torn")

    monkeypatch.setattr("migrate.verification.compare", fail)
    with pytest.raises(SemisyncError, match="the disk is torn"):
        migrate.convert(make_plan(tf2_checkpoints / "sgd"), tmp_path / "out")
    assert os.path.basename(removed[0]) == FILE


def test_a_rank_does_not_wait_for_ever_and_ranks_must_agree(tf2_checkpoints, tmp_path):
    out = str(tmp_path / "out")
    with pytest.raises(SemisyncError, match="nothing was heard for 0 s of rank 0, which begins it"):
        ranks.assist(out, Rank(1, 2, 0))
    plan = make_plan(tf2_checkpoints / "sgd")
    with pytest.raises(SemisyncError, match="rank 1 of 2"):
        migrate.convert(plan, out, rank=Rank(0, 2, 0))
    with pytest.raises(UsageError, match="WORLD_SIZE is 3 here, and 2 for rank 0"):
        ranks.assist(out, Rank(1, 3, 0))
    migrate.convert(plan, out, resume=True)  # one process goes on with what several had begun
    assert not [name for name in os.listdir(out) if name.startswith(("j", "r"))]


RANKS = {"RANK": "1", "WORLD_SIZE": "2"}
MASTER = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({**RANKS, **MASTER}, (1, 2)),
        ({**RANKS, "TORCHELASTIC_RUN_ID": "none"}, (1, 2)),
        ({}, (0, 1)),
        ({"WORLD_SIZE": "2"}, (0, 1)),
        ({"WORLD_SIZE": "2", **MASTER}, (0, 1)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, (0, 1)),
        (RANKS, "no launcher has set TORCHELASTIC_RUN_ID or MASTER_ADDR and MASTER_PORT; unset"),
        ({**RANKS, "MASTER_ADDR": "localhost"}, "no launcher has set"),
        ({**RANKS, "RANK": "2", **MASTER}, "expected 0 <= RANK < WORLD_SIZE"),
        ({"RANK": "0", "WORLD": "2"}, "RANK is '0', and there is no WORLD_SIZE"),
        ({"PET_NNODES": "1:1"}, (0, 1)),
        ({"PET_NNODES": "2"}, "PET_NNODES is '2', but torchrun did not start this process"),
        ({"PET_NNODES": "1:4"}, "run `torchrun -m semisync` instead of `semisync`"),
        ({**RANKS, **MASTER, "PET_NNODES": "2"}, (1, 2)),
    ],
)
def test_a_process_is_one_of_several_only_under_a_launcher(monkeypatch, variables, expected):
    for name in (*RANKS, *MASTER, "TORCHELASTIC_RUN_ID", "PET_NNODES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if isinstance(expected, tuple):
        assert from_environment()[:2] == expected
    else:
        with pytest.raises(UsageError, match=expected):
            from_environment()


def test_a_rank_waits_while_rank_0_sorts_a_hash_table(tmp_path, monkeypatch):
    class Clock:
        now = 0

        def sleep(self, _):
            self.now += 400

        def monotonic(self):
            return self.now

    monkeypatch.setattr(said, "time", Clock())
    (tmp_path / FOLDER).mkdir()
    watch = said.Watch(str(tmp_path), deadline=600)
    for _ in range(5):
        with open(tmp_path / FOLDER / "0.values", "ab") as staged:
            staged.write(b"more")
        assert not watch.timed_out()
    assert [watch.timed_out(), watch.timed_out()] == [False, True]
