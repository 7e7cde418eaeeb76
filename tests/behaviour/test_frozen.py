"""`semisync verify`, `score` and `migrate` of frozen graphs, which have no variables."""

import json
import pathlib
import pickle
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from migrate.verification import Verification
from semisync import cli
from tests.support.require import forked_tensorflow, tf1_python
from tests.support.written import written

WRITER = pathlib.Path(__file__).with_name("write_frozen.py")


def converted(folder, python, name="frozen.pb"):
    """Paths of a frozen graph, its conversion, and rows for it, in `folder`."""
    source = written(python, WRITER)
    graph, out, rows = folder / name, folder / "out", folder / "rows.parquet"
    shutil.copy(source / name, graph)
    with np.load(source / "rows.npz") as arrays:
        pyarrow.parquet.write_table(pa.table({k: list(v) for k, v in arrays.items()}), rows)
    assert cli.main(["convert", str(graph), str(out), "--model"]) == 0
    return str(graph), str(out), str(rows)


@pytest.fixture
def frozen(tmp_path, capsys):
    found = converted(tmp_path, forked_tensorflow())
    capsys.readouterr()
    return found


@pytest.mark.parametrize(
    ("name", "version"),
    [("frozen.pb", 1), pytest.param("frozen.pb", 2, marks=pytest.mark.again), ("function.pb", 2)],
)
@pytest.mark.few(1)
def test_its_conversion_gives_what_tensorflow_gives(tmp_path, capsys, name, version):
    python = forked_tensorflow(tf1_python() if version == 1 else sys.executable)
    graph, out, rows = converted(tmp_path, python, name)
    capsys.readouterr()
    options = ["--forward", rows, "--no-onnx", "--json", "--tf-python", python]
    assert cli.main(["verify", graph, out, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["equal"], found["rows"], len(found["outputs"])) == (True, 60, 1)


def test_its_constants_are_verified_and_a_wrong_one_is_found(frozen, capsys):
    graph, out, rows = frozen
    assert cli.main(["verify", graph, out]) == 0
    assert "agree in every value" in capsys.readouterr().out
    path = pathlib.Path(out) / "constants.npz"
    with np.load(path) as arrays:
        constants = dict(arrays)
    constants["kernel"][7] += 0.5
    np.savez(path, **constants)
    assert cli.main(["verify", graph, out]) == 1
    assert "'kernel': 1 of 43 rows differ" in capsys.readouterr().out
    options = ["--forward", rows, "--no-onnx", "--tf-python", forked_tensorflow()]
    assert cli.main(["verify", graph, out, *options]) == 1
    assert "other values than the checkpoint: constants.npz" in capsys.readouterr().out


def planted(out):
    """A path that its model.py makes when it is run; it is what it was but for that."""
    marker, path = pathlib.Path(out) / "ran", pathlib.Path(out) / "model.py"
    path.write_text(f"open({str(marker)!r}, 'w')\n" + path.read_text())
    return marker


def test_verify_runs_no_model_and_says_that_it_did_not_check_its_text(frozen, capsys):
    graph, out, _ = frozen
    assert cli.main(["verify", graph, out]) == 0
    found = capsys.readouterr().out
    assert found.startswith("verified: model.py is what the conversion writes, ")
    assert "not checked" not in found
    marker = planted(out)
    assert cli.main(["verify", graph, out]) == 0
    found = capsys.readouterr().out
    assert "model.py is what" not in found and "rows of 2 tensors agree in every value" in found
    assert "; not checked: model.py, whose text is not what this version writes" in found
    assert not marker.exists()


def test_nothing_to_compare_is_no_agreement(tmp_path, capsys):
    graph, out, _ = converted(tmp_path, forked_tensorflow(), "bare.pb")
    capsys.readouterr()
    assert cli.main(["verify", graph, out]) == 0
    assert capsys.readouterr().out == "verified: model.py is what the conversion writes\n"
    marker = planted(out)
    assert cli.main(["verify", graph, out]) == 1
    assert "there is nothing to compare: no constant is beside" in capsys.readouterr().out
    assert not marker.exists()
    assert not Verification("a", "b").verified


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("model.py", b"OUTPUTS = (", "model.py cannot be read: "),
        ("model.py", b"OUTPUTS = " + b"(" * 10**5, "model.py cannot be read: "),
        ("model.py", b"OUTPUTS = exit(0)", "model.py cannot be read: "),
        ("model.py", b"x = 1", "model.py has no OUTPUTS; convert the model again"),
        ("model.py", b"\xff", "model.py cannot be read: "),
        ("constants.npz", b"PK\x03\x04", "constants.npz cannot be read: "),
        ("constants.npz", pickle.dumps([1]), "constants.npz cannot be read: "),
    ],
)
def test_what_is_damaged_is_a_sentence(frozen, capsys, name, data, sentence):
    graph, out, _ = frozen
    (pathlib.Path(out) / name).write_bytes(data)
    assert cli.main(["verify", graph, out]) == 3
    assert sentence in capsys.readouterr().err


def test_a_changed_line_is_shown(frozen, capsys):
    graph, out, rows = frozen
    path = pathlib.Path(out) / "model.py"
    path.write_text(path.read_text().replace("torch.relu(", "torch.tanh("))
    options = ["--forward", rows, "--no-onnx", "--tf-python", forked_tensorflow()]
    assert cli.main(["verify", graph, out, *options]) == 1
    printed = capsys.readouterr().out
    assert "which is not what the conversion writes" in printed
    assert "torch.tanh(" in printed


def test_both_sides_score_it(frozen, tmp_path):
    graph, out, rows = frozen
    sides = {
        "tensorflow": ["--checkpoint", graph, "--output", "score", "--input=x", "--input=city"],
        "torch": ["--converted", out],
    }
    scores = []
    for side, model in sides.items():
        path = str(tmp_path / side)
        options = ["--out", path, "--tf-python", forked_tensorflow()]
        assert cli.main(["score", rows, *model, *options]) == 0
        scores.append(pyarrow.parquet.read_table(path)["score"].to_numpy())
    assert len(scores[0]) == 60
    np.testing.assert_allclose(*scores, rtol=0, atol=2e-6)


def test_it_is_migrated_for_scoring(frozen, tmp_path, capsys):
    graph, _, rows = frozen
    out = tmp_path / "migrated"
    command = ["migrate", graph, "--data", rows, "--label", "clicked", "--out", str(out)]
    command += ["--tf-python", forked_tensorflow()]
    assert cli.main(command) == 2
    assert "has no training op" in capsys.readouterr().out
    assert cli.main([*command, "--steps", "0"]) == 0
    report = json.loads((out / "report.json").read_text())
    states = {part["state"] for part in report["parts"] if part["name"] != "training"}
    assert (report["verdict"], states) == ("MIGRATED", {"passed"})
    assert any("the graph is frozen" in sentence for sentence in report["left"])


@pytest.mark.parametrize("command", ["inspect", "train"])
def test_what_needs_variables_says_what_takes_it(frozen, tmp_path, capsys, command):
    graph, _, rows = frozen
    more = ["--data", rows, "--out", str(tmp_path / "new")] if command == "train" else []
    assert cli.main([command, graph, *more]) == 3
    assert "is not a checkpoint; a frozen graph, which has no variables" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sample", "3"], "whose constants are all compared: drop --sample"),
        (["--steps", "3", "--data", "rows"], "has no training op"),
    ],
)
def test_what_it_does_not_have_is_a_sentence(frozen, capsys, options, sentence):
    graph, out, _ = frozen
    assert cli.main(["verify", graph, out, *options]) == 3
    assert sentence in capsys.readouterr().err
