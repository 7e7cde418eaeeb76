"""Checkpoints of the format V1, and SavedModels."""

import os
import pathlib
import shutil

import numpy as np
import pytest

import migrate
from semisync.common.errors import BadInput
from tests.migrate.table_writer import varint, write_table
from tests.support.bundles import same
from tests.support.require import shared


def assert_reads_as_tensorflow(prefix, tf_reader):
    reader = tf_reader(f"{prefix}-?????-of-?????")
    with migrate.open_checkpoint(prefix) as checkpoint:
        shapes = {name: list(info.shape) for name, info in checkpoint.items()}
        assert shapes == reader.get_variable_to_shape_map()
        for name in checkpoint:
            assert same(checkpoint.read(name), np.asarray(reader.get_tensor(name))), name


@pytest.mark.parametrize("name", ["dtypes", "slices"])
def test_v1_holds_what_the_same_session_saved_as_v2(checkpoints, name):
    with migrate.open_checkpoint(checkpoints / name) as v2, migrate.open_checkpoint(
        checkpoints / (name + "_v1")
    ) as v1:
        assert set(v2) - set(v1) <= {"bfloat16"}
        assert len(v1) > 2
        for tensor in v1:
            assert v1[tensor][:4] == v2[tensor][:4]
            assert same(v1.read(tensor), v2.read(tensor)), tensor
            if v1[tensor].shape:
                rows = slice(1, 3)
                assert same(v1.read(tensor, rows), v2.read(tensor, rows)), tensor
            v1.verify(tensor)


def test_a_third_party_v1_checkpoint_reads_as_in_tensorflow(tf_reader):
    folder = shared("models", "tf_session_bundle_v1_v2", "half_plus_two_v1", "00000123")
    assert_reads_as_tensorflow(folder / "export", tf_reader)
    with migrate.open_checkpoint(folder / "export-00000-of-00001") as checkpoint:
        assert checkpoint.read("a") == np.float32(0.5)


def test_of_many_tables_a_few_are_open(tmp_path):
    import tensorflow as tf

    prefix = str(tmp_path / "many")
    for number in range(70):
        path = f"{prefix}-{number:05d}-of-00070"
        tf.raw_ops.SaveSlices(
            filename=path, tensor_names=[f"v{number:02d}"], shapes_and_slices=[""], data=[[number]]
        )
    with migrate.open_checkpoint(prefix) as checkpoint:
        for _ in range(2):
            found = [checkpoint.read(name).tolist() for name in checkpoint]
            assert found == [[number] for number in range(70)]
        paths = [os.path.realpath(path) for path in pathlib.Path("/proc/self/fd").iterdir()]
        assert len([path for path in paths if path.startswith(prefix)]) == 64


def test_a_v1_checkpoint_without_one_of_its_tables_is_refused(checkpoints, tmp_path):
    shutil.copy(checkpoints / "slices_v1-00000-of-00002", tmp_path)
    with pytest.raises(BadInput, match="lacks its part slices_v1-00001-of-00002"):
        migrate.open_checkpoint(tmp_path / "slices_v1")


def test_an_impossible_shape_costs_no_memory(tmp_path):
    def field(number, data):
        return bytes([number << 3 | 2]) + varint(len(data)) + data

    shape = field(2, field(2, b"\x08" + varint(1 << 40)))
    meta = field(1, b"v") + shape + b"\x18\x01" + field(4, field(1, b""))
    write_table(tmp_path / "x", [(b"", field(1, field(1, meta)))])
    with migrate.open_checkpoint(tmp_path / "x") as checkpoint:
        assert checkpoint["v"].shape == (1 << 40,)
        for call in (lambda: checkpoint.read("v"), lambda: next(checkpoint.chunks("v", 1 << 40))):
            with pytest.raises(BadInput, match="1099511627776 values"):
                call()


def test_v1_chunks_are_the_whole(checkpoints):
    with migrate.open_checkpoint(checkpoints / "slices_v1") as checkpoint:
        assert len(checkpoint.shard_paths()) == 2
        for name in ("rows", "columns", "both"):
            chunks = [values for _, values in checkpoint.chunks(name, 33)]
            assert np.array_equal(np.concatenate(chunks), checkpoint.read(name))


def test_the_directory_of_a_saved_model_gives_its_variables(tf2_checkpoints, tmp_path):
    (tmp_path / "variables").mkdir()
    for file in pathlib.Path(tf2_checkpoints).glob("dtypes.*"):
        shutil.copy(file, tmp_path / "variables" / file.name.replace("dtypes", "variables"))
    with migrate.open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.read("scalar") == np.float32(2.5)
    entry = shared("models", "monolith_hash_tables", "saved_model", "entry", "1622716114")
    assert len(migrate.open_checkpoint(entry)) == 1
