"""Static tables: fewer bytes, no optimizer state, frozen; exact to what FBGEMM makes of them."""

import json

import numpy as np
import pytest
import torch
from torchrec import KeyedJaggedTensor
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.quant_embeddingbag import QuantEmbeddingBagCollectionSharder
from torchrec.inference.modules import quantize_embeddings

import migrate
from migrate.manifest.quantization import dequantized, quantized
from migrate.torchrec import (
    build,
    build_optimizer,
    constraints,
    embedding_bag_collection,
    load,
    read_model,
)
from migrate.verification import verify
from semisync.cli import main
from semisync.common.errors import BadInput, UsageError
from tests.support.conversions import make_plan
from tests.support.three_tables import TABLES

DIM = 8


def converted(prefix, out, target="dcp", placement=None, **static):
    """A conversion in which the tables named are static of the types given."""
    plan = make_plan(prefix)
    for table in plan.tables:
        table.pooling = "sum"
        table.static = static.get(table.name)
        table.placement = placement if table.static else None
    return migrate.convert(plan, out, target=target), str(out)


def bags():
    """The same three bags of ids for each table."""
    ids = torch.tensor([3, 9, 9, 0])
    return KeyedJaggedTensor(list(TABLES), ids.repeat(3), lengths=torch.tensor([2, 1, 1] * 3))


@pytest.fixture(scope="module")
def expected(tf2_checkpoints):
    return np.load(tf2_checkpoints / "adagrad_ref.npz")


@pytest.mark.parametrize("dim", [2, 8, 10, 34, 128])
@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e-5, 1e-2, 1.0, 1e4])
def test_rows_are_quantized_bit_for_bit_as_by_fbgemm(dim, scale):
    import fbgemm_gpu  # noqa: F401  it registers the operator

    values = (np.random.RandomState(dim).randn(400, dim) * scale).astype(np.float32)
    values[0], values[1], values[2] = 0, values[1, 0], np.abs(values[2])
    fused = torch.ops.fbgemm.FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf
    theirs = fused(torch.from_numpy(values), 8).numpy()
    ours = quantized(values)
    assert np.array_equal(ours[:, 4:], theirs[:, :-4])
    assert np.array_equal(ours[:, :4], theirs[:, -4:])


@pytest.mark.long
@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_int8_rows_are_those_of_torchrecs_own_quantized_collection(
    tf2_checkpoints, tmp_path, expected, target
):
    prefix = tf2_checkpoints / "adagrad_ref"
    every = dict.fromkeys(TABLES, "int8")
    _, out = converted(prefix, tmp_path / "out", target, **every)
    module = build(read_model(out))
    load(module, out)
    _, plain = converted(prefix, tmp_path / "plain")
    theirs = embedding_bag_collection(plain, {table: [table] for table in TABLES})
    load(theirs, plain)
    padded = quantize_embeddings(torch.nn.Sequential(theirs), torch.qint8, inplace=False)
    padded[0].embedding_bags["user"].weight.fill_(7)  # rows of 16 bytes, aligned as on a GPU
    assert padded[0].embedding_bags["user"].weight.shape == (31, 16)
    load(padded, out)
    theirs = quantize_embeddings(torch.nn.Sequential(theirs), torch.qint8, inplace=False)[0]
    weights = module.collections["int8_ebc"].embedding_bags
    for table in TABLES:
        rows = theirs.embedding_bags[table].weight[:, : 4 + DIM]
        assert torch.equal(weights[table].weight, rows)
        assert rows.dtype == torch.uint8
    found, wanted = module(bags()), theirs(bags()).to_dict()
    for table, variable in TABLES.items():
        assert torch.equal(found[table], wanted[table])
        assert torch.equal(padded[0](bags())[table], wanted[table])
        exact = expected[variable][[3, 9]].sum(0)
        assert np.abs(found[table][0].numpy() - exact).max() < 0.01


def test_static_and_trained_tables_live_in_one_model(tf2_checkpoints, tmp_path, expected):
    prefix = tf2_checkpoints / "adagrad_ref"
    _, out = converted(prefix, tmp_path / "out", user="int8", item="fp16", plain_city=None)
    config = read_model(out)
    module = build(config)
    load(module, out)
    assert list(build_optimizer(config, module)) == ["plain_city"]
    weights = dict(module.named_parameters())
    item = weights["collections.ebc.embedding_bags.item.weight"]
    city = weights["collections.ebc.embedding_bags.plain_city.weight"]
    assert len(weights) == 2  # int8 rows are buffers
    assert np.array_equal(item.numpy(), expected["item"].astype(np.float16))
    assert (item.requires_grad, city.requires_grad) == (False, True)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    optimizer = build_optimizer(config, module)["plain_city"]
    sum(one.square().sum() for one in module(bags()).values()).backward()
    optimizer.step()
    moved = [key for key, value in module.state_dict().items() if not value.equal(before[key])]
    assert moved == ["collections.ebc.embedding_bags.plain_city.weight"]


def test_the_manifest_has_the_error_the_bytes_and_what_was_dropped(
    tf2_checkpoints, tmp_path, expected
):
    prefix = tf2_checkpoints / "adam_ref"
    manifest, out = converted(prefix, tmp_path / "out", user="int8", item="fp16")
    assert migrate.read_manifest(out) == manifest
    tables = {table.name: table for table in manifest.tables}
    assert (tables["user"].dtype, tables["user"].optimizer) == ("int8", None)
    assert tables["user"].trained_bytes == 3 * 31 * DIM * 4
    assert tables["plain_city"].trained_bytes is None
    assert manifest.dropped == {
        f"{table}/Mine{suffix}": f"table {table} is static: it needs no optimizer state"
        for table in ("user", "item")
        for suffix in ("", "_1")
    }
    assert not any("state.ebc.embedding_bags.user" in one.fqn for one in manifest.tensors)
    values = np.load(str(prefix) + ".npz")
    losses = {one.source: one.loss for one in manifest.tensors if one.loss}
    made = {
        "user": dequantized(quantized(values["user"])),
        "item": values["item"].astype(np.float16).astype(np.float32),
    }
    assert sorted(losses) == ["item", "user"]
    for name, loss in losses.items():
        error = made[name].astype(float) - values[name]
        assert loss.largest == pytest.approx(np.abs(error).max())
        assert loss.root_mean_square == pytest.approx(np.sqrt(np.mean(error**2)))
        assert loss.largest > 0


@pytest.mark.few(1)
@pytest.mark.parametrize("sample", [None, 31])
@pytest.mark.parametrize("byte", [0, 2, 7])  # of the scale, of the bias, a number
def test_verify_makes_the_rows_again(tf2_checkpoints, tmp_path, sample, byte):
    prefix = tf2_checkpoints / "adagrad_ref"
    _, out = converted(prefix, tmp_path / "out", user="int8")
    assert verify(prefix, out, sample).verified
    data = next((tmp_path / "out").glob("*.distcp"))
    content = bytearray(data.read_bytes())
    row = quantized(np.load(str(prefix) + ".npz")["user"])[17].tobytes()
    content[content.find(row) + byte] ^= 1
    data.write_bytes(content)
    result = verify(prefix, out, sample)
    assert result.differing_rows == 1
    assert "of the rows" in result.differences[0]


def test_the_planner_puts_tables_where_the_config_says(tf2_checkpoints, tmp_path):
    kinds = {"user": "int8", "item": "fp16", "plain_city": "fp16"}
    _, out = converted(tf2_checkpoints / "adagrad_ref", tmp_path / "out", **kinds)
    config = read_model(out)
    places = {"user": "uvm", "item": "uvm", "plain_city": "device"}
    for table in config["tables"]:
        table["placement"] = places[table["name"]]

    def kernels(module):
        planner = EmbeddingShardingPlanner(
            topology=Topology(world_size=2, compute_device="cuda"),
            constraints=constraints(config),
        )
        sharders = [EmbeddingBagCollectionSharder(), QuantEmbeddingBagCollectionSharder()]
        plan = planner.plan(module, sharders).plan
        return {
            table: (path, sharding.compute_kernel)
            for path, tables in plan.items()
            for table, sharding in tables.items()
        }

    assert kernels(build(config, torch.device("meta"))) == {
        "user": ("collections.int8_ebc", "quant_uvm"),
        "item": ("collections.ebc", "fused_uvm"),
        "plain_city": ("collections.ebc", "fused"),
    }
    for table in config["tables"]:
        table["placement"] = "cpu" if table["name"] == "item" else "device"
    module = build(config)
    load(module, out)
    assert sorted(module(bags())) == sorted(TABLES)
    assert list(module.collections.pop("cpu_ebc").embedding_bags) == ["item"]
    assert kernels(module) == {
        "user": ("collections.int8_ebc", "quant"),
        "plain_city": ("collections.ebc", "fused"),
    }


def test_the_command_marks_measures_and_tells(tf2_checkpoints, tmp_path, capsys):
    out = str(tmp_path / "out")
    prefix = str(tf2_checkpoints / "adagrad_ref")
    marks = ["--static", "^user$=int8", "--static", "user|item"]
    assert main(["convert", prefix, out, *marks]) == 0
    said = capsys.readouterr().out
    assert "table user: 31 x 8 float32, 3 partitions (mod), Adagrad, static int8" in said
    assert "ebc.embedding_bags.item.weight cast to float16: relative error" in said
    saving = (
        "user is static int8: 372 bytes, 496 in a GPU's padded rows instead of 1,984 with its "
        "optimizer state: 75% less"
    )
    assert saving in said
    assert main(["inspect", out]) == 0
    said = capsys.readouterr().out
    assert saving in said
    line = next(line.split() for line in said.splitlines() if line.startswith("item "))
    assert line[:3] + line[5:] == ["item", "float16", "20x8", "fp16", "-", "320"]
    assert main(["inspect", out, "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert {one["name"]: one["gpu_bytes"] for one in tables} == {
        "user": 496,
        "item": 320,
        "plain_city": None,
    }


@pytest.mark.parametrize(
    ("static", "sentence"),
    [
        ([("absent", "fp16")], "'absent' names none of the 3 tables"),
        ([("(", "fp16")], "is not a regular expression"),
        ([("user", "int4")], "expected one of"),
    ],
)
def test_marks_that_mean_nothing_are_refused(tf2_checkpoints, static, sentence):
    with pytest.raises(UsageError, match=sentence):
        make_plan(tf2_checkpoints / "adagrad_ref", static=static)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"static": "int4"}, "static 'int4', expected one of fp16, int8, float32"),
        ({"static": "int8", "cast": "float16"}, "leave cast and row_wise out"),
        ({"static": "int8", "row_wise": True}, "leave cast and row_wise out"),
        ({"placement": "tape"}, "placement 'tape', expected one of"),
        ({"static": "fp16", "dtype": "float"}, "dtype 'float', which is no type of TensorFlow's"),
        ({"cast": "float16", "dtype": "float"}, "dtype 'float', which is no type of TensorFlow's"),
    ],
)
def test_plans_that_contradict_themselves_are_refused(tf2_checkpoints, tmp_path, changes, sentence):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    for name, value in changes.items():
        setattr(plan.tables[0], name, value)
    with pytest.raises(BadInput, match=sentence):
        migrate.convert(plan, tmp_path / "out")


def test_values_and_dims_that_8_bits_cannot_hold_are_refused(tf2_checkpoints, tmp_path):
    plan = make_plan(tf2_checkpoints / "suspicious", tables="^t$", static=[("t", "int8")])
    with pytest.raises(BadInput, match="'t' has values that int8 cannot hold, in rows 0"):
        migrate.convert(plan, tmp_path / "out")
    with migrate.open_checkpoint(tf2_checkpoints / "slices") as checkpoint:
        plan = migrate.plan(
            checkpoint, tables="^columns$", partition_strategy="div", static=[("columns", "int8")]
        )
    plan.tables[0].dim = 71
    with pytest.raises(BadInput, match="int8 rows have an even dim, this one is 71; use fp16"):
        migrate.convert(plan, tmp_path / "out")
