"""Conversion: the bytes arrive, in order of the ids; nothing half-written; memory is bounded."""

import dataclasses
import hashlib
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.distributed.checkpoint import FileSystemReader

import migrate
from migrate.stream import regions, writing
from migrate.targets import dcp
from migrate.targets.reading import open_target, torch_readers
from semisync.common.errors import BadInput, SemisyncError, UsageError
from tests.support.bundles import short, third_party, write
from tests.support.conversions import load_all, make_plan
from tests.support.require import shared

FLAVOURS = ["adagrad_ref", "adagrad_resource", "adam_ref", "adam_resource"]
SLOTS = {
    "adagrad": {"accumulator": "{0}.momentum1"},
    "adam": {"m": "exp_avg", "v": "exp_avg_sq"},
}


@pytest.mark.parametrize("rows_of_bytes", [64, 1 << 25])
@pytest.mark.parametrize("name", FLAVOURS)
@pytest.mark.few(3)
def test_torch_reads_what_tensorflow_looks_up(
    checkpoints, tmp_path, monkeypatch, name, rows_of_bytes
):
    monkeypatch.setattr(regions, "CHUNK_BYTES", rows_of_bytes)
    migrate.convert(make_plan(checkpoints / name), tmp_path / "out")
    found = load_all(tmp_path / "out", tmp_path / "all.pt")
    expected = np.load(checkpoints / (name + ".npz"))
    for table in ("user", "item", "plain/city"):
        key = "ebc.embedding_bags.{}.weight".format(table.replace("/", "_"))
        assert np.array_equal(found[key].numpy(), expected[table])
        for slot, state in SLOTS[name.split("_")[0]].items():
            value = found["optim"]["state"][key][state.format(table.replace("/", "_"))]
            assert np.array_equal(value.numpy(), expected[f"{table}:{slot}"])
    assert np.array_equal(found["dense"]["first"].numpy(), expected["first"])
    assert np.array_equal(found["dense"]["dense/kernel"].numpy(), expected["dense/kernel"])
    assert found["dense"]["global_step"].item() == 3


def test_every_data_type_arrives_bit_for_bit(tf2_checkpoints, tmp_path):
    prefix = tf2_checkpoints / "dtypes"
    plan = make_plan(prefix)
    manifest = migrate.convert(plan, tmp_path / "out")
    found = load_all(tmp_path / "out", tmp_path / "all.pt")["dense"]
    with migrate.open_checkpoint(prefix) as checkpoint:
        for name in set(checkpoint) - {"strings"}:
            tensor = found[name]
            assert list(tensor.shape) == list(checkpoint[name].shape)
            raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            assert raw == checkpoint.read(name).tobytes()
    assert manifest.dropped == {"strings": "torch has no tensors of type string"}
    assert manifest.scalars == {}  # it counts nothing


THIRD_PARTY = [one for one in third_party() if os.path.exists(one + ".meta")]


@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_a_tensor_without_rows_is_read_back_as_one(tmp_path, target):
    source = write(tmp_path / "in", {"w": np.zeros((0, 3), np.float16)})
    migrate.convert(make_plan(source, tables=""), tmp_path / "out", target=target)
    found = open_target(str(tmp_path / "out"), target).rows("dense.w", 0, 0)
    assert (found.dtype, found.shape) == (torch.float16, (0, 3))


@pytest.mark.parametrize("prefix", THIRD_PARTY or [None], ids=short)
@pytest.mark.few(5)
def test_third_party_checkpoints_convert_bit_for_bit(prefix, tmp_path):
    if prefix is None:
        shared("models")
    if not os.path.exists(prefix + ".data-00000-of-00001") and "2shards" not in prefix:
        with pytest.raises(BadInput, match="cannot be opened"):
            migrate.convert(make_plan(prefix), tmp_path / "out")
        return
    manifest = migrate.convert(make_plan(prefix), tmp_path / "out")
    with migrate.open_checkpoint(prefix) as checkpoint:
        copied = [one for one in manifest.tensors if one.value is None]  # all but Adam's step
        for written in copied:
            raw = checkpoint.read(written.source).tobytes()
            assert [hashlib.sha256(raw).hexdigest()] == [one.sha256 for one in written.pieces]
        assert {one.source for one in manifest.tensors} == set(checkpoint)


def test_the_manifest_says_what_every_tensor_is(tf2_checkpoints, tmp_path):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    manifest = migrate.convert(plan, tmp_path / "out")
    data = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert data["schema"] == "semisync.manifest/2"
    assert data["scalars"] == {"global_step": 3}
    assert any("eps=0" in note for note in data["notes"])
    assert migrate.read_manifest(tmp_path / "out") == manifest
    expected = np.load(tf2_checkpoints / "adagrad_ref.npz")
    user = next(one for one in manifest.tensors if one.source == "user")
    assert [one.sha256 for one in user.pieces] == [
        hashlib.sha256(expected["user"].tobytes()).hexdigest()
    ]
    assert (user.role, user.shape, user.dtype) == ("table", [31, 8], "float32")


def test_chunks_are_as_small_as_promised(tf2_checkpoints, tmp_path, monkeypatch):
    monkeypatch.setattr(regions, "CHUNK_BYTES", 5 * 8 * 4)
    migrate.convert(make_plan(tf2_checkpoints / "sgd"), tmp_path / "out")
    metadata = FileSystemReader(tmp_path / "out").read_metadata()
    chunks = metadata.state_dict_metadata["ebc.embedding_bags.user.weight"].chunks
    assert [tuple(one.sizes) for one in chunks] == [(5, 8)] * 6 + [(1, 8)]


def test_nothing_of_the_memory_stands_around_the_values_of_a_dcp():
    """torch's id of a file would be of the crc32s, which are left out."""
    values = torch.arange(12.0).reshape(3, 4)
    head, tail = dcp._frame("float32", (3, 4))
    assert b"0" * 40 in tail
    assert torch.equal(torch.load(io.BytesIO(head + values.numpy().tobytes() + tail)), values)


def test_a_plan_that_does_not_fit_is_refused_before_anything_is_written(tf2_checkpoints, tmp_path):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    user = next(table for table in plan.tables if table.name == "user")
    others = [table for table in plan.tables if table is not user]
    for change, sentence in [
        ({"variable": "absent"}, "'absent', which"),
        ({"rows": 30}, r"float32 \[30, 8\]"),
        ({"dtype": "float64"}, r"float64 \[31, 8\]"),
        ({"partition_strategy": None}, "does not say how ids were dealt"),
        ({"partition_strategy": "rows"}, "expected 'div' or 'mod'"),
        ({"partitions": 4}, "in 4 partitions, found 3"),
        ({"name": "item"}, "would both become table 'item'"),
        ({"name": "a.b"}, "has no dot"),
        ({"slots": {"momentum1": "dense/kernel"}}, r"'dense/kernel' as float32 \[31, 8\]"),
        ({"slots": {"momentum1": "user"}}, "writes 'user' twice"),
    ]:
        edited = dataclasses.replace(plan, tables=[*others, dataclasses.replace(user, **change)])
        with pytest.raises(BadInput, match=sentence):
            migrate.convert(edited, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_is_already_there_stays_untouched(tf2_checkpoints, tmp_path):
    plan = make_plan(tf2_checkpoints / "sgd")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        with pytest.raises(UsageError, match="already exists"):
            migrate.convert(plan, tmp_path / name)
    assert (tmp_path / "full" / "mine").read_text() == (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    migrate.convert(plan, tmp_path / "empty")
    assert (tmp_path / "empty" / "manifest.json").exists()


def test_an_unknown_target_is_refused(tf2_checkpoints, tmp_path):
    with pytest.raises(UsageError, match="target 'onnx' is not supported"):
        migrate.convert(make_plan(tf2_checkpoints / "sgd"), tmp_path / "out", target="onnx")


@pytest.mark.parametrize("failure", [RuntimeError("boom"), OSError(5, "Input/output error")])
def test_a_failure_half_way_leaves_nothing(tf2_checkpoints, tmp_path, monkeypatch, failure):
    written = []
    original = writing._Files.write

    def failing(self, *args):
        if len(written) == 4:
            raise failure
        written.append(args)
        original(self, *args)

    monkeypatch.setattr(writing._Files, "write", failing)
    expected = SemisyncError if isinstance(failure, OSError) else RuntimeError
    with pytest.raises(expected):
        migrate.convert(make_plan(tf2_checkpoints / "sgd"), tmp_path / "out")
    assert len(written) == 4
    assert list(tmp_path.iterdir()) == []


def test_corrupt_data_ends_the_conversion(corrupt_checkpoint, tmp_path):
    with pytest.raises(BadInput, match="has crc32c"):
        migrate.convert(make_plan(corrupt_checkpoint), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# The peak is read from /proc, for getrusage's ru_maxrss starts from the parent's at the fork.
LARGE = """
import sys, torch, torch.distributed.checkpoint, migrate
from migrate import verification
from migrate.targets import dcp
def peak():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
with migrate.open_checkpoint(sys.argv[1]) as checkpoint:
    plan = migrate.plan(checkpoint, tables="large", partition_strategy="mod")
before = peak()
migrate.convert(plan, sys.argv[2], workers=1)
print(peak() - before)
"""


@pytest.mark.long
def test_memory_stays_small_whatever_the_size_of_a_table(tf2_checkpoints, tmp_path):
    command = [sys.executable, "-c", LARGE, str(tf2_checkpoints / "large"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert 10 < float(done.stdout) < 250  # MiB; the table has 290
    table = torch.zeros(1190001, 64)
    torch_readers.read(tmp_path / "out", {"ebc.embedding_bags.large.weight": table})
    assert torch.equal(table[:, 0], torch.arange(1190001, dtype=torch.float32))
    assert torch.equal(table[:, 0], table[:, 63])
