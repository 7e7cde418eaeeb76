"""Partitions of hash tables that lack something, and what an error leaves behind."""

import os
import threading
import tracemalloc

import numpy as np
import pytest
import torch

import migrate
from migrate.ids import merging, placing, runs
from migrate.manifest.id_modes import MODES
from migrate.targets.reading.torch_readers import read
from migrate.verification import verify
from semisync.common.errors import BadInput, SemisyncError
from tests.migrate.raw_tables import write_tfra
from tests.support.conversions import convert, look_up, make_plan, slots_of


def test_a_partition_without_ids_takes_no_versions_and_no_counts_away(checkpoints, tmp_path):
    source = checkpoints / "deeprec_moved"  # its third partition is empty
    with pytest.raises(BadInput, match="id 5 twice, .*part_0-keys.*part_1-keys"):
        convert(source, tmp_path / "out", "mch")
    migrate.convert(make_plan(source, "mch", duplicates="newest"), tmp_path / "out")
    assert look_up(tmp_path / "out", "user", [5, 7, 8]).tolist() == [
        [6.5] * 4,
        [7.5] * 4,
        [9.5] * 4,
    ]
    prefix = "ebc._managed_collision_collection._managed_collision_modules.user._mch_"
    found = {prefix + name: torch.empty(4).long() for name in ("counts", "last_access_iter")}
    read(str(tmp_path / "out"), found)
    assert [one.tolist() for one in found.values()] == [[5, 0, 1, 0], [4, 9, 9, 0]]


@pytest.mark.parametrize("mode", ["rows", "mch", "mpzch"])
def test_state_of_a_row_that_lost_is_not_given_to_the_one_that_won(checkpoints, tmp_path, mode):
    source = checkpoints / "deeprec_moved"
    manifest = migrate.convert(make_plan(source, mode, duplicates="newest"), tmp_path / "out")
    state = slots_of(tmp_path / "out", "user")["user.momentum1"][:, 0]
    assert sorted(state.tolist()) == [np.float32(0.1)] * (len(state) - 2) + [17, 18]
    assert any("1 ids have no momentum1" in note for note in manifest.notes)
    assert not any("belong to no id" in note for note in manifest.notes)
    assert verify(str(source), str(tmp_path / "out")).verified


def test_a_slot_without_any_rows_begins_anew(tmp_path):
    slots = [(f"Adam_{one}", [([], []), ([], [])]) for one in "mv"]  # files that tell no row size
    parts = [([4, -8], np.ones((2, 3))), ([6], np.ones((1, 3)))]
    source = write_tfra(tmp_path / "in", "t", parts, slots)
    manifest = convert(source, tmp_path / "out")
    found = slots_of(tmp_path / "out", "t")
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "exp_avg": [[0] * 3] * 4,
        "exp_avg_sq": [[0] * 3] * 4,
    }
    assert any("3 ids have no exp_avg " in note for note in manifest.notes)


def open_files(folder):
    links = (f"/proc/self/fd/{one}" for one in os.listdir("/proc/self/fd"))
    return [
        name
        for link in links
        if os.path.lexists(link)
        for name in [os.readlink(link)]
        if str(folder) in name
    ]


@pytest.mark.parametrize("what", ["twice", "reserved", "disk"])
def test_an_error_leaves_no_file_open_no_thread_and_nothing_on_the_disk(
    tmp_path, monkeypatch, what
):
    for module, name, value in (
        (runs, "RUN_BYTES", 160),
        (runs, "STEP", 2),
        (merging, "STEP", 2),
        (merging, "BLOCK_ROWS", 8),
    ):
        monkeypatch.setattr(module, name, value)
    ids = np.arange(-150, 150) if what == "reserved" else np.append(np.arange(299), 200)
    parts = [(ids[:99], np.ones((99, 2))), (ids[99:], np.ones((201, 2)))]
    source = write_tfra(tmp_path / "in", "t", parts, [("Adagrad_accumulator", parts)])
    plan = make_plan(source, "mpzch")
    if what == "disk":
        write, written = runs._write, []

        def full(*arguments):
            written.append(arguments)
            if len(written) == 20:
                raise OSError("No space left on device")
            write(*arguments)

        monkeypatch.setattr(runs, "_write", full)
    threads = threading.active_count()
    with pytest.raises(SemisyncError, match="No space|has id 200 twice|has the id -1") as raised:
        migrate.convert(plan, tmp_path / "out", workers=2)
    # The error, which holds on to all that ran, is still there.
    assert (open_files(tmp_path), threading.active_count()) == ([], threads), raised
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("last", [5, (1 << 20) - 2], ids=["behind the ids", "between two"])
def test_memory_does_not_grow_with_the_free_rows_of_a_target(tmp_path, last):
    rows = 1 << 20
    target = placing.Target(rows, 0, 1, *MODES["mpzch"][1:])
    with open(tmp_path / "map", "w+b") as file:
        tracemalloc.start()
        by_hash = placing.ByHash(target, [placing.Map(file, -1)], "t")
        homes = np.array([3, 3, last])
        by_hash.put(homes << 63 - 20, [np.array([7, 8, 9])])
        assert by_hash.end() == rows
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    found = np.fromfile(tmp_path / "map", np.int64)
    assert len(found) == rows and (found != -1).sum() == 3
    assert found[[3, 4, last]].tolist() == [7, 8, 9]
    assert peak < 2 * rows  # of 8 bytes each
