"""What the model config builds of tables by raw ids looks them up."""

import json

import numpy as np
import pytest
import torch
from torchrec import KeyedJaggedTensor
from torchrec.modules.mc_embedding_modules import (
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)

import migrate
from migrate.manifest.model_json import model_config
from migrate.torchrec import (
    build,
    build_optimizer,
    load,
    load_optimizer,
    managed_collision_collection,
    read_model,
)
from migrate.verification import verify
from semisync.common.errors import BadInput, UsageError
from tests.migrate.plans import edit
from tests.migrate.raw_tables import write_tfra

IDS = np.array([4, -8, 6, 2**40, 0, -(2**62), 17, 5])


def rows_of(name):
    """The rows of a table, which tell tables apart."""
    return np.random.default_rng(list(name.encode())).normal(size=(8, 4)).astype(np.float32)


def converted(folder, modes, **changes):
    """A checkpoint with a table for each name in `modes`, and its Adagrad state, 10 times it."""
    for name in modes:
        slots = [("Adagrad_accumulator", [(IDS, 10 * abs(rows_of(name)))])]
        write_tfra(folder / "source", name, [(IDS, rows_of(name))], slots)
    with migrate.open_checkpoint(folder / "source") as checkpoint:
        plan = migrate.plan(checkpoint)
    for table in plan.hash_tables:
        edit(table, mode=modes[table.name], rows=12, buckets=2, pooling="sum")
        edit(table, **changes)
    manifest = migrate.convert(plan, folder / "out")
    return str(folder / "out"), manifest


def look_up(module):
    """The vectors of IDS in the table "t", one a bag."""
    lengths = torch.ones(len(IDS), dtype=torch.int64)
    found, _ = module.eval()(KeyedJaggedTensor(["t"], torch.from_numpy(IDS), lengths=lengths))
    return found["t"].detach().numpy()


@pytest.mark.parametrize("mode", ["mch", "mpzch"])
def test_what_is_built_finds_raw_ids_and_trains_on(tmp_path, mode):
    directory, _ = converted(tmp_path, {"t": mode})
    config = read_model(directory)
    config["tables"][0]["optimizer"]["arguments"]["lr"] = 0.5
    module = build(config)
    assert isinstance(module, ManagedCollisionEmbeddingBagCollection)
    load(module, directory)
    assert np.array_equal(look_up(module), rows_of("t"))
    optimizer = build_optimizer(config, module)["t"]
    load_optimizer(optimizer, dict(module.named_parameters()), directory)
    features = KeyedJaggedTensor(["t"], torch.tensor([17]), lengths=torch.tensor([1]))
    module(features)[0]["t"].sum().backward()
    optimizer.step()
    expected = rows_of("t")
    expected[6] -= 0.5 / np.sqrt(10 * abs(rows_of("t")[6]) + 1)
    assert np.allclose(look_up(module), expected, atol=1e-6)


def test_a_table_that_takes_no_ids_in_keeps_none_of_a_batch_it_trains_on(tmp_path):
    directory, _ = converted(tmp_path, {"t": "mch"})
    module = build(read_model(directory))
    load(module, directory)
    before = {name: value.clone() for name, value in module.named_buffers()}
    ids = torch.arange(4096)
    lengths = torch.ones_like(ids)
    module.train()(KeyedJaggedTensor(["t"], ids, lengths=lengths))[0]["t"].sum().backward()
    assert {name: value.tolist() for name, value in module.named_buffers()} == {
        name: value.tolist() for name, value in before.items()
    }


def test_tables_of_all_kinds_are_looked_up_together(tmp_path):
    modes = {"a": "mch", "b": "mpzch", "c": "mpzch", "d": "rows", "e": "mch"}
    directory, _ = converted(tmp_path, modes)
    config = read_model(directory)
    tables = {table["name"]: table for table in config["tables"]}
    tables["c"]["pooling"], tables["e"]["placement"] = "none", "cpu"
    module = build(config)
    assert sorted(module.collections) == ["cpu_mc_ebc", "ebc", "mc_ebc", "mc_ec_4"]
    assert isinstance(module.collections["mc_ec_4"], ManagedCollisionEmbeddingCollection)
    load(module, directory)
    features = torch.from_numpy(np.concatenate([np.tile(IDS, 3), np.arange(8), IDS]))
    lengths = torch.ones(len(features), dtype=torch.int64)
    found = module.eval()(KeyedJaggedTensor(list("abcde"), features, lengths=lengths))
    for name in "abe":
        assert np.array_equal(found[name].detach().numpy(), rows_of(name))
    assert np.array_equal(found["c"].values().detach().numpy(), rows_of("c"))
    assert np.array_equal(found["d"].detach().numpy(), rows_of("d")[np.argsort(IDS)])


def test_static_and_weighted_tables_are_built_by_raw_ids(tmp_path):
    directory, _ = converted(tmp_path, {"t": "mpzch"}, static="fp16", weighted=True)
    module = build(read_model(directory), fused=True)
    load(module, directory)
    assert not any(weight.requires_grad for weight in module.parameters())
    weights = torch.tensor([0.5, -2.0], dtype=torch.float16)  # torch wants those of the rows' type
    ids, lengths = torch.tensor([0, 4]), torch.tensor([2])
    found = module.eval()(KeyedJaggedTensor(["t"], ids, weights, lengths=lengths))["t"]
    assert np.allclose(found.numpy(), 0.5 * rows_of("t")[4] - 2 * rows_of("t")[0], atol=1e-2)


def test_the_modules_search_as_far_and_take_ids_in_as_often_as_the_config_says(tmp_path):
    _, manifest = converted(tmp_path, {"t": "mpzch", "u": "mch"})
    tables = {table.name: table for table in manifest.tables}
    tables["t"].ids.max_probe = 166
    config = model_config(manifest)
    ids = {table["name"]: table["ids"] for table in config["tables"]}
    assert ids["t"] == {"mode": "mpzch", "buckets": 2, "max_probe": 166}
    assert ids["u"] == {"mode": "mch", "eviction_interval": None}
    ids["u"]["eviction_interval"] = 7
    managed = build(config)._managed_collision_collection._managed_collision_modules
    assert (managed["t"]._max_probe, managed["t"].buckets()) == (166, 2)
    assert managed["u"]._eviction_interval == 7


@pytest.mark.parametrize("interval", [0, -3])
def test_an_interval_below_1_is_refused(tmp_path, interval):
    directory, manifest = converted(tmp_path, {"u": "mch"})
    config = model_config(manifest)
    config["tables"][0]["ids"]["eviction_interval"] = interval
    with pytest.raises(BadInput, match=f"eviction_interval: expected at least 1, found {interval}"):
        build(config)
    with pytest.raises(UsageError, match=f"eviction_interval is {interval}, expected at least 1"):
        managed_collision_collection(directory, {"u": ["u"]}, eviction_interval=interval)


def test_verification_knows_what_of_the_ids_follows_from_the_data(tmp_path):
    directory, _ = converted(tmp_path, {"t": "mpzch"})
    path, config = tmp_path / "out" / "model.json", read_model(directory)
    config["tables"][0]["ids"]["max_probe"] = 512
    path.write_text(json.dumps(config))
    found = verify(str(tmp_path / "source"), directory)
    assert found.verified
    assert found.unchecked == ["model.json, which was edited since it was written"]
    config["tables"][0]["ids"]["buckets"] = 3
    path.write_text(json.dumps(config))
    assert "that is not so in the manifest" in verify(tmp_path / "source", directory).differences[0]


def test_what_cannot_be_built_is_refused(tmp_path):
    directory, _ = converted(tmp_path, {"t": "dynamicemb"}, rows=None)
    config = read_model(directory)
    with pytest.raises(UsageError, match="'t' is in files for NVIDIA's dynamicemb"):
        build(config)
    config["tables"][0]["ids"]["mode"] = "hashed"
    with pytest.raises(UsageError, match="has ids 'hashed', expected one of rows, mch, mpzch"):
        build(config)
