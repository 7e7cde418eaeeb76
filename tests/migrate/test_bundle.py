"""Reading checkpoints: every tensor as TensorFlow's own reader gives it, bit for bit."""

import pathlib
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import migrate
from migrate.checkpoint import shards
from semisync.common.errors import BadInput, UsageError
from semisync.encoding.dtypes import BFLOAT16
from tests.migrate.big_endian import swap_bytes
from tests.support.bundles import same, short, third_party
from tests.support.conversions import without_graph
from tests.support.require import shared

WRITTEN = ["adagrad_ref", "adagrad_resource", "adam_resource", "dtypes", "slices"]
WRITTEN += ["by_objects"]
SLICED = ["rows", "columns", "both"]


def assert_reads_as_tensorflow(prefix, tf_reader):
    reader = tf_reader(prefix)
    with migrate.open_checkpoint(prefix) as checkpoint:
        shapes = reader.get_variable_to_shape_map()
        assert {name: list(info.shape) for name, info in checkpoint.items()} == shapes
        for name in checkpoint:
            theirs = reader.get_tensor(name)
            assert same(checkpoint.read(name), np.asarray(theirs)), name


@pytest.mark.parametrize("name", WRITTEN)
def test_every_tensor_is_what_tensorflow_reads(checkpoints, name, tf_reader):
    assert_reads_as_tensorflow(checkpoints / name, tf_reader)


def restored(prefix, dtypes):
    """What RestoreV2 gives, which knows more data types than the CheckpointReader."""
    import tensorflow

    with tensorflow.Graph().as_default(), tensorflow.compat.v1.Session() as session:
        types = [tensorflow.as_dtype(dtype) for dtype in dtypes.values()]
        op = tensorflow.raw_ops.RestoreV2(
            prefix=str(prefix),
            tensor_names=list(dtypes),
            shape_and_slices=[""] * len(dtypes),
            dtypes=types,
        )
        return dict(zip(dtypes, session.run(op)))


def test_every_data_type_is_what_tensorflow_restores(checkpoints):
    with migrate.open_checkpoint(checkpoints / "every_dtype") as checkpoint:
        dtypes = {name: info.dtype for name, info in checkpoint.items()}
        assert len(set(dtypes.values())) >= 21
        for name, theirs in restored(checkpoint.prefix, dtypes).items():
            assert same(checkpoint.read(name), theirs), name


@pytest.mark.parametrize("name", ["every_dtype", "slices"])
def test_a_checkpoint_of_a_big_endian_machine_reads_as_in_tensorflow(
    tf1_checkpoints, tmp_path, tf_reader, name
):
    swap_bytes(tf1_checkpoints / name, tmp_path / name)
    stored = [next(one.glob(f"{name}.data*")) for one in (tf1_checkpoints, tmp_path)]
    assert stored[0].read_bytes() != stored[1].read_bytes()
    assert_reads_as_tensorflow(tmp_path / name, tf_reader)


def test_bits_of_types_that_numpy_lacks_are_not_taken_for_numbers(tf2_checkpoints):
    with migrate.open_checkpoint(tf2_checkpoints / "every_dtype") as checkpoint:
        assert checkpoint.read("bfloat16").dtype == BFLOAT16
        for name in ("bfloat16", "float8_e5m2", "int4"):
            with pytest.raises(TypeError):
                checkpoint.read(name) + 1


def test_an_object_graph_names_variables_and_slots(checkpoints):
    with migrate.open_checkpoint(checkpoints / "by_objects") as checkpoint:
        graph = checkpoint.objects()
        value = "embedding/.ATTRIBUTES/VARIABLE_VALUE"
        assert graph.full_names[value] == "deep/user"
        slots = {slot: key for key, slot in graph.slots.items()}
        assert set(slots) == {(value, "m"), (value, "v")}
        assert all(checkpoint[key].shape == (5, 3) for key in slots.values())
        assert {checkpoint[key].kind for key in slots.values()} == {"slot"}
        assert checkpoint[value].kind == "variable"
    with migrate.open_checkpoint(checkpoints / "dtypes") as checkpoint:
        assert checkpoint.objects() == ({}, {})


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(0, 100000), count=st.integers(0, 3000))
def test_a_range_of_strings_is_that_range_of_the_whole(tf2_checkpoints, first, count):
    with migrate.open_checkpoint(tf2_checkpoints / "long_strings") as checkpoint:
        found = checkpoint.read("strings", rows=slice(first, first + count))
    expected = range(first, min(first + count, 100000))
    assert found.tolist() == [b"%d" % n * (200 if n % 1000 == 0 else 1) for n in expected]


def test_strings_come_in_chunks_too(tf2_checkpoints):
    with migrate.open_checkpoint(tf2_checkpoints / "long_strings") as checkpoint:
        assert len(checkpoint["strings"].slices) == 2
        chunks = np.concatenate([values for _, values in checkpoint.chunks("strings", 7001)])
        assert chunks.tolist() == checkpoint.read("strings").tolist()


def test_an_index_of_several_blocks_is_read_to_its_end(checkpoints):
    with migrate.open_checkpoint(checkpoints / "many") as checkpoint:
        assert len(checkpoint) == 9000
        last = checkpoint.read("layer_08999/some/long/scope/weights")
        assert last.tolist() == [9.0] * 3


@pytest.mark.parametrize("prefix", third_party() or [None], ids=short)
def test_third_party_checkpoints_read_as_in_tensorflow(prefix, tf_reader):
    if prefix is None:
        shared("models")
    if not list(pathlib.Path(prefix).parent.glob(pathlib.Path(prefix).name + ".data-*")):
        with migrate.open_checkpoint(prefix) as checkpoint:
            shapes = tf_reader(prefix).get_variable_to_shape_map()
            assert {name: list(info.shape) for name, info in checkpoint.items()} == shapes
            with pytest.raises(BadInput, match="cannot be opened"):
                checkpoint.read(next(iter(checkpoint)))
        return
    assert_reads_as_tensorflow(prefix, tf_reader)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(SLICED),
    first=st.integers(-200, 200) | st.none(),
    last=st.integers(-200, 200) | st.none(),
)
def test_a_range_of_rows_is_that_range_of_the_whole(tf2_checkpoints, name, first, last):
    with migrate.open_checkpoint(tf2_checkpoints / "slices") as checkpoint:
        rows = slice(first, last)
        whole = np.arange(170 * 70, dtype=np.float32).reshape(170, 70)
        assert np.array_equal(checkpoint.read(name, rows=rows), whole[rows])


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(SLICED), rows=st.integers(1, 200))
def test_chunks_put_together_are_the_whole(tf2_checkpoints, name, rows):
    with migrate.open_checkpoint(tf2_checkpoints / "slices") as checkpoint:
        chunks = list(checkpoint.chunks(name, rows))
        assert [first for first, _ in chunks] == list(range(0, 170, rows))
        whole = np.concatenate([values for _, values in chunks])
        assert np.array_equal(whole, np.arange(170 * 70).reshape(170, 70))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 40))
def test_interleaved_chunks_are_the_rows_in_order_of_the_ids(tf2_checkpoints, rows):
    expected = np.load(tf2_checkpoints / "adagrad_ref.npz")["user"]
    with migrate.open_checkpoint(tf2_checkpoints / "adagrad_ref") as checkpoint:
        chunks = [values for _, values in checkpoint.chunks("user", rows, interleave=True)]
        assert np.array_equal(np.concatenate(chunks), expected)
        assert not np.array_equal(checkpoint.read("user"), expected)


def test_a_range_of_rows_reads_only_the_bytes_of_these_rows(tf2_checkpoints, monkeypatch):
    read = []
    original = shards.Shards.read_into

    def counting(self, shard, offset, buffer, where):
        read.append(buffer.size)
        original(self, shard, offset, buffer, where)

    monkeypatch.setattr(shards.Shards, "read_into", counting)
    with migrate.open_checkpoint(tf2_checkpoints / "large") as checkpoint:
        assert checkpoint.read("large", rows=slice(297500, 297502)).shape == (2, 64)
    assert sum(read) == 2 * 64 * 4


def test_what_a_range_cannot_check_verify_does(tf2_checkpoints, tmp_path):
    prefix = without_graph(tf2_checkpoints, "slices", tmp_path)
    data = tmp_path / "slices.data-00000-of-00001"
    with migrate.open_checkpoint(prefix) as checkpoint:
        whole = checkpoint.read("rows")
        changed = bytearray(data.read_bytes())
        at = changed.index(whole[66].tobytes())  # a row of the slice of rows 64 to 99
        changed[at] ^= 1
        data.write_bytes(changed)
        assert np.array_equal(checkpoint.read("rows", rows=slice(70, 90)), whole[70:90])
        assert np.array_equal(checkpoint.read("rows", rows=slice(0, 64)), whole[:64])
        for call in (
            lambda: checkpoint.read("rows"),
            lambda: checkpoint.read("rows", rows=slice(60, 100)),
            lambda: checkpoint.verify("rows"),
            lambda: list(checkpoint.chunks("rows", 7)),
        ):
            with pytest.raises(BadInput, match="slice at \\[64, 0\\] has crc32c"):
                call()
        checkpoint.verify("columns")
    with migrate.open_checkpoint(prefix, checksums=False) as checkpoint:
        assert (checkpoint.read("rows") != whole).sum() == 1
        checkpoint.verify("rows")


def test_a_range_needs_only_the_data_file_of_its_rows(checkpoints, tmp_path):
    refused = 0
    for missing in checkpoints.glob("adagrad_ref.data-*"):
        for file in checkpoints.glob("adagrad_ref.*"):
            shutil.copy(file, tmp_path)
        (tmp_path / missing.name).unlink()
        with migrate.open_checkpoint(tmp_path / "adagrad_ref") as checkpoint:
            try:
                assert checkpoint.read("user", rows=slice(2, 3)).shape == (1, 8)
            except BadInput:
                refused += 1
    assert refused == 1


def test_uneven_partitions_cannot_be_interleaved(tf2_checkpoints):
    with migrate.open_checkpoint(tf2_checkpoints / "slices") as checkpoint, pytest.raises(
        BadInput, match=r"partitions have \[64, 36, 70\] rows"
    ):
        list(checkpoint.chunks("rows", 10, interleave=True))


def test_kinds_follow_from_names_and_shapes(tf2_checkpoints):
    with migrate.open_checkpoint(tf2_checkpoints / "adagrad_ref") as checkpoint:
        kinds = {name: info.kind for name, info in checkpoint.items()}
    assert kinds["user"] == kinds["dense/kernel"] == "variable"
    assert kinds["user/Adagrad"] == kinds["dense/kernel/Adagrad"] == "slot"
    assert kinds["global_step"] == "scalar"
    with migrate.open_checkpoint(tf2_checkpoints / "dtypes") as checkpoint:
        assert checkpoint["strings"].kind == "other"
        assert [len(checkpoint[name].slices) for name in ("float32", "scalar")] == [0, 0]


def test_what_stands_in_place_of_a_checkpoint_is_named(tf2_checkpoints, tmp_path):
    for prefix, sentence in [
        (tmp_path, "is a directory without a checkpoint; give a checkpoint's prefix"),
        (tf2_checkpoints / "sgd.index", r"give its prefix, .*sgd$"),
        (tf2_checkpoints / "sgd.data-00000-of-00003", r"give its prefix, .*sgd$"),
        (tmp_path / "nothing", "there is no checkpoint"),
        (tmp_path / "no" / "such" / "folder", "there is no checkpoint"),
    ]:
        with pytest.raises(BadInput, match=sentence):
            migrate.open_checkpoint(prefix)


def test_wrong_calls_are_refused(tf2_checkpoints):
    with migrate.open_checkpoint(tf2_checkpoints / "dtypes") as checkpoint:
        for call in (
            lambda: checkpoint.read("absent"),
            lambda: checkpoint.read("float32", rows=slice(0, 4, 2)),
            lambda: checkpoint.read("scalar", rows=slice(0, 1)),
            lambda: next(checkpoint.chunks("float32", 0)),
        ):
            with pytest.raises(UsageError):
                call()
