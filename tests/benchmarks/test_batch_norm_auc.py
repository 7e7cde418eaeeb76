"""The experiment with BatchNorm's statistics runs, and its figures are what their names say."""

import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.batch_norm_auc_parts import norm, report, training
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from tests.support.programs import output_of
from tests.support.require import fastest_tensorflow

ROOT = pathlib.Path(__file__).resolve().parents[2]


def interactions(path, days=30, skills=1000):
    """A log with the real one's columns; of so many skills that the workers' parts are alike."""
    random, rows = np.random.RandomState(0), 3000
    columns = {
        "user": np.sort(random.randint(1, 40, rows)),
        "seq": np.arange(rows),
        "problem": random.randint(1, 60, rows),
        "skill": random.randint(1, skills, rows),
        "label": random.randint(0, 2, rows),
        "day": random.randint(0, days, rows),
    }
    order = np.lexsort((columns["user"], columns["seq"], columns["day"]))
    pq.write_table(pa.table({name: values[order] for name, values in columns.items()}), path)


def experiment(folder, *more):
    """One seed of semi-sync; returns the JSON and the Markdown."""
    interactions(folder / "log.parquet")
    command = [sys.executable, "-m", "benchmarks.batch_norm_auc"]
    command += ["--python", fastest_tensorflow()]
    command += ["--seeds", "1", "--modes", "semi-sync", "--data", str(folder / "log.parquet")]
    command += ["--json", str(folder / "found.json"), *more]
    printed = output_of(*command)
    return json.loads((folder / "found.json").read_text()), printed


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    # Moving statistics of the last batch, or of the last global batch, as the weights hardly move.
    # One worker: of several, one may push Keras' form of a variance below zero at this momentum.
    more = ["--momentum", "0.1", "--set", "workers=1", "learning_rate=1e-5"]
    more += ["local_batch=32", "batches_per_step=16", "most_steps=3"]
    return experiment(tmp_path_factory.mktemp("batch_norm"), *more)


@pytest.mark.long
def test_one_model_is_scored_with_each_statistics(found):
    (run,) = found[0]["results"]
    assert sum(run["trained"]) == 3 * 16
    assert sorted(run["scored"]) == ["batch", "by-hand", "keras", "layers", "own", "recomputed"]
    assert all(0 < figures["auc"] < 1 for figures in run["scored"].values())


@pytest.mark.long
def test_its_own_statistics_are_the_global_batchs_and_the_others_of_a_few_batches(found):
    distances = found[0]["results"][0]["distances"]
    own = distances.pop("own")["mean"]
    for form in ("layers", "keras", "by-hand"):
        assert own < 0.8 * distances[form]["mean"]  # of 512 rows, not of about 32
        assert distances[form]["variance"] < 1  # no longer the initial ones


@pytest.mark.long
def test_the_batch_of_a_worker_that_hangs_comes_when_all_others_are_done(tmp_path):
    sizes = ["workers=3", "ps=1", "local_batch=8", "batches_per_step=2", "most_steps=30"]
    found, _ = experiment(tmp_path, "--scenario", "hang", "--set", *sizes)
    (run,) = found["results"]
    assert sum(run["trained"]) == 60
    assert max(map(int, run["staleness"])) > 5  # of the 15 global steps that it does not see
    assert run["fates"]["stale"] >= 1


def test_a_worker_that_hangs_names_those_that_do_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "TIMEOUT", 0.0)
    (tmp_path / "worker-1.json").touch()
    training.wait_for([str(tmp_path / "worker-1.json")])
    with pytest.raises(SemisyncError, match="worker-2.json"):
        training.wait_for([str(tmp_path / name) for name in ("worker-1.json", "worker-2.json")])


@pytest.mark.parametrize("form", norm.FORMS)
def test_every_form_is_the_same_moving_average_where_nobody_else_writes(form):
    with tf.Graph().as_default(), tf.Session() as session:
        statistics = [tf.constant([3.0, 4.0]), tf.constant([5.0, 6.0])]
        layer = norm.Layer("bn", None, None)
        variables, moves = norm.keep(form, layer, statistics, momentum=0.9)
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(moves)
        mean, variance = session.run(variables)
    np.testing.assert_allclose(mean, [3 * 0.19, 4 * 0.19], rtol=1e-6)
    np.testing.assert_allclose(variance, [0.81 + 5 * 0.19, 0.81 + 6 * 0.19], rtol=1e-6)


@pytest.mark.long
def test_the_tables_name_mode_and_statistics(found):
    for name in ("semi-sync", "own", "layers", "keras", "by-hand", "recomputed", "batch"):
        assert "\n| {} |".format(name) in found[1]


def test_the_figures_are_those_of_scikit_learn():
    random = np.random.RandomState(0)
    labels, scores = random.randint(0, 2, 500), random.rand(500).astype(np.float32)
    values = report.figures(labels, scores)
    assert values["auc"] == pytest.approx(roc_auc_score(labels, scores))
    assert values["log_loss"] == pytest.approx(log_loss(labels, scores.astype(np.float64)))
    assert values["calibration"] == pytest.approx(scores.mean(dtype=np.float64) / labels.mean())
