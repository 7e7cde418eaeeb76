"""To torch and back: the checkpoint that was converted, tensor by tensor and bit for bit."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import migrate
from tests.back.same import assert_same
from tests.migrate.big_endian import swap_bytes
from tests.support.bundles import same

# Optimizers and ways of saving; every data type, strings among them; look-ups, hash tables.
CHECKPOINTS = ["adagrad_ref", "adam_resource", "centered", "ftrl", "averaged", "cond_ops"]
CHECKPOINTS += ["deeprec", "lookup_tables"]
TABLELESS = ["slices", "dtypes", "every_dtype"]
WITHOUT_ORIGINAL = ["adagrad_ref", "adam_resource", "centered", "averaged", "slices"]


def convert(prefix, out, target="dcp", **options):
    with migrate.open_checkpoint(prefix) as checkpoint:
        return migrate.convert(migrate.plan(checkpoint, **options), out, target)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CHECKPOINTS + TABLELESS)
def test_a_converted_checkpoint_comes_back_bit_for_bit(checkpoints, tmp_path, name):
    options = {"tables": "", "partition_strategy": "div"} if name in TABLELESS else {}
    convert(checkpoints / name, tmp_path / "out", **options)
    back = migrate.write_checkpoint(
        tmp_path / "out", tmp_path / "back", original=checkpoints / name
    )
    assert_same(checkpoints / name, tmp_path / "back")
    with migrate.open_checkpoint(checkpoints / name) as original:
        assert back.shards == original.num_shards
    if name in WITHOUT_ORIGINAL:
        alone = migrate.write_checkpoint(tmp_path / "out", tmp_path / "alone")
        assert alone.copied == []
        assert_same(checkpoints / name, tmp_path / "alone")


@pytest.mark.parametrize("name", ["adagrad_ref", "slices"])
def test_tensorflows_own_reader_lists_and_reads_it(checkpoints, tmp_path, tf_reader, name):
    options = {"tables": "", "partition_strategy": "div"} if name in TABLELESS else {}
    convert(checkpoints / name, tmp_path / "out", **options)
    migrate.write_checkpoint(tmp_path / "out", tmp_path / "back", original=checkpoints / name)
    theirs, ours = tf_reader(checkpoints / name), tf_reader(tmp_path / "back")
    shapes = theirs.get_variable_to_shape_map()
    assert ours.get_variable_to_shape_map() == shapes
    for tensor in shapes:
        assert np.array_equal(ours.get_tensor(tensor), theirs.get_tensor(tensor))


@pytest.mark.parametrize("name", ["slices_v1", "big"])
def test_an_original_of_another_format_comes_back_as_v2(tf1_checkpoints, tmp_path, name):
    source = tf1_checkpoints / name
    if name == "big":
        source = tmp_path / "big"
        swap_bytes(tf1_checkpoints / "slices", source)
    convert(source, tmp_path / "out", tables="", drop="columns")
    back = migrate.write_checkpoint(tmp_path / "out", tmp_path / "back", original=source)
    assert back.copied == ["columns"]
    with migrate.open_checkpoint(source) as one, migrate.open_checkpoint(back.prefix) as two:
        assert two.store.big_endian is False
        for tensor in one:
            assert two[tensor].slices == one[tensor].slices
            assert same(two.read(tensor), one.read(tensor)), tensor


def test_slots_that_stand_under_one_name_per_part_come_back_so(trained, tmp_path):
    scattered = 0
    for path in sorted(trained.glob("*.index")):
        prefix = str(path)[: -len(".index")]
        with migrate.open_checkpoint(prefix) as checkpoint:
            if not checkpoint.parts:
                continue
        scattered += 1
        convert(prefix, tmp_path / path.stem, "safetensors")
        migrate.write_checkpoint(tmp_path / path.stem, tmp_path / "alone", overwrite=True)
        assert_same(prefix, tmp_path / "alone")
    assert scattered >= 2


def test_a_cast_comes_back_in_the_originals_type_and_is_noted(tf2_checkpoints, tmp_path):
    prefix = tf2_checkpoints / "adagrad_ref"
    convert(prefix, tmp_path / "out", cast="bfloat16")
    back = migrate.write_checkpoint(tmp_path / "out", tmp_path / "back", original=prefix)
    tables = "'item', 'plain/city', 'user'"
    assert back.notes == [f"{tables} came back from bfloat16, in the checkpoint's type"]
    with migrate.open_checkpoint(prefix) as one, migrate.open_checkpoint(back.prefix) as two:
        assert dict(one) == dict(two)
        values, returned = one.read("user"), two.read("user")
    bits = returned.view(np.uint32)
    assert not (bits & 0xFFFF).any()
    assert np.allclose(returned, values, rtol=2**-8)


def test_a_static_table_comes_back_from_the_original(tf2_checkpoints, tmp_path):
    prefix = tf2_checkpoints / "adagrad_ref"
    convert(prefix, tmp_path / "out", static=[("user", "int8"), ("item", "fp16")])
    back = migrate.write_checkpoint(tmp_path / "out", tmp_path / "back", original=prefix)
    assert set(back.copied) == {"user", "user/Adagrad", "item", "item/Adagrad"}
    assert_same(prefix, tmp_path / "back")


TYPES = ["float32", "float64", "half", "bfloat16", "int8", "int64", "bool", "string"]


@st.composite
def tables(draw):
    """Several tensors: (type, shape, parts along the rows, parts along the columns)."""
    found = [("float32", [5, 2], 2, 1)]
    for _ in range(draw(st.integers(1, 4))):
        shape = draw(st.lists(st.integers(0, 9), max_size=3))
        whole = not all(shape)  # TensorFlow has no empty slices
        rows = 1 if whole or not shape else draw(st.integers(1, min(4, shape[0])))
        columns = 1 if whole or len(shape) < 2 else draw(st.integers(1, min(3, shape[1])))
        dtype = draw(st.sampled_from(TYPES))
        found.append((dtype, shape, rows, columns))
    return found


def cuts(size, parts):
    """(start, length) of each part, as TensorFlow cuts."""
    sizes = [size // parts + (part < size % parts) for part in range(parts)]
    return [(sum(sizes[:part]), length) for part, length in enumerate(sizes)]


def save(prefix, found, seed):
    """Saves random tensors t0, t1, ... by TensorFlow."""
    import tensorflow as tf

    random, names, specs, values = np.random.default_rng(seed), [], [], []
    for number, (dtype, shape, rows, columns) in enumerate(found):
        count = math.prod(shape)
        if dtype == "string":
            whole = tf.constant([b"x" * n for n in random.integers(0, 9, count)], tf.string)
        elif dtype == "bool":
            whole = tf.constant(random.integers(0, 2, count).astype(bool))
        else:
            size = tf.as_dtype(dtype).size
            bits = random.integers(0, 256, (count, size) if size > 1 else count, np.uint8)
            whole = tf.bitcast(bits, dtype)
        whole = tf.reshape(whole, shape)
        for first, length in cuts(shape[0], rows) if shape else [(0, 1)]:
            for column, width in cuts(shape[1], columns) if len(shape) > 1 else [(0, 1)]:
                starts = [first, column, 0][: len(shape)]
                lengths = [length, width, *shape[2:]][: len(shape)]
                extents = ":".join(f"{a},{n}" for a, n in zip(starts, lengths))
                cut = rows * columns > 1
                names.append(f"t{number}")
                specs.append(f"{' '.join(map(str, shape))} {extents}" if cut else "")
                values.append(tf.slice(whole, starts, lengths) if shape else whole)
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs, tensors=values)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(found=tables(), strategy=st.sampled_from(["div", "mod"]), seed=st.integers(0, 99))
def test_any_tensors_in_any_parts_come_back(tmp_path_factory, found, strategy, seed):
    folder = tmp_path_factory.mktemp("any")
    save(str(folder / "saved"), found, seed)
    tables_of = [n for n, (t, shape, *_) in enumerate(found) if is_table(t, shape)]
    named = "|".join(f"t{number}" for number in tables_of)
    convert(
        folder / "saved", folder / "out", tables=f"^({named})$" if named else "",
        partition_strategy=strategy,
    )  # fmt: skip
    migrate.write_checkpoint(folder / "out", folder / "back", original=folder / "saved")
    assert_same(folder / "saved", folder / "back")
    theirs, ours = (restored(str(folder / name), found) for name in ("saved", "back"))
    for expected, got in zip(theirs, ours):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        if got.dtype == object:
            assert got.tolist() == expected.tolist()
        else:
            assert got.tobytes() == expected.tobytes()


def restored(prefix, found):
    """The tensors as TensorFlow restores them, which cannot join slices of some types."""
    import tensorflow as tf

    types = [
        (f"t{number}", tf.as_dtype(dtype))
        for number, (dtype, _, rows, columns) in enumerate(found)
        if rows * columns == 1 or dtype not in ("string", "half", "bfloat16")
    ]
    values = tf.raw_ops.RestoreV2(
        prefix=prefix,
        tensor_names=[name for name, _ in types],
        shape_and_slices=[""] * len(types),
        dtypes=[dtype for _, dtype in types],
    )
    return [np.asarray(value.numpy()) for value in values]


def is_table(dtype, shape):
    return dtype in ("float32", "half", "bfloat16", "float64") and len(shape) == 2 and all(shape)
