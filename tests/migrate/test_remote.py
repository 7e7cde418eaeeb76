"""Checkpoints behind a URL, with fsspec's file system in memory."""

import json

import fsspec
import numpy as np
import pytest

import migrate
from migrate.targets.work_directory import Unfinished
from semisync import cli
from semisync.common.errors import BadInput, MissingExtra
from semisync.storage import remote
from tests.support.conversions import contents, make_plan


@pytest.fixture
def in_memory(tf2_checkpoints):
    fs = fsspec.filesystem("memory")
    for file in tf2_checkpoints.iterdir():
        if file.name.startswith(("dtypes.", "slices.", "lookup_tables.", "deeprec.", "sgd.")):
            fs.pipe_file("/bucket/" + file.name, file.read_bytes())
    yield fs
    fs.rm("/bucket", recursive=True)


@pytest.mark.parametrize("name", ["dtypes", "slices"])
def test_a_url_reads_as_the_file_does(in_memory, tf2_checkpoints, name):
    with migrate.open_checkpoint(f"memory://bucket/{name}") as there, migrate.open_checkpoint(
        tf2_checkpoints / name
    ) as here:
        assert dict(there) == dict(here)
        for tensor in here:
            assert there.read(tensor).tolist() == here.read(tensor).tolist()
            there.verify(tensor)


def test_a_range_of_rows_asks_for_its_bytes_alone(in_memory, monkeypatch):
    asked = []
    original = type(in_memory).cat_file

    def counting(self, path, start=None, end=None, **more):
        asked.append(end - start)
        return original(self, path, start=start, end=end, **more)

    with migrate.open_checkpoint("memory://bucket/slices") as checkpoint:
        monkeypatch.setattr(type(in_memory), "cat_file", counting)
        rows = checkpoint.read("rows", rows=slice(60, 68))
    assert np.array_equal(rows, np.arange(60 * 70, 68 * 70).reshape(8, 70))
    assert asked == [4 * 70 * 4, 4 * 70 * 4]  # four rows in each of two slices


def test_small_reads_in_a_row_are_few_requests(in_memory, monkeypatch):
    in_memory.pipe_file("/bucket/file", bytes(1000))
    ranges = remote.Ranges("memory://bucket/file", 1000)
    requests = []
    fetch = remote.Ranges._fetch
    monkeypatch.setattr(
        remote.Ranges, "_fetch", lambda *args: requests.append(args[1:3]) or fetch(*args)
    )
    for start in range(0, 1000, 10):
        ranges.read_into(start, np.empty(10, np.uint8), "here")
    assert requests == [(0, 10), (10, 1000)]


def test_hash_tables_and_inspect_take_urls_too(in_memory, capsys):
    tables = migrate.open_hash_tables("memory://bucket/lookup_tables")
    assert len(tables["dense"].read().keys) == 5
    in_memory.pipe_file("/bucket/deeprec-user_part_0-ssd_record.index", b"")
    with pytest.raises(BadInput, match="SSD files"):
        migrate.open_hash_tables("memory://bucket/deeprec")
    assert cli.main(["inspect", "memory://bucket/dtypes"]) == 0
    assert "memory://bucket/dtypes.data-00000-of-00001: " in capsys.readouterr().out


def test_the_facts_of_a_conversion_behind_a_url_are_those_of_its_edited_model(in_memory):
    migrate.convert(make_plan("memory://bucket/sgd"), "memory://bucket/out")
    model = json.loads(in_memory.cat_file("/bucket/out/model.json"))
    for table in model["tables"]:
        table["pooling"] = "mean"
    in_memory.pipe_file("/bucket/out/model.json", json.dumps(model).encode())
    facts = migrate.read_facts("memory://bucket/out")
    assert facts.combiners and set(facts.combiners.values()) == {"mean"}


def test_what_cannot_be_reached_is_named(in_memory):
    with pytest.raises(BadInput, match="there is no checkpoint memory://bucket/absent"):
        migrate.open_checkpoint("memory://bucket/absent")
    with pytest.raises(BadInput, match="cannot be reached"):
        migrate.open_checkpoint("nonsense://bucket/x")
    with pytest.raises(MissingExtra, match="gcsfs"):
        migrate.open_checkpoint("gs://bucket/x")
    in_memory.rm_file("/bucket/slices.data-00000-of-00001")
    with migrate.open_checkpoint("memory://bucket/slices") as checkpoint, pytest.raises(
        BadInput, match="there is no such file"
    ):
        checkpoint.read("rows")


@pytest.fixture
def failing(in_memory, monkeypatch):
    """A list of one number: requests for data that are answered before the server is gone."""
    left = [10**9]
    original = type(in_memory).cat_file

    def cat_file(self, path, **more):
        left[0] -= ".data-" in path
        if left[0] < 0:
            raise ConnectionResetError("Connection reset by peer")
        return original(self, path, **more)

    monkeypatch.setattr(type(in_memory), "cat_file", cat_file)
    return left


def test_what_was_read_before_a_server_went_is_not_lost(failing, tmp_path, small_parts):
    plan = make_plan("memory://bucket/sgd")
    whole = migrate.convert(plan, tmp_path / "whole")
    parts = []
    failing[0] = 5
    with pytest.raises(Unfinished, match="Connection reset by peer; .* go on with --resume"):
        migrate.convert(plan, tmp_path / "out", workers=1)
    failing[0] = 10**9
    resumed = migrate.convert(
        plan, tmp_path / "out", resume=True, progress=lambda *_: parts.append(1)
    )
    assert resumed == whole
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert 0 < len(parts) < sum(len(one.pieces) for one in whole.tensors)


def test_a_server_that_is_gone_is_no_difference(failing, tmp_path, capsys, small_parts):
    migrate.convert(make_plan("memory://bucket/sgd"), tmp_path / "out")
    failing[0] = 3
    assert cli.main(["verify", "memory://bucket/sgd", str(tmp_path / "out")]) == 3
    assert "Connection reset by peer" in capsys.readouterr().err
