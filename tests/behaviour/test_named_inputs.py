"""What feeds a graph is named: any of its tensors, as TensorFlow itself takes them."""

import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

import migrate
from semisync import cli
from semisync.common.errors import BadInput, UsageError
from tests.model.features import outputs_of
from tests.support.require import forked_tensorflow, tf1_python
from tests.support.written import written

WRITER = pathlib.Path(__file__).with_name("write_fed.py")


def job(python):
    """The prefix, the rows, and the inputs by name: beyond a PyFunc, and one of two halves."""
    folder = written(python, WRITER)
    with np.load(folder / "rows.npz") as arrays:
        rows = dict(arrays)
    inputs = {"logs": "logs:0", "user": "parsed:1", "left": "halves:0", "x": "x"}
    return str(folder / "model.ckpt"), rows, {**inputs, "tags": ",".join(rows["sparse"])}


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.again)])
def python(request):
    return forked_tensorflow(tf1_python() if request.param == 1 else sys.executable)


def test_a_module_takes_the_tensors_that_are_named(python):
    prefix, rows, inputs = job(python)
    module = migrate.load_model(prefix, output="scores", inputs=inputs)
    assert set(module.tensorflow_inputs) == set(inputs)
    tags = torch.tensor(rows["tags"])
    indices = torch.cartesian_prod(torch.arange(40), torch.arange(3))
    given = {name: torch.tensor(rows[name]) for name in ("logs", "user", "left", "x")}
    given["tags"] = (indices, tags.reshape(-1), torch.tensor([40, 3]))
    (found,) = outputs_of(module, given)
    np.testing.assert_allclose(found, rows["scores"], rtol=0, atol=2e-6)


def test_verify_feeds_the_same_tensors_in_tensorflow(python, tmp_path, capsys):
    prefix, rows, inputs = job(python)
    out, data = str(tmp_path / "out"), str(tmp_path / "rows.parquet")
    pyarrow.parquet.write_table(pa.table({name: list(rows[name]) for name in inputs}), data)
    named = [f"--input={name}={what}" for name, what in inputs.items()]
    assert cli.main(["convert", prefix, out, "--model", "--output", "scores", *named]) == 0
    capsys.readouterr()
    options = ["--forward", data, "--no-onnx", "--json", "--tf-python", python]
    assert cli.main(["verify", prefix, out, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["equal"], found["rows"]) == (True, 40)
    path = pathlib.Path(out) / "model.py"
    path.write_text(path.read_text().replace("2.0", "2.1"))
    assert cli.main(["verify", prefix, out, *options]) == 1
    assert json.loads(capsys.readouterr().out)["first"]["line"] is not None
    sides = {"torch": ["--converted", out], "tensorflow": ["--checkpoint", prefix]}
    sides["tensorflow"] += [*named[:4], f"--sparse=tags={inputs['tags']}", "--output", "scores"]
    path.write_text(path.read_text().replace("2.1", "2.0"))
    scores = []
    for side, model in sides.items():
        file = str(tmp_path / side)
        assert cli.main(["score", data, *model, "--out", file, "--tf-python", python]) == 0
        scores.append(pyarrow.parquet.read_table(file)["score"].to_numpy())
    np.testing.assert_allclose(*scores, rtol=0, atol=2e-6)


@pytest.mark.few(1)
def test_a_migration_begins_where_its_columns_are_fed(tmp_path):
    prefix, rows, inputs = job(forked_tensorflow())
    data, out = tmp_path / "rows.parquet", tmp_path / "out"
    columns = {name: list(rows[name]) for name in inputs}
    pyarrow.parquet.write_table(pa.table({**columns, "clicked": [0, 1] * 20}), data)
    command = ["migrate", prefix, "--data", str(data), "--label", "clicked", "--out", str(out)]
    command += ["--output", "scores", "--sigmoid", "--steps", "0", "--sparse"]
    command += [f"tags={inputs.pop('tags')}", *(f"--input={n}={t}" for n, t in inputs.items())]
    assert cli.main([*command, "--tf-python", forked_tensorflow()]) == 0
    report = json.loads((out / "report.json").read_text())
    taken = {one["column"]: one["tensors"] for one in report["features"]}
    assert report["verdict"] == "MIGRATED"
    assert (taken["logs"], taken["user"], taken["x"]) == (["logs:0"], ["parsed:1"], ["x:0"])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"x": None}, "depends on 'x', which no --input names; name it too"),
        ({"x": "y"}, "has no tensor 'y:0'"),
        ({"x": "kernel"}, "'kernel:0' is a variable, which is not an input"),
        ({"x": "x:0,logs:0"}, "a tensor or a sparse one's indices, values and shape"),
        ({"x": "halves:0"}, "--input names 'halves:0' twice"),
    ],
)
def test_what_is_not_the_graphs_or_not_enough_is_a_sentence(changed, sentence):
    prefix, _, inputs = job(forked_tensorflow())
    inputs = {name: what for name, what in {**inputs, **changed}.items() if what is not None}
    with pytest.raises(UsageError, match=sentence):
        migrate.load_model(prefix, output="scores", inputs=inputs)


def test_python_code_that_is_still_needed_is_named():
    prefix, _, inputs = job(forked_tensorflow())
    del inputs["user"]
    with pytest.raises(BadInput, match="read by 'embedding_lookup'.*--input one behind them"):
        migrate.load_model(prefix, output="scores", inputs=inputs)


def test_a_name_is_given_once_and_with_a_model(tmp_path, capsys):
    prefix, _, _ = job(forked_tensorflow())
    out = str(tmp_path / "out")
    assert cli.main(["convert", prefix, out, "--model", "--input", "x", "--input", "x=logs"]) == 3
    assert "--input names 'x' twice" in capsys.readouterr().err
    assert cli.main(["convert", prefix, out, "--input", "x"]) == 3
    assert "--input says what the module of --model takes; give both" in capsys.readouterr().err
