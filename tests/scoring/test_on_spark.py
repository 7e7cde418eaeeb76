"""A converted model scores a DataFrame on the executors as `semisync score` scores the file."""

import shutil

import numpy as np
import pyarrow as pa
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


def command(data, converted, out, *options):
    """`semisync score` with the model's scores as logits and probabilities, by id."""
    arguments = ["score", data, "--converted", converted, "--input", "user=user_id", "--sigmoid"]
    arguments += ["--key", "id", "--label", "y", "--out", str(out), *options]
    return main(arguments)


def test_the_scores_are_those_of_one_machine_by_key(spark, data, converted, tmp_path):  # noqa: F811
    rows = spark.read.parquet(data).repartition(3)
    scored = migrate.score_dataframe(rows, converted, ["id", "y"], sigmoid=True, inputs=INPUTS)
    scored.write.parquet(str(tmp_path / "frame"))
    assert command(data, converted, tmp_path / "files", "--spark", "local[1]") == 0
    assert command(data, converted, tmp_path / "alone.parquet") == 0
    alone, *others = (
        pyarrow.parquet.read_table(tmp_path / name).sort_by("id")
        for name in ("alone.parquet", "frame", "files")
    )
    for table in others:
        assert table["id"].to_pylist() == alone["id"].to_pylist()
        assert table["y"].to_pylist() == alone["y"].to_pylist()
        for name in ("score", "logit"):
            found, expected = (one[name].to_numpy() for one in (table, alone))
            assert np.abs(found - expected).max() < 1e-6


def test_a_value_that_cannot_be_taken_ends_with_code_3(
    spark,  # noqa: F811
    rows,
    converted,
    tmp_path,
    capsys,
):
    broken = rows.set_column(3, "age", pa.array([None] * len(rows), pa.float32()))
    pyarrow.parquet.write_table(broken, tmp_path / "broken.parquet")
    data = str(tmp_path / "broken.parquet")
    assert command(data, converted, tmp_path / "files", "--spark", "local[1]") == 3
    assert "column 'age' in row 1 is " in capsys.readouterr()[1]
    assert not (tmp_path / "files").exists()


def test_a_missing_column_is_named_before_anything_runs(spark, data, converted):  # noqa: F811
    rows = spark.read.parquet(data)
    with pytest.raises(BadInput, match="the DataFrame has no column 'age'; it has: id, y, user"):
        migrate.score_dataframe(rows.drop("age"), converted, ["id"], inputs=INPUTS)
    with pytest.raises(BadInput, match="has no column 'key'; it has: id, y, user, age, genres"):
        migrate.score_dataframe(rows, converted, ["key"], inputs=INPUTS)


def test_a_model_that_was_converted_anew_is_loaded_anew(
    spark,  # noqa: F811
    tf2_models,
    data,
    tmp_path,
):
    prefix, out = str(tf2_models.folder / "model.ckpt"), tmp_path / "model"

    def highest(output):
        assert main(["convert", prefix, str(out), "--model", "--output", output]) == 0
        rows = spark.read.parquet(data).coalesce(1)
        scored = migrate.score_dataframe(rows, str(out), ["id"], inputs=INPUTS, column=0)
        found = max(row["score"] for row in scored.collect())
        shutil.rmtree(out)
        return found

    assert highest("logits") != highest("concat")


def test_no_rows_give_no_scores(spark, rows, converted, tmp_path):  # noqa: F811
    pyarrow.parquet.write_table(rows.slice(0, 0), tmp_path / "none.parquet")
    data = str(tmp_path / "none.parquet")
    assert command(data, converted, tmp_path / "files", "--spark", "local[1]") == 0
    assert len(pyarrow.parquet.read_table(tmp_path / "files")) == 0
