"""A converted model scores a DataFrame on the executors as `semisync score` scores the file."""

import numpy as np
import pyarrow.parquet
import pytest

import migrate
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.support.spark import spark  # noqa: F401 (a fixture)

INPUTS = {"user": "user_id"}  # by column


@pytest.fixture(scope="module")
def converted(tf2_models, tmp_path_factory):
    """The conversion with its model.py."""
    out = tmp_path_factory.mktemp("converted") / "model"
    prefix = str(tf2_models.folder / "model.ckpt")
    assert main(["convert", prefix, str(out), "--model", "--output", "logits"]) == 0
    return str(out)


pytest.importorskip("pandas", reason="pandas, which mapInArrow asks for, is not installed")


def test_the_scores_are_those_of_the_command_by_key(spark, data, converted, tmp_path):  # noqa: F811
    rows = spark.read.parquet(data).repartition(3)
    scored = migrate.score_dataframe(rows, converted, ["id", "y"], sigmoid=True, inputs=INPUTS)
    scored.write.parquet(str(tmp_path / "spark"))
    out, options = tmp_path / "scores.parquet", ["--sigmoid", "--key", "id", "--label", "y"]
    arguments = ["score", data, "--converted", converted, "--input", "user=user_id", *options]
    assert main([*arguments, "--out", str(out)]) == 0
    found, expected = (
        pyarrow.parquet.read_table(path).sort_by("id") for path in (tmp_path / "spark", out)
    )
    assert found["id"].to_pylist() == expected["id"].to_pylist()
    assert found["y"].to_pylist() == expected["y"].to_pylist()
    for name in ("score", "logit"):
        ours, theirs = (table[name].to_numpy() for table in (found, expected))
        assert np.abs(ours - theirs).max() < 1e-6


def test_a_missing_column_is_named_before_anything_runs(spark, data, converted):  # noqa: F811
    rows = spark.read.parquet(data)
    with pytest.raises(BadInput, match="the DataFrame has no column 'age'; it has: id, y, user"):
        migrate.score_dataframe(rows.drop("age"), converted, ["id"], inputs=INPUTS)
    with pytest.raises(BadInput, match="has no column 'key'; it has: id, y, user, age, genres"):
        migrate.score_dataframe(rows, converted, ["key"], inputs=INPUTS)
