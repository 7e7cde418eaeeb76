"""Tables by raw ids that are static or weighted, in the real modules."""

import numpy as np
import pytest
import torch
from torchrec import KeyedJaggedTensor

import migrate
from migrate.manifest.quantization import dequantized, quantized
from migrate.torchrec import (
    build,
    id_map,
    load,
    managed_collision_collection,
    map_features,
    read_model,
)
from migrate.verification import verify
from semisync.cli import main
from semisync.common.errors import BadInput, UsageError
from tests.migrate.plans import edit
from tests.migrate.raw_tables import write_tfra
from tests.support.conversions import look_up, make_plan

IDS = [4, -8, 6, 2**40, 0]
ROWS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
STATE = np.arange(20, dtype=np.float32).reshape(5, 4)


@pytest.fixture
def source(tmp_path):
    """A table in two parts with Adagrad's state."""
    parts = [(IDS[:3], ROWS[:3]), (IDS[3:], ROWS[3:])]
    slots = [("Adagrad_accumulator", [(IDS[:3], STATE[:3]), (IDS[3:], STATE[3:])])]
    return write_tfra(tmp_path / "in", "t", parts, slots)


def static_plan(source, mode, static, **changes):
    plan = make_plan(source, mode, static=[("^t$", static)])
    edit(plan.hash_tables[0], **changes)
    assert migrate.Plan.from_yaml(plan.to_yaml()) == plan
    return plan


@pytest.mark.parametrize("mode", ["rows", "mch", "mpzch"])
def test_a_static_table_is_half_precision_frozen_and_without_state(source, tmp_path, mode):
    manifest = migrate.convert(static_plan(source, mode, "fp16"), tmp_path / "out")
    (table,) = manifest.tables
    assert (table.static, table.dtype, table.optimizer) == ("fp16", "float16", None)
    assert table.trained_bytes == 2 * table.rows * 4 * 4
    assert not any(one.fqn.startswith("optim") for one in manifest.tensors)
    found = look_up(tmp_path / "out", "t", [*IDS, *([99] if mode != "mpzch" else [])])
    assert np.array_equal(found[:5], ROWS.astype(np.float16).astype(np.float32))
    assert not found[5:].any()
    (one,) = read_model(tmp_path / "out")["tables"]
    assert (one["static"], one["optimizer"]) == ("fp16", None)
    if mode != "rows":
        module = managed_collision_collection(manifest, {"t": ["f"]})
        assert not any(weight.requires_grad for weight in module.parameters())
    assert verify(source, tmp_path / "out").verified
    write_tfra(tmp_path / "in", "t", [(IDS[:3], ROWS[:3] + 1), (IDS[3:], ROWS[3:])])
    assert "3 ids have another values" in verify(source, tmp_path / "out").differences[0]


def test_8_bit_rows_are_looked_up_by_raw_ids(source, tmp_path):
    plan = static_plan(source, "rows", "int8", pooling="sum", weighted=True)
    migrate.convert(plan, tmp_path / "out")
    module = build(read_model(tmp_path / "out"))
    load(module, str(tmp_path / "out"))
    ids = torch.tensor([6, 99, 2**40])
    weights = torch.tensor([1.0, 5.0, 2.0])
    features = KeyedJaggedTensor(["t"], ids, weights, lengths=torch.tensor([2, 1]))
    found = module(map_features(features, {"t": id_map(str(tmp_path / "out"), "t")}))["t"]
    exact = dequantized(quantized(ROWS))[[2, 3]] * np.array([[1], [2]], np.float32)
    assert np.allclose(found.numpy(), exact, atol=1e-6)  # an id that is not there counts nothing
    assert verify(source, tmp_path / "out").verified
    write_tfra(tmp_path / "in", "t", [(IDS[:3], ROWS[:3]), (IDS[3:], 2 * ROWS[3:])])
    assert "2 ids have another values" in verify(source, tmp_path / "out").differences[0]


@pytest.mark.parametrize("mode", ["mch", "mpzch"])
def test_weights_of_raw_ids_reach_the_pooling(source, tmp_path, mode):
    plan = make_plan(source, mode)
    plan.hash_tables[0].weighted = True
    manifest = migrate.convert(plan, tmp_path / "out")
    module = managed_collision_collection(manifest, {"t": ["f"]}).eval()
    load(module, str(tmp_path / "out"))
    weights = torch.tensor([0.5, -2.0])
    features = KeyedJaggedTensor(["f"], torch.tensor([0, 4]), weights, lengths=torch.tensor([2]))
    found = module(features)[0]["f"].detach().numpy()
    assert np.allclose(found, 0.5 * ROWS[4] - 2 * ROWS[0])
    manifest.tables.append(migrate.manifest.manifest.TableSummary(**vars(manifest.tables[0])))
    manifest.tables[1].name, manifest.tables[1].weighted = "u", False
    with pytest.raises(UsageError, match="make a collection of each"):
        managed_collision_collection(manifest, {"t": ["f"], "u": ["g"]})


@pytest.mark.parametrize(
    ("mode", "changes", "sentence"),
    [
        ("mch", {"static": "int8"}, "which cannot hold int8 rows; use static fp16, or ids rows"),
        ("mpzch", {"static": "int8"}, "which cannot hold int8 rows; use static fp16, or ids rows"),
        ("rows", {"static": "int4"}, "static 'int4', expected one of fp16, int8, float32"),
        ("rows", {"static": "fp16", "cast": "float16"}, "leave cast and row_wise out"),
        ("rows", {"placement": "tape"}, "placement 'tape'"),
        ("rows", {"weighted": True, "pooling": "none"}, "has weights, but pooling none"),
        ("dynamicemb", {"static": "fp16"}, "dynamicemb's files are float32"),
        ("dynamicemb", {"placement": "uvm"}, "planner does not place dynamicemb's tables"),
    ],
)
def test_what_makes_no_sense_is_refused(source, tmp_path, mode, changes, sentence):
    plan = make_plan(source, mode)
    edit(plan.hash_tables[0], **changes)
    with pytest.raises(BadInput, match=sentence):
        migrate.convert(plan, tmp_path / "out")


def test_the_command_marks_hash_tables_too(source, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["convert", str(source), out, "--static", "^t$=int8"]) == 0
    said = capsys.readouterr().out
    assert "ids by rows, Adagrad, static int8" in said
    assert "ebc.embedding_bags.t.weight cast to int8: relative error" in said
    assert "t is static int8: 48 bytes, 96 in a GPU's padded rows instead of 192" in said
    assert main(["convert", str(source), out, "--static", "absent"]) == 3
    capsys.readouterr()
