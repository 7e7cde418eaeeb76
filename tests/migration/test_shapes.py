"""Graphs of a fixed batch whose inputs have three dimensions, from nested and from flat lists."""

import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync.cli import main
from tests.support.require import forked_tensorflow, tf1_python
from tests.support.written import written

WRITER = pathlib.Path(__file__).with_name("write_images.py")


def job(python):
    """The prefix, and the arrays of its rows."""
    folder = written(python, WRITER)
    with np.load(folder / "rows.npz", allow_pickle=True) as arrays:
        return str(folder / "model.ckpt"), dict(arrays)


def flat(array):
    return array.reshape(len(array), -1).tolist()


FORMS = {"nested": lambda array: array.tolist(), "flat": flat}


def write(path, rows, form):
    columns = {name: form(rows[name]) for name in ("image", "words")}
    columns.update((name, rows[name].tolist()) for name in ("item", "clicked"))
    pyarrow.parquet.write_table(pa.table({**columns, "id": list(range(150))}), path)
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "form"), [(1, "nested"), pytest.param(2, "flat", marks=pytest.mark.again)]
)
def test_the_whole_way(tmp_path, version, form):
    python = forked_tensorflow(tf1_python() if version == 1 else sys.executable)
    prefix, rows = job(python)
    data, out = write(tmp_path / "rows.parquet", rows, FORMS[form]), tmp_path / "out"
    command = ["migrate", prefix, "--data", data, "--label", "clicked", "--key", "id"]
    assert main([*command, "--out", str(out), "--tf-python", python]) == 0
    report = json.loads((out / "report.json").read_text())
    assert {part["state"] for part in report["parts"]} == {"passed"}
    for side in ("tensorflow", "torch"):
        found = pyarrow.parquet.read_table(out / f"{side}.parquet")["logit"].to_numpy()
        np.testing.assert_allclose(found, rows["scores"], rtol=1e-5, atol=2e-6)


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """(the prefix, the rows, the conversion)."""
    prefix, rows = job(forked_tensorflow())
    out = str(tmp_path_factory.mktemp("images") / "out")
    assert main(["convert", prefix, out, "--model", "--output", "logits"]) == 0
    return prefix, rows, out


@pytest.mark.few(1)
@pytest.mark.parametrize("side", ["tensorflow", "torch"])
@pytest.mark.parametrize("form", ["nested", "flat", "csv"])
def test_either_side_scores_every_row_once(converted, tmp_path, side, form):
    prefix, rows, out = converted
    if form == "csv":
        data = tmp_path / "rows.csv"
        words = [[word.decode() for word in row] for row in flat(rows["words"])]
        lines = [
            ",".join(["|".join(map(repr, image)), "|".join(text), str(item)])
            for image, text, item in zip(flat(rows["image"]), words, rows["item"])
        ]
        data.write_text("\n".join(["image,words,item", *lines]))
    else:
        data = write(tmp_path / "rows.parquet", rows, FORMS[form])
    inputs = [f"--input={name}" for name in ("image", "words", "item")]
    models = {
        "torch": ["--converted", out],
        "tensorflow": ["--checkpoint", prefix, "--output", "logits", *inputs],
    }
    options = ["--out", str(tmp_path / "scores"), "--tf-python", forked_tensorflow()]
    assert main(["score", str(data), *models[side], *options, "--batch-size", "100"]) == 0
    found = pyarrow.parquet.read_table(tmp_path / "scores")["score"].to_numpy()
    np.testing.assert_allclose(found, rows["scores"], rtol=1e-5, atol=2e-6)


def test_training_goes_on_from_flat_lists(converted, tmp_path, capsys):
    prefix, rows, _ = converted
    data = write(tmp_path / "rows.parquet", rows, flat)
    command = ["train", prefix, "--data", data, "--label", "clicked", "--batch-size", "16"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "150 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (
            lambda rows: [row[:-1] for row in flat(rows)],
            "column 'image' in row 1 has 11 values, expected 12",
        ),
        (lambda rows: [[*row[:3], row[3][:2]] for row in rows.tolist()], "has 2 values, the first"),
    ],
)
def test_lists_that_do_not_fit_are_a_sentence(converted, tmp_path, capsys, images, sentence):
    prefix, rows, out = converted
    data = write(tmp_path / "rows.parquet", rows, flat)
    table = pyarrow.parquet.read_table(data)
    pyarrow.parquet.write_table(table.set_column(0, "image", [images(rows["image"])]), data)
    capsys.readouterr()
    options = ["--forward", data, "--tf-python", forked_tensorflow()]
    assert main(["verify", prefix, out, *options]) == 3
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
