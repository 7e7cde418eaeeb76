"""A converted model as a wheel of its own, which imports nothing of this project."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch

import migrate
from semisync import cli
from semisync.common.errors import BadInput, UsageError
from tests.model.features import features, outputs_of
from tests.model.zoo.read import models

_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
import wheel_model as model
inputs = torch.load(sys.argv[2], weights_only=False)
with torch.no_grad():
    found = model.load()(inputs)
torch.save(found, sys.argv[3])
ours = {"migrate", "numba", "pyarrow", "semisync", "torchrec"}
print(*sorted(ours.intersection(sys.modules)))
"""


@pytest.fixture(
    params=[
        "conv_slim",
        "deepfm",
        pytest.param("words", marks=pytest.mark.long),
        pytest.param("canned_wide_and_deep", marks=pytest.mark.long),
    ]
)
def subject(request, zoo, tmp_path):
    """(name, a zoo model, the directory of its conversion)."""
    (model,) = [model for model in models(zoo) if model.said["name"] == request.param]
    out = str(tmp_path / "converted")
    assert cli.main(["convert", model.prefix, out, "--model"]) == 0
    return request.param, model, out


def given(model, folder):
    """The recorded inputs, text as lists, in a file."""
    inputs = {
        key: value.numpy().tolist() if hasattr(value, "offsets") else value
        for key, value in features(model).items()
        if not isinstance(value, list)
    }
    sparse = {key: value for key, value in features(model).items() if isinstance(value, list)}
    for key, (indices, values, shape) in sparse.items():
        text = values.numpy().tolist() if hasattr(values, "offsets") else values
        inputs[key] = (indices, text, shape)
    torch.save(inputs, folder / "inputs.pt")
    return folder / "inputs.pt"


NEEDS = {
    "conv_slim": [],
    "deepfm": ["torchrec"],
    "words": ["numba", "pyarrow", "torchrec"],
    "canned_wide_and_deep": ["numba", "pyarrow", "torchrec"],
}


@pytest.mark.long
def test_an_installed_wheel_scores_as_the_model(subject, tmp_path):
    name, model, out = subject
    wheel = migrate.write_wheel(out, str(tmp_path / "dist"), "wheel_model", "2.1")
    assert wheel.endswith("wheel_model-2.1-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
        metadata = archive.read("wheel_model-2.1.dist-info/METADATA").decode()
    required = {line.partition(": ")[2].partition(">=")[0] for line in metadata.splitlines()}
    assert required >= {"torch", *NEEDS[name]} and not {"migrate", "semisync_ctr"} & required
    command = [sys.executable, "-I", "-c", _PROGRAM, tmp_path / "installed", given(model, tmp_path)]
    done = subprocess.run(
        [*command, tmp_path / "found.pt"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == NEEDS[name]
    expected = outputs_of(migrate.load_model(model.prefix), features(model))
    found = torch.load(tmp_path / "found.pt")
    for one, other in zip(found if isinstance(found, tuple) else (found,), expected):
        np.testing.assert_allclose(one, other, 1e-6, 1e-6)


def test_what_pip_reads_of_it_is_whole(zoo, tmp_path):
    (model,) = [model for model in models(zoo) if model.said["name"] == "fm"]
    out = str(tmp_path / "converted")
    assert cli.main(["convert", model.prefix, out, "--model"]) == 0
    wheel = migrate.write_wheel(out, str(tmp_path), "wheel_model")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    report = ["--dry-run", "--ignore-installed", "--report", str(tmp_path / "report.json")]
    done = subprocess.run([*command, *report, wheel], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads((tmp_path / "report.json").read_text())["install"]
    assert (one["metadata"]["name"], one["metadata"]["version"]) == ("wheel_model", "1.0")


def test_a_name_or_a_version_that_is_none_is_refused(tmp_path):
    for name in ("Model", "my-model", "torch", "migrate", ""):
        with pytest.raises(UsageError, match="is not the name of a package"):
            migrate.write_wheel(str(tmp_path), str(tmp_path), name)
    with pytest.raises(UsageError, match="'latest' is not a version"):
        migrate.write_wheel(str(tmp_path), str(tmp_path), "clicks", "latest")
    with pytest.raises(BadInput, match="has no model.py; convert the model with --model"):
        migrate.write_wheel(str(tmp_path), str(tmp_path / "dist"), "clicks")
