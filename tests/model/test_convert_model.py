"""`semisync convert --model`: the model's source beside its weights."""

import json

import fsspec
import numpy as np
import pytest
import torch

import migrate
from migrate.torchrec import embedding_bag_collection, load
from semisync import cli
from tests.model.features import features, loaded, outputs_of
from tests.model.zoo.read import models


@pytest.fixture(scope="module")
def wide_and_deep(zoo):
    (model,) = [m for m in models(zoo) if m.said["name"] == "canned_wide_and_deep"]
    return model


@pytest.fixture(scope="module")
def converted(wide_and_deep, tmp_path_factory):
    out = tmp_path_factory.mktemp("converted") / "out"
    assert cli.main(["convert", wide_and_deep.prefix, str(out), "--model"]) == 0
    return out


def test_the_source_loads_its_weights_and_gives_tensorflows_scores(wide_and_deep, converted):
    logits = wide_and_deep.outputs()["logits"]
    found = outputs_of(loaded(converted), features(wide_and_deep))[0]
    assert np.abs(found - logits).max() <= 2e-6


@pytest.mark.long
def test_it_is_the_module_that_load_model_gives(wide_and_deep, converted):
    ours, theirs = loaded(converted), migrate.load_model(wide_and_deep.prefix)
    assert theirs.source == (converted / "model.py").read_text()
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value)


def test_it_can_be_moved_with_its_directory(wide_and_deep, converted, tmp_path):
    moved = converted.rename(tmp_path / "moved")
    try:
        assert (moved / "assets").is_dir()  # a vocabulary
        assert outputs_of(loaded(moved), features(wide_and_deep))[0].shape == (48, 1)
    finally:
        moved.rename(converted)


@pytest.mark.long
def test_it_goes_to_a_store_whole_and_torch_loads_from_there(
    wide_and_deep, converted, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    out = "memory://bucket/out"
    assert cli.main(["convert", wide_and_deep.prefix, out, "--model"]) == 0
    assert f"wrote {out}/model.py" in capsys.readouterr().out
    fs = fsspec.filesystem("memory")
    there = {name[len("/bucket/out/") :]: fs.cat_file(name) for name in fs.find("/bucket/out")}
    files = [path for path in converted.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert there == {str(path.relative_to(converted)): path.read_bytes() for path in files}
    assert cli.main(["verify", wide_and_deep.prefix, out]) == 0
    assert cli.main(["inspect", out]) == 0
    assert f"({migrate.read_manifest(out).target})" in capsys.readouterr().out
    names = [table.name for table in migrate.read_manifest(out).tables]
    from_store, from_disk = (
        embedding_bag_collection(str(where), {name: [name] for name in names})
        for where in (out, converted)
    )
    load(from_store, out)
    load(from_disk, str(converted))
    for name, value in from_disk.state_dict().items():
        assert torch.equal(from_store.state_dict()[name], value)
    fs.rm("/bucket", recursive=True)


def test_its_layers_are_named_as_the_graphs_scopes(converted):
    assert "self.dnn_hiddenlayer_0 = nn.Linear(" in (converted / "model.py").read_text()


@pytest.mark.long
@pytest.mark.parametrize("name", ["deepfm", "din", "dcn", "gru", "mmoe"])
def test_lines_are_short(zoo, name):
    (model,) = [model for model in models(zoo) if model.said["name"] == name]
    source = migrate.load_model(model.prefix, output=list(model.said["outputs"].values())).source
    assert [line for line in source.splitlines() if len(line) > 100] == []


def test_output_without_model_is_refused(wide_and_deep, tmp_path, capsys):
    arguments = ["convert", wide_and_deep.prefix, str(tmp_path / "out"), "--output", "logits"]
    assert cli.main(arguments) == 3
    assert "--model" in capsys.readouterr().err


@pytest.mark.long
def test_a_variable_that_the_conversion_dropped_is_named_when_the_model_is_loaded(
    wide_and_deep, tmp_path
):
    out = tmp_path / "out"
    arguments = ["convert", wide_and_deep.prefix, str(out), "--model"]
    assert cli.main([*arguments, "--drop", "dnn/logits/bias"]) == 0
    assert "dnn/logits/bias" in json.loads((out / "manifest.json").read_text())["dropped"]
    with pytest.raises(migrate.model.load.BadInput, match="does not have the variable 'dnn/logits"):
        loaded(out)
