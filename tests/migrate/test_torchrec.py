"""TorchRec with a converted checkpoint: exact after loading, and in step with TensorFlow after."""

import importlib.util
import pathlib
import subprocess

import numpy as np
import pytest
import torch
from torchrec import KeyedJaggedTensor
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

import migrate
from migrate.torchrec import dense_variables, embedding_bag_collection, load
from semisync.common.errors import BadInput, UsageError
from tests.migrate.managed_collisions import RAW_IDS, RAW_ROWS, convert_raw
from tests.support.three_tables import ROWS, TABLES, batches, convert

SHARDINGS = ["table_wise", "one_rank", "row_wise", "column_wise", "data_parallel"]
SHARDINGS += [f"{how} dense" for how in SHARDINGS if how not in ("one_rank", "data_parallel")]
SHARDINGS += ["columns_on_one_rank dense"]
HAS_SAFETENSORS = importlib.util.find_spec("safetensors") is not None


@pytest.fixture(scope="module")
def converted(tf2_checkpoints, tmp_path_factory):
    return convert(
        tf2_checkpoints / "adagrad_ref", tmp_path_factory.mktemp("converted") / "adagrad"
    )


@pytest.fixture(scope="module")
def expected(tf2_checkpoints):
    return np.load(tf2_checkpoints / "adagrad_ref.npz")


def test_an_unsharded_collection_holds_what_tensorflow_looks_up(converted, expected):
    ebc = embedding_bag_collection(converted, {table: [table] for table in TABLES})
    loaded = load(ebc, converted)
    assert loaded == [f"ebc.embedding_bags.{table}.weight" for table in sorted(TABLES)]
    for table, variable in TABLES.items():
        weight = ebc.state_dict()[f"embedding_bags.{table}.weight"]
        assert np.array_equal(weight.numpy(), expected[variable])
    ids = torch.tensor([30, 0, 4])
    features = KeyedJaggedTensor(
        list(TABLES), torch.cat([ids, ids[1:], ids[1:]]), lengths=torch.tensor([3, 2, 2])
    )
    pooled = ebc(features)["user"].detach().numpy()[0]
    assert np.allclose(pooled, expected["user"][[30, 0, 4]].sum(0), atol=1e-6)


def test_tables_are_found_at_any_path_and_in_an_embedding_collection(converted, expected):
    tables = [EmbeddingConfig(name="user", num_embeddings=31, embedding_dim=8, feature_names=["u"])]
    model = torch.nn.ModuleDict({"deep": EmbeddingCollection(tables=tables)})
    load(model, converted)
    weight = model.state_dict()["deep.embeddings.user.weight"]
    assert np.array_equal(weight.numpy(), expected["user"])


def test_dense_variables_come_back_by_their_names(converted, expected):
    dense = dense_variables(converted)
    assert sorted(dense) == ["dense/kernel", "first", "global_step"]
    assert np.array_equal(dense["dense/kernel"].numpy(), expected["dense/kernel"])


def test_adam_state_continues_in_a_torch_optimizer(tf2_checkpoints, tmp_path):
    """The names are those of torchrec's KeyedOptimizer around torch.optim.Adam."""
    from torchrec.optim.keyed import KeyedOptimizerWrapper

    from migrate.targets.reading.torch_readers import read

    out = convert(tf2_checkpoints / "adam_ref", tmp_path / "out")
    expected = np.load(tf2_checkpoints / "adam_ref.npz")
    ebc = embedding_bag_collection(out, {table: [table] for table in TABLES})
    parameters = {f"ebc.{name}": one for name, one in ebc.named_parameters()}
    optimizer = KeyedOptimizerWrapper(parameters, lambda params: torch.optim.Adam(params, lr=0.1))
    optimizer.init_state()
    state = optimizer.state_dict()["state"]
    wanted = {
        f"optim.state.{key}.{name}": tensor
        for key, states in state.items()
        for name, tensor in states.items()
    }
    assert len(wanted) == 9
    read(out, wanted)
    for table, variable in TABLES.items():
        found = state[f"ebc.embedding_bags.{table}.weight"]
        assert np.array_equal(found["exp_avg"].numpy(), expected[variable + ":m"])
        assert np.array_equal(found["exp_avg_sq"].numpy(), expected[variable + ":v"])
        assert found["step"].item() == 3


def test_modules_that_do_not_fit_are_refused(converted):
    small = [EmbeddingConfig(name="user", num_embeddings=30, embedding_dim=8, feature_names=["u"])]
    with pytest.raises(UsageError, match=r"is \[31, 8\] in the checkpoint, but \[30, 8\]"):
        load(EmbeddingCollection(tables=small), converted)
    with pytest.raises(UsageError, match="has none of the tables"):
        load(torch.nn.Linear(2, 2), converted)
    with pytest.raises(UsageError, match="there is no table 'absent'"):
        embedding_bag_collection(converted, {"absent": ["f"]})


def test_a_damaged_conversion_is_refused_in_one_sentence(tf2_checkpoints, tmp_path):
    out = pathlib.Path(convert(tf2_checkpoints / "sgd", tmp_path / "out"))
    ebc = embedding_bag_collection(str(out), {"user": ["u"]})
    data = out / "__0_0.distcp"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(BadInput, match="cannot be loaded") as caught:
        load(ebc, str(out))
    assert "\n" not in str(caught.value)
    (out / ".metadata").unlink()
    with pytest.raises(BadInput, match="cannot be loaded"):
        load(ebc, str(out))
    (out / "manifest.json").write_text("{")
    with pytest.raises(BadInput, match="is not JSON"):
        load(ebc, str(out))
    with pytest.raises(BadInput, match="give a directory that `semisync convert` wrote"):
        dense_variables(str(tmp_path))


@pytest.fixture(scope="module")
def trained(interpreters, converted, tf2_checkpoints, tmp_path_factory):
    """Folder in which two processes left their shards, before and after three steps."""
    folder = tmp_path_factory.mktemp("trained")
    safetensors = ""
    if HAS_SAFETENSORS:
        prefix = tf2_checkpoints / "adagrad_ref"
        safetensors = convert(prefix, folder / "safetensors", target="safetensors")
    np.savez(folder / "batches.npz", **batches())
    with migrate.open_checkpoint(tf2_checkpoints / "adagrad_ref") as checkpoint:
        plan = migrate.plan(checkpoint, static=[("^item$", "fp16")])
    for table in plan.tables:
        table.pooling = "sum"
    migrate.convert(plan, folder / "static_item")
    script = ["-m", "tests.migrate.train_sharded"]
    rest = [str(folder / "rendezvous"), converted, safetensors]
    rest += [str(folder / "static_item"), str(convert_raw(folder / "raw"))]
    rest += [str(folder / "batches.npz"), str(folder)]
    ranks = [
        subprocess.Popen(
            [interpreters / "python", "-W", "ignore", *script, str(rank), *rest],
            cwd=pathlib.Path(__file__).parents[2],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [rank.communicate(timeout=300)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], errors[0][-3000:] + errors[1][-3000:]
    return folder


@pytest.mark.long
def test_two_processes_find_raw_ids_in_a_shared_hash_table(trained):
    for rank in range(2):
        found = np.load(trained / f"raw.{rank}.npz")
        assert found["ids"].tolist() == RAW_IDS[rank::2].tolist()
        assert np.array_equal(found["rows"], RAW_ROWS[rank::2])
        assert "one list of ids, but the module shards it over 2 ranks" in str(found["refused"])


def joined(folder, how):
    """The whole tables from the shards of both ranks; every element is there exactly once."""
    tables, seen = {}, {}
    for rank in range(2):
        for key, values in np.load(folder / f"{how}.{rank}.npz").items():
            name, row, column = key.split("|")
            shape = (ROWS[name.replace("later ", "").split(":")[0]], 8)
            table = tables.setdefault(name, np.zeros(shape, np.float32))
            count = seen.setdefault(name, np.zeros(shape, int))
            top, left = int(row), int(column)
            box = np.s_[top : top + values.shape[0], left : left + values.shape[1]]
            table[box] = values
            count[box] += 1
    assert all((count == 1).all() for count in seen.values())
    return tables


@pytest.mark.parametrize("how", SHARDINGS)
def test_sharded_tables_and_their_optimizer_are_exact_after_loading(trained, expected, how):
    found = joined(trained, how)
    for table, variable in TABLES.items():
        assert np.array_equal(found[table], expected[variable])
        accumulator = found[table + ":accumulator"]
        assert np.array_equal(accumulator, expected[variable + ":accumulator"])


@pytest.mark.skipif(not HAS_SAFETENSORS, reason="the package safetensors is not installed")
@pytest.mark.parametrize("how", ["row_wise", "column_wise"])
def test_sharded_tables_load_exactly_from_safetensors(trained, expected, how):
    found = joined(trained, how + " safetensors")
    for table, variable in TABLES.items():
        assert np.array_equal(found[table], expected[variable])
        accumulator = found[table + ":accumulator"]
        assert np.array_equal(accumulator, expected[variable + ":accumulator"])


@pytest.mark.skipif(not HAS_SAFETENSORS, reason="the package safetensors is not installed")
def test_the_safetensors_package_reads_what_tensorflow_looks_up(tf2_checkpoints, tmp_path):
    from safetensors.torch import load_file

    out = convert(tf2_checkpoints / "adagrad_ref", tmp_path / "out", target="safetensors")
    found = load_file(out + "/model-00001-of-00001.safetensors")
    expected = np.load(tf2_checkpoints / "adagrad_ref.npz")
    for table, variable in TABLES.items():
        weight = found[f"ebc.embedding_bags.{table}.weight"]
        assert np.array_equal(weight.numpy(), expected[variable])
    assert found["dense.global_step"].item() == 3


@pytest.mark.parametrize("how", SHARDINGS)
def test_three_more_steps_agree_with_tensorflow(trained, expected, how):
    found = joined(trained, how)
    for table, variable in TABLES.items():
        later = expected["later " + variable]
        assert np.abs(later - expected[variable]).max() > 0.01  # the steps did something
        assert np.abs(found["later " + table] - later).max() <= 1e-6
        accumulator = expected["later " + variable + ":accumulator"]
        assert np.allclose(found["later " + table + ":accumulator"], accumulator, rtol=1e-5)


def test_sharded_training_leaves_a_static_table_alone(trained, expected):
    found = joined(trained, "static")
    half = expected["item"].astype(np.float16)
    assert np.array_equal(found["item"], half)
    assert np.array_equal(found["later item"], half)
    assert "item:accumulator" not in found
    for table, variable in [("user", "user"), ("plain_city", "plain/city")]:
        assert np.abs(found["later " + table] - expected["later " + variable]).max() <= 1e-6
