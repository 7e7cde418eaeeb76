"""A damaged checkpoint is read right or refused; nothing else ever happens."""

import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import migrate
from semisync.common.errors import SemisyncError

NAMES = ["adagrad_ref", "dtypes", "slices"]
WHERE = st.integers(0, 9999)  # ten-thousandths of the file


@pytest.fixture(scope="module")
def workplace(tf2_checkpoints, tmp_path_factory):
    """A folder to damage copies in, and the true values by checkpoint and tensor."""
    truth = {}
    for name in NAMES:
        with migrate.open_checkpoint(tf2_checkpoints / name) as checkpoint:
            truth[name] = {one: checkpoint.read(one) for one in checkpoint}
    return tf2_checkpoints, tmp_path_factory.mktemp("damaged"), truth


def read_or_refuse(prefix, truth):
    try:
        checkpoint = migrate.open_checkpoint(prefix)
    except SemisyncError:
        return
    with checkpoint:
        assert set(checkpoint) == set(truth)
        for name, expected in truth.items():
            try:
                found = checkpoint.read(name)
            except SemisyncError:
                continue
            assert found.dtype == expected.dtype
            if found.dtype == object:
                assert found.tolist() == expected.tolist()
            else:
                assert found.tobytes() == expected.tobytes(), name


damage = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def damaged(workplace, name, part, change):
    source, folder, truth = workplace
    for file in source.glob(name + ".*"):
        if file.suffix not in (".meta", ".npz"):
            shutil.copy(file, folder)
    files = sorted(folder.glob(name + part))
    path = files[-1]
    path.write_bytes(change(path.read_bytes()))
    read_or_refuse(folder / name, truth[name])


@pytest.mark.parametrize("name", NAMES)
def test_no_byte_of_an_index_can_change_what_is_listed(workplace, name):
    source, folder, truth = workplace
    with migrate.open_checkpoint(source / name) as checkpoint:
        listing = dict(checkpoint)
    data = (source / (name + ".index")).read_bytes()
    refused = 0
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
        (folder / (name + ".index")).write_bytes(changed)
        try:
            with migrate.open_checkpoint(folder / name) as checkpoint:
                assert dict(checkpoint) == listing, at
        except SemisyncError:
            refused += 1
    assert refused > 0.8 * len(data)  # the rest pads the footer or belongs to an unused block


@damage
@given(
    name=st.sampled_from(NAMES),
    part=st.sampled_from([".index", ".data-*"]),
    where=WHERE,
    bits=st.integers(1, 255),
)
def test_a_changed_byte_is_noticed_or_harmless(workplace, name, part, where, bits):
    def change(data):
        at = where * len(data) // 10000
        return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]

    damaged(workplace, name, part, change)


@damage
@given(
    name=st.sampled_from(NAMES),
    part=st.sampled_from([".index", ".data-*"]),
    where=WHERE,
)
def test_a_truncated_file_is_noticed(workplace, name, part, where):
    damaged(workplace, name, part, lambda data: data[: where * len(data) // 10000])


@damage
@given(name=st.sampled_from(NAMES), junk=st.binary(max_size=300))
def test_a_foreign_file_is_refused(workplace, name, junk):
    damaged(workplace, name, ".index", lambda data: junk)


@pytest.mark.long
@damage
@given(where=WHERE, bits=st.integers(0, 255))
def test_a_damaged_metagraph_gives_a_plan_or_a_refusal(workplace, where, bits):
    source, folder, _ = workplace
    data = (source / "adagrad_ref.meta").read_bytes()
    at = where * len(data) // 10000
    damaged_meta = folder / "damaged.meta"
    changed = data[:at] + (bytes([data[at] ^ bits]) + data[at + 1 :] if bits else b"")
    damaged_meta.write_bytes(changed)
    with migrate.open_checkpoint(source / "adagrad_ref") as checkpoint:
        try:
            plan = migrate.plan(checkpoint, damaged_meta)
        except SemisyncError:
            return
        assert plan.source == checkpoint.prefix
