"""The comparison on Spark has the figures of `parity.compare` on the same rows, to 1e-12."""

import dataclasses
import os
import signal

import numpy as np
import pytest

import parity
from parity.io.readers import ColumnNames, read_one
from semisync.common.errors import BadInput
from tests.parity.spark.conftest import assert_same_figures, frame, sample
from tests.support.processes import running_with


def in_memory(data, groups, weights, parts):
    """What one machine finds of the same rows."""
    columns = data["y"], data["old"], data["new"]
    more = {"clusters": data["user"] if groups else None, "weights": data["w"] if weights else None}
    found = parity.compare(*columns, **more)
    if not parts:
        return found
    days = parity.compare_days(*columns, data["day"], **more)
    slices = parity.compare_slices(*columns, data["country"], **more)
    return dataclasses.replace(found, days=days, slices=(("country", slices),))


def assert_same(found, expected):
    assert_same_figures(found.to_json(), expected.to_json())
    assert found.baseline.auc == pytest.approx(expected.baseline.auc, abs=1e-15)
    assert (found.score_difference.counts == expected.score_difference.counts).all()
    for side in ("baseline", "candidate"):
        rates = getattr(found, side).curve
        assert len(rates[0]) <= 129
        assert all((np.diff(rate) >= 0).all() and rate[0] == 0 and rate[-1] == 1 for rate in rates)


def test_figures_are_those_of_one_machine(spark):
    data = sample()
    df = frame(spark, data)
    found = parity.spark.compare(df, "y", "old", "new", key="id", slices=["country"], day="day")
    assert_same(found, in_memory(data, False, False, True))


def test_groups_weights_and_ties_are_those_of_one_machine(spark):
    data = sample(ties=True)
    columns = {"clusters": "user", "weights": "w", "slices": ["country"], "day": "day"}
    found = parity.spark.compare(frame(spark, data), "y", "old", "new", **columns)
    assert_same(found, in_memory(data, True, True, True))


def test_of_the_probabilities_of_both_classes_the_second_is_the_score(spark, tmp_path):
    """Spark ML's vectors and lists, on Spark, and on one machine as Spark writes them."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as F

    data = sample(rows=200)
    df = frame(spark, data).withColumn("old", array_to_vector(F.array(1 - F.col("old"), "old")))
    df = df.withColumn("new", F.array(1 - F.col("new"), "new"))
    expected = in_memory(data, False, False, False)
    assert_same(parity.spark.compare(df, "y", "old", "new"), expected)
    df.write.parquet(str(tmp_path / "written"))
    written = read_one(str(tmp_path / "written"), ColumnNames("y", "old", "new"))
    assert parity.compare(*written[:3]).delta == pytest.approx(expected.delta, abs=1e-15)


@pytest.mark.parametrize("groups", [False, True])
def test_several_runs_are_those_of_one_machine(spark, groups):
    data = sample(ties=not groups)
    rng = np.random.default_rng(3)
    for name, side in (("old2", "old"), ("new2", "new"), ("new3", "new")):
        data[name] = data[side] * rng.uniform(0.9, 1, len(data["y"]))
    data["new3"] = data["new3"] if groups else data["old2"]
    sides = [[data["old"], data["old2"]], [data["new"], data["new2"], data["new3"]]]
    clusters, weights = (data["user"], data["w"]) if groups else (None, None)
    expected = parity.compare_runs(data["y"], *sides, clusters=clusters, weights=weights)
    more = {"clusters": "user", "weights": "w"} if groups else {}
    columns = ["old", "old2"], ["new", "new2", "new3"]
    found = parity.spark.compare(frame(spark, data), "y", *columns, **more)
    assert_same_figures(found.to_json(), expected.to_json())
    assert any("A run of the candidate has the scores" in w for w in found.warnings) != groups


def test_models_that_rank_every_row_alike_are_found_so(spark):
    data = sample(rows=100)
    data["new"] = np.exp(data["old"])
    found = parity.spark.compare(frame(spark, data), "y", "old", "new")
    assert_same(found, in_memory(data, False, False, False))
    assert found.standard_error == 0


def test_a_lost_executor_changes_nothing(spark, monkeypatch):
    from parity.spark import whole  # which needs pyspark

    data, killed, second_sums = sample(seed=1, logits=True), [], whole._second_sums

    def after_a_kill(*given):
        """With the rows and running sums that are kept in the executors."""
        executors = running_with("CoarseGrainedExecutorBackend", below=os.getpid())
        os.kill(executors[0], signal.SIGKILL)
        killed.append(executors[0])
        return second_sums(*given)

    monkeypatch.setattr(whole, "_second_sums", after_a_kill)
    found = parity.spark.compare(frame(spark, data), "y", "old", "new", clusters="user")
    assert killed
    assert_same(found, in_memory(data, True, False, False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "the DataFrame has no column 'y'; it has: id, old, new"),
        ({"old": ["a"] * 5}, "the DataFrame: column 'old' holds string values, not numbers"),
        (
            {"old": [[0.3, 0.7]] * 3 + [[-1.0, 1.0], [0.5]]},
            "column 'old' in 1 rows does not hold the probabilities of both classes",
        ),
        ({"new": [0.1, np.nan, 0.3, np.inf, 0.5]}, "column 'new' is NaN or infinite in 2 rows"),
        ({"y": [0, 1, 2, 1, 0]}, "column 'y' holds 2; a label must be 0 or 1"),
        ({"y": [0, 0, 0, 0, 0]}, "column 'y': all 5 labels are 0"),
        ({"y": [0, None, 0, 1, 0]}, "column 'y' has no value in 1 of 5 rows"),
        ({"id": [1, 2, 2, 2, 3]}, "column 'id' is not a key: 2 rows repeat the key of an earlier"),
        ({"w": [1, 1, -1, 1, 1]}, "column 'w' holds -1; a weight must not be negative"),
    ],
)
def test_bad_input_is_one_sentence_that_names_the_column(spark, change, message):
    data = {"id": range(5), "y": [0, 1, 0, 1, 0], "old": np.linspace(0, 1, 5)}
    data.update({"new": np.linspace(1, 0, 5), **change})
    data = {name: values for name, values in data.items() if values is not None}
    weights = "w" if "w" in change else None
    with pytest.raises(BadInput) as error:
        parity.spark.compare(frame(spark, data), "y", "old", "new", key="id", weights=weights)
    assert message in str(error.value)
