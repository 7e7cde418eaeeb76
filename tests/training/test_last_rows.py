"""The rows of an epoch that are less than a batch are trained on, as tf.data gives them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow.compat.v1 as tf
import torch

from migrate.training import Checkpoints
from semisync.cli import main
from tests.model.training.graphs import regression, saved
from tests.support.programs import output_of
from tests.training.command import arguments, refusal
from tests.training.kills import command, contents, differing

ROWS = 10
_DRAW = np.random.default_rng(3)
FEATURES, LABELS = (
    _DRAW.normal(size=(ROWS, 2)).astype("f"),
    _DRAW.integers(0, 2, ROWS).astype("f"),
)


def adagrad():
    loss, _ = regression()
    return tf.train.AdagradOptimizer(0.3).minimize(loss)


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """(a checkpoint, a file of ROWS rows)"""
    folder = tmp_path_factory.mktemp("linear")
    pq.write_table(pa.table({"x": FEATURES.tolist(), "y": LABELS}), folder / "rows.parquet")
    return saved(folder, adagrad), str(folder / "rows.parquet")


def by_tensorflow(prefix, size, epochs):
    """The weights after TensorFlow's steps on tf.data's batches."""
    with tf.Graph().as_default(), tf.Session() as session:
        data = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).batch(size).repeat(epochs)
        batch = tf.data.make_one_shot_iterator(data).get_next()
        train_op = adagrad()
        tf.train.Saver().restore(session, prefix)
        while True:
            try:
                x, y = session.run(batch)
            except tf.errors.OutOfRangeError:
                return session.run(tf.global_variables()[0])
            session.run(train_op, {"x:0": x, "y:0": y})


def trained(out, linear, size, *more):
    """(the weights, the report) of the command."""
    given = ["train", linear[0], "--data", linear[1], "--out", str(out), "--batch-size", str(size)]
    assert main([*given, "--epochs", "3", *more]) == 0
    checkpoints = Checkpoints(str(out / "checkpoints"))
    (name,) = (one for one in checkpoints.sizes(checkpoints.steps[-1]) if one.startswith("model."))
    weights = {name: torch.empty(checkpoints.sizes(checkpoints.steps[-1])[name])}
    checkpoints.load(checkpoints.steps[-1], weights)
    return weights[name].flatten(), json.loads((out / "report.json").read_text())


@pytest.mark.few(1)
@pytest.mark.parametrize(("size", "steps"), [(4, 9), (5, 6), (7, 6), (64, 3)])
def test_the_steps_are_those_of_tensorflow_on_tf_datas_batches(
    linear, tmp_path, capsys, size, steps
):
    weights, report = trained(tmp_path, linear, size)
    wanted = by_tensorflow(linear[0], size, 3)
    torch.testing.assert_close(weights, torch.from_numpy(wanted).flatten(), rtol=1e-6, atol=1e-7)
    assert report["steps"] == steps
    assert report["rows"] == {"read": 30, "trained": 30, "dropped": 0}
    assert "rows: 30 read, 30 trained, 0 dropped\n" in capsys.readouterr().out


def test_dropped_rows_are_counted(linear, tmp_path, capsys):
    _, report = trained(tmp_path / "out", linear, 4, "--last", "drop")
    assert report["steps"] == 6
    assert report["rows"] == {"read": 30, "trained": 24, "dropped": 6}
    assert "rows: 30 read, 24 trained, 6 dropped\n" in capsys.readouterr().out
    given = ["train", linear[0], "--data", linear[1], "--out", str(tmp_path / "other")]
    said = refusal([*given, "--last", "drop"], capsys)
    assert "has 10 rows, less than one global batch of 1 x 1024, which last='drop' leaves" in said


@pytest.mark.long
def test_gone_on_with_after_the_last_rows_it_ends_with_the_same_bits_and_counts(
    job, clicks, tmp_path
):
    def given(out, *more):
        return arguments(job, clicks, out, "--batch-size", "1000", "--last", "keep", *more)

    assert main(given(tmp_path / "whole")) == 0
    for steps in ("4", "5", "6", "10"):  # an epoch ends with the fifth
        assert main(given(tmp_path / "parts", "--resume", "--steps", steps)) == 0
    assert differing(contents(tmp_path / "whole")[1], contents(tmp_path / "parts")[1]) == []
    report, of_parts = (
        json.loads((tmp_path / name / "report.json").read_text()) for name in ("whole", "parts")
    )
    assert report == of_parts
    assert report["rows"] == {"read": 8192, "trained": 8192, "dropped": 0}
    assert report["training"]["rows"] == 8192


@pytest.mark.long
def test_every_row_has_its_score(job, clicks, tmp_path):
    scores = tmp_path / "scores.parquet"
    given = arguments(job, clicks, tmp_path / "out", "--epochs", "1", "--batch-size", "1000")
    assert main([*given, "--key", "key", "--scores", str(scores)]) == 0
    assert sorted(pq.read_table(scores)["key"].to_pylist()) == list(range(4096))


@pytest.mark.long
@pytest.mark.parametrize(("processes", "rows"), [(2, 267), (3, 200)])
@pytest.mark.few(1)
def test_processes_take_the_smaller_step_of_one(
    job, clicks, interpreters, tmp_path, processes, rows
):
    """2: shares of 1 and 2 rows. 3: shares of none, 1 and 1."""
    folder = tmp_path / "job"
    folder.mkdir()
    for path in job.glob("clicks.ckpt*"):
        (folder / path.name).symlink_to(path)
    pq.write_table(pq.read_table(clicks).slice(0, rows), folder / f"{rows}.parquet")
    more = ["--still", "--rows", str(rows)]
    alone = command(interpreters / "python", folder, tmp_path / "one", *more)
    output_of(*alone)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    several = command(interpreters / "python", folder, tmp_path / "several", *more)
    output_of(*several[:3], *launcher, *several[3:])
    (steps, one), (last, found) = contents(tmp_path / "one"), contents(tmp_path / "several")
    assert steps == last == 2 * (rows // 66 + 1)
    for name, value in one.items():
        if name.startswith("metrics") and name.endswith("rows"):
            assert value.sum() == found[name].sum() == 2 * rows  # all of one day
        elif not name.startswith(("random", "metrics")):
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5, msg=name)
