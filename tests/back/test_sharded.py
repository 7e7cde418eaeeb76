"""What TorchRec saved, sharded over two processes, comes back as TensorFlow would have it."""

import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import torch
from torch.distributed import checkpoint as dcp

import migrate
from semisync.common.errors import BadInput, UsageError
from tests.support.conversions import make_plan, rows_of
from tests.support.require import ROOT, environment
from tests.support.three_tables import TABLES, batches, convert

SHARDINGS = ["row_wise", "column_wise", "table_wise"]


@pytest.fixture(scope="module")
def original(tf2_checkpoints):
    return tf2_checkpoints / "adagrad_ref"


@pytest.fixture(scope="module")
def converted(original, tmp_path_factory):
    return convert(original, tmp_path_factory.mktemp("converted") / "adagrad")


@pytest.fixture(scope="module")
def saved(interpreters, converted, tmp_path_factory):
    """Folder of the DCPs."""
    out = tmp_path_factory.mktemp("saved")
    np.savez(out / "batches.npz", **batches())
    command = [interpreters / "python", "-W", "ignore", "-m", "tests.back.train_sharded"]
    processes = [
        subprocess.Popen(
            [
                *command,
                str(rank),
                out / "rendezvous",
                converted,
                out / "batches.npz",
                out,
                *SHARDINGS,
            ],
            cwd=ROOT,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in processes:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-4000:]
    return out


@pytest.mark.parametrize("how", SHARDINGS)
def test_trained_tables_and_slots_come_back_as_tensorflow_trains_them(
    saved, original, converted, tmp_path, how
):
    back = migrate.write_checkpoint(saved / how, tmp_path / "back", original, converted)
    assert back.copied == ["dense/kernel/Adagrad", "first/Adagrad"]
    assert len(back.notes) == 1
    assert "the slots of 'dense/kernel', 'first' are the original's" in back.notes[0]
    assert pathlib.Path(str(tmp_path / "back") + ".meta").exists()
    expected = np.load(f"{original}.npz")
    migrate.convert(make_plan(tmp_path / "back"), tmp_path / "again")
    for table, variable in TABLES.items():
        for suffix, state in (("", ""), (":accumulator", f".{table}.momentum1")):
            fqn = f"ebc.embedding_bags.{table}.weight"
            found = rows_of(tmp_path / "again", ("optim.state." if state else "") + fqn + state)
            assert np.allclose(found, expected[f"later {variable}{suffix}"], rtol=0, atol=1e-5)
    with migrate.open_checkpoint(original) as one, migrate.open_checkpoint(back.prefix) as two:
        assert dict(one) == dict(two)
        for name in ("first", "first/Adagrad", "dense/kernel", "global_step"):
            assert np.array_equal(one.read(name), two.read(name))


def save(folder, tensors):
    dcp.save(tensors, checkpoint_id=str(folder), no_dist=True)
    return folder


@pytest.fixture
def state(converted):
    """What a training of one's own has: tables by TorchRec's names, a layer by another."""
    tensors = {}
    for entry in migrate.read_manifest(converted).tensors:
        if entry.role in ("table", "dense", "scalar"):
            tensors[entry.fqn] = torch.ones(entry.shape, dtype=getattr(torch, entry.dtype))
    return tensors


def test_a_layer_under_another_name_and_transposed_is_named_by_the_caller(
    state, converted, original, tmp_path
):
    del state["dense.dense/kernel"]
    state["model.over.0.weight"] = torch.arange(16.0).reshape(2, 8)
    folder = save(tmp_path / "dcp", state)
    with pytest.raises(BadInput, match="does not give back 'dense/kernel': it has no tensor"):
        migrate.write_checkpoint(folder, tmp_path / "back", original, converted)
    names = {"dense/kernel": "over.0.weight.T"}
    back = migrate.write_checkpoint(folder, tmp_path / "back", original, converted, names=names)
    assert "the slots of 'dense/kernel', 'first', 'item', 'plain/city', 'user'" in back.notes[0]
    with migrate.open_checkpoint(back.prefix) as checkpoint:
        assert np.array_equal(checkpoint.read("dense/kernel"), np.arange(16.0).reshape(2, 8).T)
    names = {"dense/kernel": None}
    back = migrate.write_checkpoint(folder, tmp_path / "None", original, converted, names=names)
    assert "dense/kernel" in back.copied
    for key, name, problem in (
        ("over.1.weight", "dense/kernel", "'over.1.weight' for 'dense/kernel', which is not there"),
        ("over.0.weight", "kernel", "'kernel', which is not a dense variable"),
    ):
        with pytest.raises(UsageError, match=problem):
            migrate.write_checkpoint(
                folder, tmp_path / "other", original, converted, names={name: key}
            )


def test_axes_of_a_model_that_its_tensor_does_not_have_are_refused(
    state, converted, original, tmp_path
):
    out = shutil.copytree(converted, tmp_path / "out")
    state["net.over"] = state.pop("dense.dense/kernel")
    folder = save(tmp_path / "dcp", state)
    for axes in ("(1, 0, 2)", "(0, 0)"):
        (out / "model.py").write_text(f'VARIABLES = {{"over": V("dense/kernel", axes={axes})}}\n')
        with pytest.raises(BadInput, match=r"'net.over' is \[8, 2\], which has no axes \["):
            migrate.write_checkpoint(folder, tmp_path / "back", original, out)


def test_a_manifest_that_was_edited_is_not_believed(state, converted, original, tmp_path):
    out = shutil.copytree(converted, tmp_path / "out")
    text = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(text.replace('"mod"', '"div"'))
    with pytest.raises(BadInput, match=r"out/manifest.json is not as it was written"):
        folder = save(tmp_path / "dcp", state)
        migrate.write_checkpoint(folder, tmp_path / "back", original, out)


def test_what_a_training_did_not_save_is_named(state, converted, original, tmp_path):
    folder = tmp_path / "dcp"
    for change, problem in (
        ({"ebc.embedding_bags.user.weight": None}, "does not give back 'user'"),
        ({"ebc.embedding_bags.user.weight": torch.zeros(30, 8)}, "it is of another model"),
        ({"other.embedding_bags.user.weight": torch.zeros(31, 8),
          "ebc.embedding_bags.user.weight": None,
          "third.embedding_bags.user.weight": torch.zeros(31, 8)}, "more than once"),
        ({"optim.ebc.embedding_bags.user.weight.sum": torch.zeros(31, 8)},
         "state of other tables, but not this one"),
    ):  # fmt: skip
        tensors = {key: value for key, value in {**state, **change}.items() if value is not None}
        with pytest.raises(BadInput, match=problem):
            migrate.write_checkpoint(save(folder, tensors), tmp_path / "back", original, converted)
    del state["dense.global_step"]
    back = migrate.write_checkpoint(save(folder, state), tmp_path / "back", original, converted)
    assert "global_step" in back.copied
    assert "global_step are as before the training, which did not save them" in back.notes


def test_a_value_that_the_checkpoints_type_cannot_hold_is_refused(
    state, converted, original, tmp_path
):
    state["dense.first"] = torch.full((31,), 1e300, dtype=torch.float64)
    folder = save(tmp_path / "dcp", state)
    with pytest.raises(BadInput, match="'first' has values that float32 cannot hold"):
        migrate.write_checkpoint(folder, tmp_path / "back", original, converted)


def test_values_that_do_not_stand_row_by_row_are_turned(state, converted, original, tmp_path):
    values = torch.arange(31 * 8.0).reshape(8, 31)
    state["ebc.embedding_bags.user.weight"] = values.t()
    folder = save(tmp_path / "dcp", state)
    back = migrate.write_checkpoint(folder, tmp_path / "back", original, converted)
    migrate.convert(make_plan(back.prefix), tmp_path / "again")
    found = rows_of(tmp_path / "again", "ebc.embedding_bags.user.weight")
    assert np.array_equal(found, values.t().numpy())
