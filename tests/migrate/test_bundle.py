"""Reading checkpoints: every tensor as TensorFlow's own reader gives it, bit for bit."""

import pathlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import migrate
from migrate.sources import bundle
from migrate.sources.dtypes import BFLOAT16
from semisync.errors import BadInput, UsageError
from tests.support.require import SHARED, shared

WRITTEN = ["adagrad_ref", "adagrad_resource", "adam_resource", "dtypes", "slices"]
SLICED = ["rows", "columns", "both"]


def third_party():
    found = sorted((SHARED / "models").rglob("*.index"))
    return [str(path)[: -len(".index")] for path in found]


def short(prefix):
    """A readable name for a test's parameter."""
    return prefix and prefix.split("models/")[1]


def same(ours, theirs):
    if ours.dtype == BFLOAT16:
        return ours.tobytes() == theirs.tobytes() and ours.shape == theirs.shape
    theirs = np.asarray(theirs)
    if ours.dtype == object:
        return ours.tolist() == theirs.tolist()
    return (
        ours.dtype == theirs.dtype
        and ours.shape == theirs.shape
        and ours.tobytes() == theirs.tobytes()
    )


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


def test_a_v1_checkpoint_is_named_as_such():
    folder = shared("models", "tf_session_bundle_v1_v2", "half_plus_two_v1", "00000123")
    for prefix in (folder / "export", folder / "export-00000-of-00001"):
        with pytest.raises(BadInput, match="V1, which is not supported yet"):
            migrate.open_checkpoint(prefix)


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
    original = bundle.Shards.read_into

    def counting(self, shard, offset, buffer, where):
        read.append(buffer.size)
        original(self, shard, offset, buffer, where)

    monkeypatch.setattr(bundle.Shards, "read_into", counting)
    with migrate.open_checkpoint(tf2_checkpoints / "large") as checkpoint:
        assert checkpoint.read("large", rows=slice(297500, 297502)).shape == (2, 64)
    assert sum(read) == 2 * 64 * 4


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
        (tf2_checkpoints, "is a directory; give the prefix of one checkpoint, for example"),
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
