"""A file system that is really full: what was done is kept, and --resume goes on with it."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import migrate
from migrate.targets import work_directory
from semisync.common.errors import UsageError
from tests.migrate.raw_tables import write_hugectr
from tests.support.bundles import write
from tests.support.conversions import interrupt, make_plan
from tests.support.programs import output_of

OWN = ["unshare", "--map-root-user", "--mount"]  # mounts of its own, which go when it ends


@pytest.fixture
def own_mounts():
    if (
        not shutil.which("unshare")
        or subprocess.run([*OWN, "true"], capture_output=True).returncode
    ):
        pytest.skip("this system lets nobody but root mount a file system")


@pytest.mark.parametrize(
    ("hashed", "sizes"),
    [
        (False, [0, 700_000, 1_285_000]),
        # while the rows are sorted, in the map of 160 kB, the table, and what stands behind it
        (True, [0, 700_000, 1_500_000, 1_700_000, 2_200_000, 3_200_000]),
    ],
)
@pytest.mark.few(1)
def test_a_full_disk_is_named_and_resumed_when_there_is_room(tmp_path, own_mounts, hashed, sizes):
    source, folder = tmp_path / "source", tmp_path / "small"
    folder.mkdir()
    rows = np.random.default_rng(0).random((20_000, 16), dtype=np.float32)
    if hashed:
        source.mkdir()
        write_hugectr(source, np.arange(len(rows))[::-1], rows)
    else:
        write(source, {"rows": rows})
    command = [*OWN, sys.executable, "-m", "tests.migrate.fill_disk", source, folder]
    said = [json.loads(line) for line in output_of(*command, *sizes).splitlines()]
    expected = (
        f"Unfinished: cannot write {folder / 'out'}: No space left on device; what was done is "
        f"kept in {folder / '.out.partial'}: make room and go on with --resume, or delete it"
    )
    assert said == [[expected, None]] * len(sizes)


def test_too_little_room_does_not_cost_what_an_interruption_left(
    tf2_checkpoints, tmp_path, monkeypatch, small_parts
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    interrupt(plan, tmp_path / "out", 10)
    work = tmp_path / ".out.partial"
    before = (work / "journal").read_bytes()
    monkeypatch.setattr(work_directory, "_written", lambda _: 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, 0))
    with pytest.raises(UsageError, match="has 0 bytes free, but the conversion needs"):
        migrate.convert(plan, tmp_path / "out", resume=True)
    assert (work / "journal").read_bytes() == before
    with pytest.raises(UsageError, match="has 0 bytes free"):
        migrate.convert(plan, tmp_path / "other")
    assert list(tmp_path.iterdir()) == [work]


def test_the_staged_rows_of_a_hash_table_are_room_that_is_taken_already(tmp_path):
    before = work_directory._written(str(tmp_path))
    (tmp_path / "ids").mkdir()
    with open(tmp_path / "ids" / "0.values", "wb") as file:
        file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    assert work_directory._written(str(tmp_path)) - before >= 1 << 20
