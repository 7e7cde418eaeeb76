"""Graphs of a fixed number of rows: model.py takes any, or says why it does not."""

import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

import migrate
from migrate.behaviour.every_row import ScoreFiles, compare_scores
from migrate.runtime.source import read_source
from semisync.cli import main
from semisync.common.errors import UsageError
from semisync.migration.verdict import Part, State, Verdict, in_words
from tests.support.require import fastest_tensorflow, forked_tensorflow
from tests.support.written import written

WRITER = pathlib.Path(__file__).with_name("write_fixed.py")
FREE = ["dropped", "sixteen", "sized", "normed"]
FIXED = {
    "positions": "the constant 'Const' has other values for each of the 16 rows",
    "mean": "'Mean' is computed of all rows of a batch",
    "first": "'strided_slice' is computed of all rows of a batch",
    "crossed": "of 'MatMul_1' (MatMul) rows meet each other",
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fixed")
    found = written(fastest_tensorflow(), WRITER)
    rows = dict(np.load(found / "rows.npz"))
    rows["history"] = list(rows["history"])
    pyarrow.parquet.write_table(pa.table(rows), folder / "rows.parquet")
    for name in (*FREE, *FIXED):
        arguments = ["convert", str(found / f"{name}.ckpt"), str(folder / name), "--model"]
        assert main([*arguments, "--output", "logits"]) == 0
    return found, folder


def named(model):
    """--input for each of its inputs, in the order of the iterator's components: by their names."""
    columns = dict(zip(sorted(model.INPUTS), ("history", "item", "price")))
    return {name: columns[name] if ":" in name else name for name in model.INPUTS}


def options(model):
    return [f"--input={column}={name}" for name, column in named(model).items()]


def batch(folder, model, count):
    table = pyarrow.parquet.read_table(folder / "rows.parquet").slice(0, count)
    return {
        name: torch.from_numpy(np.stack(table[column].to_numpy(zero_copy_only=False)))
        for name, column in named(model).items()
    }


@pytest.mark.parametrize("name", FREE)
def test_model_py_takes_any_number_of_rows_of_a_graph_that_takes_sixteen(jobs, name):
    _, folder = jobs
    model = read_source(str(folder / name))
    assert all(one.shape[0] is None for one in model.INPUTS.values())
    module = model.load()
    whole = module(batch(folder, model, 16))
    for count in (1, 7, 50):
        found = module(batch(folder, model, count))
        assert found.shape == (count,)
        torch.testing.assert_close(found[:16], whole[:count], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FREE)
@pytest.mark.few(1)
def test_it_is_compared_with_tensorflow_whose_batches_are_filled_up(jobs, name, capsys):
    found, folder = jobs
    where = [str(found / f"{name}.ckpt"), str(folder / name), "--tf-python", forked_tensorflow()]
    model, rows = read_source(str(folder / name)), str(folder / "rows.parquet")
    capsys.readouterr()
    assert main(["verify", *where, "--forward", rows, "--no-onnx", *options(model)]) == 0
    printed = capsys.readouterr().out
    assert "note: the graph takes 16 rows at a time, and model.py any number" in printed
    assert "equal: 50 rows" in printed
    source = folder / name / "model.py"
    text = source.read_text()
    fault = "return logits + 0.5 * (len(logits) in (1, 7))"
    source.write_text(text.replace("return logits", fault))
    try:
        assert main(["verify", *where, "--forward", rows, "--no-onnx", *options(model)]) == 1
    finally:
        source.write_text(text)
    assert "8 of 50 rows differ" in capsys.readouterr().out


@pytest.mark.parametrize("name", FREE)
@pytest.mark.few(1)
def test_its_steps_are_tensorflows_and_it_trains_in_batches_of_any_size(jobs, name, tmp_path):
    found, folder = jobs
    model, rows = read_source(str(folder / name)), str(folder / "rows.parquet")
    label = (
        ["--input=clicked=clicked"] if name == "sized" else ["--input=clicked=IteratorGetNext:0"]
    )
    where = [str(found / f"{name}.ckpt"), str(folder / name), "--tf-python", forked_tensorflow()]
    assert main(["verify", *where, "--steps", "2", "--data", rows, *options(model), *label]) == 0
    where = [str(found / f"{name}.ckpt"), "--data", rows, "--out", str(tmp_path / "trained")]
    assert main(["train", *where, *options(model), *label, "--batch-size", "25"]) == 0


@pytest.mark.parametrize("name", ["dropped", "sized"])
def test_a_mean_over_the_batch_is_one_over_any_number_of_rows(jobs, name):
    """tf.losses divides by 16, a constant, where the shapes are known."""
    found, folder = jobs
    training = migrate.build_training(str(found / f"{name}.ckpt"))
    module, model = training.module.eval(), read_source(str(folder / name))
    clicked = "clicked" if name == "sized" else "IteratorGetNext:0"
    table = pyarrow.parquet.read_table(folder / "rows.parquet")
    whole = {
        **batch(folder, model, 48),
        clicked: torch.from_numpy(table["clicked"].to_numpy()[:48].copy()),
    }
    parts = [{k: v[first : first + 16] for k, v in whole.items()} for first in (0, 16, 32)]
    losses = torch.stack([module(part) for part in parts])
    torch.testing.assert_close(module(whole), losses.mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.few(1)
def test_rows_that_do_not_stay_apart_are_fixed_and_everything_says_so(jobs, name, tmp_path, capsys):
    found, folder = jobs
    model, rows = read_source(str(folder / name)), str(folder / "rows.parquet")
    assert all(one.shape[0] == 16 for one in model.INPUTS.values())
    assert "# The model takes 16 rows at a time" in (folder / name / "model.py").read_text()
    with pytest.raises(
        UsageError, match="takes 16 rows at a time, as its graph does, and 'It.*has 7"
    ):
        model.load()(batch(folder, model, 7))
    prefix, why = str(found / f"{name}.ckpt"), f"since {FIXED[name]}"
    capsys.readouterr()
    again = ["convert", prefix, str(tmp_path / "again"), "--model", "--output", "logits"]
    assert main(again) == 0
    assert f"model.py takes 16 rows at a time, as the graph does, {why}" in capsys.readouterr().out
    where = [prefix, str(folder / name), "--tf-python", forked_tensorflow(), "--no-onnx", "--json"]
    assert main(["verify", *where, "--forward", rows, *options(model)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["equal"], report["fixed"]) == (True, 16)
    part = Part("forward", "", State.PASSED, "", {"report": report})
    assert "It takes 16 rows at a time, and no other number." in in_words(Verdict.MIGRATED, [part])


@pytest.mark.parametrize("name", ["positions", "crossed"])
def test_training_in_batches_of_another_size_is_refused_with_the_size_that_does(
    jobs, name, tmp_path, capsys, monkeypatch
):
    found, folder = jobs
    monkeypatch.setattr("migrate.training.converted_task.build_training", None)  # at once
    model, rows = read_source(str(folder / name)), str(folder / "rows.parquet")
    prefix, why = str(found / f"{name}.ckpt"), f"since {FIXED[name]}"
    label = "--input=clicked=IteratorGetNext:0"
    arguments = ["train", prefix, "--data", rows, "--out", str(tmp_path), *options(model), label]
    assert main([*arguments, "--batch-size", "25"]) == 3
    error = capsys.readouterr().err
    assert f"--batch-size 25: the graph takes 16 rows at a time, {why}" in error
    assert "give --batch-size 16" in error
    assert main([*arguments, "--batch-size", "16", "--last", "keep"]) == 3
    assert f"--last keep: the graph takes 16 rows at a time, {why}" in capsys.readouterr().err


def test_the_last_rows_are_dropped_with_a_word_where_the_graph_takes_sixteen(
    jobs, tmp_path, capsys
):
    found, folder = jobs
    model, rows = read_source(str(folder / "positions")), str(folder / "rows.parquet")
    arguments = ["train", str(found / "positions.ckpt"), "--data", rows, "--batch-size", "16"]
    label = "--input=clicked=IteratorGetNext:0"
    assert (
        main([*arguments, "--eval-data", rows, "--out", str(tmp_path), *options(model), label]) == 0
    )
    said = capsys.readouterr().out
    assert f"--last drop: the graph takes 16 rows at a time, since {FIXED['positions']}" in said
    assert "rows: 50 read, 48 trained, 2 dropped" in said


@pytest.mark.long
def test_all_scores_of_a_graph_of_sixteen_rows_are_judged_in_its_batches(jobs, tmp_path):
    found, folder = jobs
    prefix, rows = str(found / "sized.ckpt"), str(folder / "rows.parquet")
    for side, of in (("theirs", 0.0), ("ours", 0.25)):
        scores = np.zeros(50, "f")
        scores[40] = of
        table = pa.table({"row": np.arange(50), "score": scores})
        pyarrow.parquet.write_table(table, tmp_path / side)
    files = ScoreFiles(str(tmp_path / "theirs"), str(tmp_path / "ours"), "row", "score")
    report = compare_scores(prefix, str(folder / "sized"), rows, files)
    assert (report.rows, report.beyond, report.largest, report.at.row) == (50, 1, 0.25, 41)
