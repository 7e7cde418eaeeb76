"""What cannot go back is named, and what was there before stays."""

import fcntl
import os
import shutil
import sys

import numpy as np
import pytest

import migrate
from migrate.model.parameters import Parameter
from migrate.to_tensorflow import placing
from semisync import cli
from semisync.common.errors import BadInput, SemisyncError, UsageError
from semisync.common.files import flush
from tests.back.same import assert_same
from tests.back.test_round_trip import convert
from tests.migrate.test_full_disk import OWN, own_mounts  # noqa: F401  a fixture
from tests.support.bundles import write
from tests.support.programs import output_of


@pytest.fixture(scope="module")
def folder(tf2_checkpoints, tmp_path_factory):
    """Folder with copies of some checkpoints, and `out`, a conversion of adagrad_ref."""
    folder = tmp_path_factory.mktemp("refusals")
    for name in ("adagrad_ref", "adam_ref", "sgd"):
        for path in tf2_checkpoints.glob(f"{name}.*"):
            shutil.copy(path, folder)
    convert(folder / "adagrad_ref", folder / "out")
    return folder


@pytest.fixture
def copied(folder, tmp_path):
    shutil.copytree(folder / "out", tmp_path / "out")
    return tmp_path / "out"


def back(source, prefix, original):
    return migrate.write_checkpoint(source, prefix, original=original)


def refusal(error, *arguments, **options):
    with pytest.raises(error) as caught:
        migrate.write_checkpoint(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_another_checkpoint_as_the_original_is_refused(folder, tmp_path):
    out, prefix = folder / "out", tmp_path / "back"
    assert "has no tensor 'dense/kernel/Adagrad'" in refusal(
        BadInput, out, prefix, original=folder / "sgd"
    )
    assert os.listdir(tmp_path) == []
    assert "there is no checkpoint" in refusal(BadInput, out, prefix, original=folder / "absent")


def test_another_step_as_the_original_is_refused(folder, tmp_path):
    with migrate.open_checkpoint(folder / "adagrad_ref") as checkpoint:
        values = {name: checkpoint.read(name) for name in checkpoint}
    values["global_step"] = np.array(7, np.int64)
    later = write(tmp_path / "later", values)
    said = refusal(BadInput, folder / "out", tmp_path / "back", original=later)
    assert "has 'global_step' 7, but it was 3 in the checkpoint that became" in said


def test_without_an_original_what_it_must_give_is_named(tf2_checkpoints, tmp_path):
    for name, options, problem in (
        (
            "dtypes",
            {"tables": "", "partition_strategy": "div"},
            "'strings'; of the first: it was left",
        ),
        ("lookup_tables", {}, "it belongs to the hash table 'dense' (MutableDenseHashTable)"),
        ("adagrad_ref", {"static": [("user", "int8")]}, "its table is static int8"),
        ("adagrad_ref", {"cast": "bfloat16"}, "it was cast, and the manifest does not say from"),
    ):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        convert(tf2_checkpoints / name, tmp_path / "out", **options)
        assert problem in refusal(BadInput, tmp_path / "out", tmp_path / "back")
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_damage_on_either_side_is_named(folder, copied, corrupt_checkpoint, tmp_path):
    original = folder / "adagrad_ref"
    data = copied / "__0_0.distcp"
    damaged = bytearray(data.read_bytes())
    with migrate.open_checkpoint(original) as checkpoint:
        place = damaged.find(checkpoint.read("item").tobytes()[:32])
    damaged[place] ^= 1
    data.write_bytes(bytes(damaged))
    assert "SHA-256 differs" in refusal(BadInput, copied, tmp_path / "back", original=original)
    data.unlink()
    assert "__0_0.distcp" in refusal(BadInput, copied, tmp_path / "back", original=original)
    manifest = copied / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"rows": 31', '"rows": 30'))
    assert "not as it was written" in refusal(BadInput, copied, tmp_path / "back")
    manifest.unlink()
    assert "was saved by a training" in refusal(UsageError, copied, tmp_path / "back")
    static = tmp_path / "static"
    convert(original, static, static=[("item|user|city", "int8")])
    said = refusal(BadInput, static, tmp_path / "back", original=corrupt_checkpoint)
    assert "crc32c" in said and "is corrupt" in said
    assert not [name for name in os.listdir(tmp_path) if "back" in name]


def test_a_taken_place_is_left_alone_unless_it_may_be_overwritten(folder, tmp_path):
    original, prefix = folder / "adagrad_ref", tmp_path / "back"
    back(folder / "out", prefix, original)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said = refusal(UsageError, folder / "out", prefix, original=original)
    assert "already exists" in said and "--overwrite" in said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    migrate.write_checkpoint(folder / "out", prefix, overwrite=True)  # one data file, no MetaGraph
    names = ["back.data-00000-of-00001", "back.index"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert_same(original, prefix)
    said = refusal(UsageError, folder / "out", original, original=original, overwrite=True)
    assert "is the original itself" in said
    assert "is a directory" in refusal(UsageError, folder / "out", tmp_path, original=original)


def test_what_is_no_side_of_torch_is_refused(folder, tmp_path):
    import torch

    original = folder / "adagrad_ref"
    linear = torch.nn.Linear(2, 2)
    said = refusal(UsageError, linear, tmp_path / "back", original=original)
    assert "does not know its TensorFlow variables" in said
    assert "cannot be opened" in refusal(BadInput, tmp_path, tmp_path / "back", original=original)
    linear.tensorflow_nodes = {}
    said = refusal(UsageError, linear, tmp_path / "back")
    assert "give the checkpoint that it was made from" in said
    adam = torch.optim.Adam(linear.parameters())
    said = refusal(UsageError, linear, tmp_path / "back", folder / "sgd", optimizer=adam)
    assert "is a Adam, which does not know" in said


@pytest.mark.parametrize("kind", ["DTensor", "ShardedTensor"])
def test_a_module_whose_state_is_sharded_is_refused(tmp_path, kind):
    import torch
    from torch.distributed._shard import sharded_tensor
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import distribute_tensor

    module, values = torch.nn.Linear(2, 2), torch.ones(2, 2)
    module.tensorflow_nodes = {"w": Parameter("weight", "w", None, (2, 2), "float32", True)}
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        if kind == "DTensor":
            sharded = distribute_tensor(values, DeviceMesh("cpu", [0]))
        else:
            shard = sharded_tensor.Shard.from_tensor_and_offsets(values, [0, 0], 0)
            sharded = sharded_tensor.init_from_local_shards([shard], 2, 2)
        module.state_dict = lambda: {"weight": sharded}
        said = refusal(UsageError, module, tmp_path / "back")
    finally:
        torch.distributed.destroy_process_group()
    assert "is sharded, and this process has a part of 'w' alone" in said


def test_a_second_writer_is_refused_and_what_a_killed_one_left_is_removed(folder, tmp_path):
    original, prefix = folder / "adagrad_ref", tmp_path / "back"
    left = tmp_path / ".back.writing"
    left.mkdir()
    (left / "back.index").write_bytes(b"half")
    with open(left / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = refusal(UsageError, folder / "out", prefix, original=original)
        assert "another process is at work in" in said
    assert (left / "back.index").exists()
    back(folder / "out", prefix, original)
    assert_same(original, prefix)
    assert not left.exists()


def test_a_second_writer_is_refused_until_the_files_are_in_place(folder, tmp_path, monkeypatch):
    original, prefix, seen = folder / "adagrad_ref", tmp_path / "back", []
    back(folder / "out", prefix, original)

    def flush_and_write(path):
        said = refusal(UsageError, folder / "out", prefix, original=original, overwrite=True)
        assert "another process is at work in" in said
        seen.append(os.path.basename(path))
        flush(path)

    monkeypatch.setattr(placing, "flush", flush_and_write)
    migrate.write_checkpoint(folder / "out", prefix, original=original, overwrite=True)
    assert "back.index" in seen and tmp_path.name in seen
    assert_same(original, prefix)


def test_a_writer_that_ended_meanwhile_is_not_replaced(folder, tmp_path, monkeypatch):
    original, prefix, locked = folder / "adagrad_ref", tmp_path / "back", placing.locked

    def ends_before(*arguments):
        monkeypatch.setattr(placing, "locked", locked)
        back(folder / "out", prefix, original)
        return locked(*arguments)

    monkeypatch.setattr(placing, "locked", ends_before)
    assert "already exists" in refusal(UsageError, folder / "out", prefix, original=original)
    assert_same(original, prefix)


_FULL = """
import os, shutil, subprocess, sys
import migrate
from semisync.common.errors import SemisyncError
from migrate.to_tensorflow import placing

out, small, original = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
placing.check_room = lambda *_: None
free = shutil.disk_usage(small).free
with open(small + "/other", "wb") as file:
    file.write(bytes(free - 8192))
try:
    migrate.write_checkpoint(out, small + "/back", original)
except SemisyncError as error:
    print(error)
print(os.listdir(small))
"""


@pytest.mark.long
def test_a_full_disk_is_named_and_nothing_is_left(own_mounts, folder, tmp_path):  # noqa: F811
    convert(folder / "adam_ref", tmp_path / "out")
    small = tmp_path / "small"
    small.mkdir()
    command = [*OWN, sys.executable, "-W", "ignore", "-c", _FULL]
    printed = output_of(*command, tmp_path / "out", small, folder / "adam_ref")
    assert printed.splitlines() == [
        f"cannot write {small}/back: No space left on device",
        "['other']",
    ]


def test_a_place_that_takes_no_file_is_refused_before_the_work(folder):
    said = refusal(UsageError, folder / "out", "/proc/back", original=folder / "adagrad_ref")
    assert "cannot be written" in said
    assert "is a URL" in refusal(UsageError, folder / "out", "s3://bucket/back")


def run(capsys, *arguments):
    code = cli.main(["convert", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_says_what_it_wrote_and_what_it_copied(folder, tmp_path, capsys):
    original = folder / "adagrad_ref"
    static = tmp_path / "static"
    convert(original, static, static=[("user", "int8")])
    arguments = ["--to-tensorflow", static, tmp_path / "back", "--original", original]
    code, out, _ = run(capsys, *arguments, "--latest")
    assert (code, out.splitlines()) == (
        0,
        [
            f"wrote 11 tensors, 4,288 bytes, to {tmp_path}/back (3 data files)",
            f"  copied from {original}: user, user/Adagrad",
        ],
    )
    assert (tmp_path / "checkpoint").read_text().startswith('model_checkpoint_path: "back"\n')
    with migrate.open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.prefix == str(tmp_path / "back")
    code, _, err = run(capsys, *arguments)
    assert code == 3 and "already exists" in err
    for options, sentence in (
        ([*arguments, "--tables", "x"], "--tables does not go with --to-tensorflow"),
        ([*arguments[:2], tmp_path / "o", "--meta", "x"], "--meta) is for the checkpoint of a"),
        ([original, tmp_path / "o", "--original", "x"], "--original goes only with"),
    ):
        code, _, err = run(capsys, *options)
        assert (code, len(err.splitlines())) == (3, 1)
        assert sentence in err


def test_an_error_of_the_system_is_one_sentence(folder, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(placing, "flush", refuse)
    said = refusal(
        SemisyncError, folder / "out", tmp_path / "back", original=folder / "adagrad_ref"
    )
    assert said == f"cannot write {tmp_path}/back: Input/output error"
    assert os.listdir(tmp_path) == []
