"""TensorFlow scores a DataFrame on the executors as `semisync score` does on one machine."""

import os
import signal
import time

import numpy as np
import psutil
import pyarrow.parquet
import pytest

import migrate
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.support.processes import running, running_with
from tests.support.require import fastest_tensorflow
from tests.support.spark import spark  # noqa: F401 (a fixture)

pytest.importorskip("pandas", reason="pandas, which mapInArrow asks for, is not installed")

CHILD = "scoring/tf_child"  # in its command line


def score(data, model, out, *options):
    """`semisync score`, by id."""
    return main(["score", data, *model, "--key", "id", "--label", "y", "--out", str(out), *options])


def check_same(found, expected, rows, tolerance=1e-6):
    """The scores of a folder are those of the rows, in `expected`."""
    found, rows = pyarrow.parquet.read_table(found).sort_by("id"), rows.sort_by("id")
    assert found["id"].to_pylist() == rows["id"].to_pylist()
    assert found["y"].to_pylist() == rows["y"].to_pylist()
    assert np.abs(found["score"].to_numpy() - expected).max() < tolerance


def in_order(rows, values):
    """The values by ascending id."""
    return values[np.argsort(rows["id"].to_pylist())]


def test_a_checkpoint_scores_as_on_one_machine(spark, models, data, rows, tmp_path):  # noqa: F811
    assert score(data, models.checkpoint, tmp_path / "files", "--spark", "local[1]") == 0
    check_same(tmp_path / "files", in_order(rows, models.expected["logits"]), rows)
    assert score(data, models.checkpoint, tmp_path / "alone.parquet") == 0
    alone = pyarrow.parquet.read_table(tmp_path / "alone.parquet").sort_by("id")
    check_same(tmp_path / "files", alone["score"].to_numpy(), rows)


def files(models):
    """The SavedModel that `write_models` wrote."""
    saved, python = str(models.folder / "saved"), models.python
    model = migrate.TensorFlowFiles(saved_model=saved, python=python)
    return model._replace(timeout=300)


def test_a_saved_model_scores_a_data_frame(spark, models, data, rows, tmp_path):  # noqa: F811
    frame = spark.read.parquet(data).repartition(3)
    scored = migrate.score_dataframe(frame, files(models), ["id", "y"], output="logits")
    scored.write.parquet(str(tmp_path / "frame"))
    check_same(tmp_path / "frame", in_order(rows, models.expected["logits"]), rows)


def test_the_executors_own_python_has_tensorflow_by_default(spark, tf2_models, data):  # noqa: F811
    model = migrate.TensorFlowFiles(saved_model=str(tf2_models.folder / "eager"))
    scored = migrate.score_dataframe(spark.read.parquet(data), model, ["id"])
    found = {row["id"]: row["score"] for row in scored.collect()}
    ids = spark.read.parquet(data).toPandas()["id"]
    assert np.allclose([found[one] for one in ids], tf2_models.expected["eager"], atol=1e-6)


@pytest.fixture
def score_again(spark, tf1_models, data):  # noqa: F811
    """Scores in TensorFlow on the executors, by a new plan, as Spark keeps what it sorted."""

    def collected():
        frame, model = spark.read.parquet(data), files(tf1_models)
        scored = migrate.score_dataframe(frame, model, ["id"], output="logits")
        return sorted(scored.collect())

    for process in children():  # of other tests
        os.kill(process, signal.SIGKILL)
    return collected


def children():
    return running_with(CHILD, os.getpid())


def wait_for_end(processes):
    deadline = time.monotonic() + 60
    while running() & set(processes):
        assert time.monotonic() < deadline, "they still run"
        time.sleep(0.1)


def test_a_process_of_tensorflow_serves_many_tasks_and_is_started_again_when_it_dies(score_again):
    before, processes = score_again(), children()
    assert score_again() == before
    assert set(processes) <= set(children())
    for process in processes:
        os.kill(process, signal.SIGKILL)
    assert score_again() == before
    assert not set(processes) & set(children())


def test_a_process_of_tensorflow_ends_with_its_executors_python(score_again):
    before, processes = score_again(), children()
    for worker in {psutil.Process(process).ppid() for process in processes}:
        os.kill(worker, signal.SIGKILL)
    wait_for_end(processes)
    assert score_again() == before


def test_what_the_executors_lack_is_one_sentence_and_no_folder(
    spark,  # noqa: F811
    tf1_models,
    data,
    tmp_path,
    capsys,
):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise ImportError('none here')\n")
    without = tmp_path / "python"
    without.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {fastest_tensorflow()} "$@"\n')
    without.chmod(0o755)
    place = tf1_models.checkpoint.index("--tf-python")
    for python, sentence in (
        (str(without), "has no TensorFlow (none here); --tf-python names an interpreter that has"),
        ("/no/such/python", "/no/such/python cannot be run: No such file or directory"),
    ):
        model = list(tf1_models.checkpoint)
        model[place + 1] = python
        assert score(data, model, tmp_path / "files", "--spark", "local[1]") == 3
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1
    model = list(tf1_models.checkpoint)
    model[model.index("age")] = "years=age"
    assert score(data, model, tmp_path / "files", "--spark", "local[1]") == 3
    assert "has no column 'years'; it has: id, y, user, age, genres" in capsys.readouterr().err
    assert not (tmp_path / "files").exists()


def test_files_that_are_no_model_are_refused(spark, tmp_path, data):  # noqa: F811
    frame = spark.read.parquet(data)
    with pytest.raises(BadInput, match="is not a SavedModel, it has no saved_model.pb"):
        model = migrate.TensorFlowFiles(saved_model=str(tmp_path))
        migrate.score_dataframe(frame, model, ["id"])
    with pytest.raises(BadInput, match="is a SavedModel or a checkpoint; give one of them"):
        migrate.score_dataframe(frame, migrate.TensorFlowFiles(), ["id"])
    with pytest.raises(BadInput, match="needs --output, the tensor that scores"):
        model = migrate.TensorFlowFiles(checkpoint=str(tmp_path / "model"))
        migrate.score_dataframe(frame, model, ["id"])


def test_a_score_that_depends_on_its_batch_is_a_warning(spark, graphs, tmp_path, capsys):  # noqa: F811
    inputs = ["--input", "x", "--input", "item", "--key", "item", "--spark", "local[1]"]
    model = graphs.checkpoint("batch", "normal")
    assert main(["score", *model, *inputs, "--out", str(tmp_path / "files")]) == 0
    error = capsys.readouterr().err
    assert error.startswith("semisync score: warning: ")
    assert "of the first 300 rows get another score when they are scored in two batches" in error
