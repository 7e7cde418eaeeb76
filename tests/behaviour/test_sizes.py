"""Batches whose size only the graph's code says, and losses that are not one number."""

import pathlib

import pyarrow.parquet
import pytest

from migrate.runtime.source import read_source
from semisync.cli import main
from tests.support.require import fastest_tensorflow
from tests.support.written import written

WRITER = pathlib.Path(__file__).with_name("write_sizes.py")


@pytest.fixture(scope="module")
def jobs():
    return written(fastest_tensorflow(), WRITER)


def converted(jobs, name, folder):
    assert main(["convert", str(jobs / f"{name}.ckpt"), str(folder / name), "--model"]) == 0
    return str(folder / name)


def verify(jobs, name, directory, *more):
    where = [str(jobs / f"{name}.ckpt"), directory, *more, "--tf-python", fastest_tensorflow()]
    return main(["verify", *where])


@pytest.mark.long
def test_a_batch_that_a_reshape_fixes_is_scored_and_verified_whole(jobs, tmp_path):
    rows, directory = str(jobs / "rows.csv"), converted(jobs, "reshaped", tmp_path)
    tensorflow = ["--checkpoint", str(jobs / "reshaped.ckpt"), "--output", "logits"]
    for name, model in (("torch", ["--converted", directory]), ("tensorflow", tensorflow)):
        more = ["--out", str(tmp_path / name), "--tf-python", fastest_tensorflow()]
        assert main(["score", rows, *model, *more]) == 0
    theirs, ours = (
        pyarrow.parquet.read_table(tmp_path / one)["score"].to_pylist()
        for one in ("tensorflow", "torch")
    )
    assert len(ours) == 50
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert verify(jobs, "reshaped", directory, "--forward", rows, "--no-onnx") == 0
    assert verify(jobs, "reshaped", directory, "--steps", "4", "--data", rows) == 0


def test_a_batch_that_a_reshape_fixes_is_free_in_torch(jobs, tmp_path):
    job, rows = str(jobs / "reshaped.ckpt"), str(jobs / "rows.csv")
    model = read_source(converted(jobs, "reshaped", tmp_path))
    assert all(one.shape == [None] for one in model.INPUTS.values())
    more = ["--data", rows, "--label", "clicked", "--out", str(tmp_path / "out")]
    assert main(["train", job, *more, "--batch-size", "10"]) == 0


@pytest.mark.long
def test_the_first_size_of_an_output_that_no_reshape_makes_says_nothing(jobs, tmp_path, capsys):
    job, out = str(jobs / "mean.ckpt"), str(tmp_path / "out.parquet")
    more = ["--checkpoint", job, "--output", "mean", "--tf-python", fastest_tensorflow()]
    assert main(["score", str(jobs / "rows.csv"), *more, "--out", out]) == 3
    assert "output is [16] for 50 rows; one score per row is expected\n" in capsys.readouterr().err


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["one", "vector"])
def test_a_loss_of_another_shape_trains_by_its_sum(jobs, name, tmp_path):
    rows, directory = str(jobs / "rows.csv"), converted(jobs, name, tmp_path)
    steps = ["--steps", "4", "--data", rows, "--batch-size", "10"]
    assert verify(jobs, name, directory, *steps) == 0
    more = ["--data", rows, "--label", "clicked", "--out", str(tmp_path / "trained")]
    assert main(["train", str(jobs / f"{name}.ckpt"), *more, "--batch-size", "10"]) == 0
