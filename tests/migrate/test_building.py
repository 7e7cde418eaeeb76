"""The model config beside a conversion builds the modules and optimizers that it fills."""

import json

import numpy as np
import pytest
import torch

import migrate
from migrate.torchrec import build, build_optimizer, load, load_optimizer, read_model
from semisync.common.errors import BadInput, UsageError
from tests.support.conversions import make_plan
from tests.support.three_tables import TABLES, batches


def converted(prefix, out, **changes):
    plan = make_plan(prefix)
    for table in plan.tables:
        table.pooling = "sum"
        for name, value in changes.items():
            setattr(table, name, value)
    migrate.convert(plan, out)
    return str(out)


def test_a_model_is_built_filled_and_trained_on_as_in_tensorflow(tf2_checkpoints, tmp_path):
    directory = converted(tf2_checkpoints / "centered", tmp_path / "out")
    expected = np.load(tf2_checkpoints / "centered.npz")
    config = read_model(directory)
    ebc = build(config)
    load(ebc, directory)
    chosen = build_optimizer(config, ebc)
    names = dict(ebc.named_parameters())
    for table, variable in TABLES.items():
        weight = ebc.embedding_bags[table].weight
        key = f"embedding_bags.{table}.weight"
        load_optimizer(chosen[table], {key: names[key]}, directory)
        for bags in batches()[table]:
            weight.grad = None
            pooled = ebc.embedding_bags[table](
                torch.from_numpy(bags.reshape(-1)), torch.arange(0, bags.size + 1, 3)
            )
            (0.5 * (pooled**2).sum()).backward()
            chosen[table].step()
        later = expected["later " + variable]
        assert np.abs(weight.detach().numpy() - later).max() <= 2e-6


def test_the_config_says_what_each_table_is(tf2_checkpoints, tmp_path):
    directory = converted(
        tf2_checkpoints / "adagrad_ref",
        tmp_path / "out",
        features=["a", "b"],
        cast="bfloat16",
        row_wise=True,
    )
    table = read_model(directory)["tables"][-1]
    optimizer = table.pop("optimizer")
    assert table == {
        "name": "user",
        "rows": 31,
        "dim": 8,
        "dtype": "bfloat16",
        "features": ["a", "b"],
        "pooling": "sum",
        "weighted": False,
        "static": None,
        "placement": None,
        "ids": None,
    }
    assert optimizer["class"] == "torchrec.optim.RowWiseAdagrad"
    assert optimizer["arguments"] == pytest.approx({"lr": 0.1, "eps": 0.0})


def test_a_fused_optimizer_is_given_to_the_backward_pass(tf2_checkpoints, tmp_path):
    directory = converted(tf2_checkpoints / "adagrad_ref", tmp_path / "out")
    ebc = build(read_model(directory), fused=True)
    (optimizer,) = ebc.embedding_bags["user"].weight._in_backward_optimizers
    assert isinstance(optimizer, torch.optim.Adagrad)
    assert optimizer.defaults["eps"] == 0.0


def test_what_the_config_leaves_open_is_asked_for(tf2_checkpoints, tmp_path):
    directory = converted(tf2_checkpoints / "ftrl", tmp_path / "out", pooling=None)
    config = read_model(directory)
    with pytest.raises(
        UsageError, match="has pooling None, expected one of .'mean', 'none', 'sum'"
    ):
        build(config)
    for table in config["tables"]:
        table["pooling"] = "mean"
    with pytest.raises(UsageError, match="no fused optimizer of TorchRec computes"):
        build(config, fused=True)
    ebc = build(config)
    del config["tables"][0]["optimizer"]["arguments"]["lr"]
    with pytest.raises(UsageError, match="set lr in the model config"):
        build_optimizer(config, ebc)
    config["tables"][0]["optimizer"]["class"] = None
    with pytest.raises(UsageError, match="no optimizer of torch computes what Ftrl did"):
        build_optimizer(config, ebc)
    config["tables"][0]["dtype"] = "float64"
    with pytest.raises(UsageError, match="is float64; TorchRec has"):
        build(config)


def test_a_directory_without_a_config_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"model\.json cannot be read"):
        read_model(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps({"schema": "other"}))
    with pytest.raises(BadInput, match="is not a model config"):
        read_model(tmp_path)


def test_a_table_without_rows_cannot_be_built(tf2_checkpoints, tmp_path):
    config = read_model(converted(tf2_checkpoints / "sgd", tmp_path / "out"))
    config["tables"][0]["rows"] = 0
    name = config["tables"][0]["name"]
    with pytest.raises(UsageError, match=f"'{name}' is 0 x 8, and TorchRec has no empty tables"):
        build(config)


def test_nadam_is_not_continued_as_adam(tf2_checkpoints, tmp_path):
    parameters = {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.999, "nesterov": 1.0}
    out = converted(tf2_checkpoints / "adam_ref", tmp_path / "out", hyperparameters=parameters)
    assert any("NadamOptimizer" in note for note in migrate.read_manifest(out).notes)
    config = read_model(out)
    with pytest.raises(UsageError, match="no optimizer of torch computes what Adam did"):
        build_optimizer(config, build(config))
