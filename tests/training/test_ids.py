"""`semisync train` and `score` on ids that no table has: TensorFlow's refusals are one sentence."""

import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semisync.cli import main
from tests.support.written import written
from tests.training.command import arguments, refusal
from tests.training.write_ids import AT, CASES, ROWS


@pytest.fixture(scope="module")
def folder():
    return written(sys.executable, pathlib.Path(__file__).with_name("write_ids.py"))


def table_of(folder, column, one):
    rows = dict(np.load(folder / "rows.npz"))
    rows[column][AT] = one
    return pa.table(rows)


def command(folder, data, out, *more):
    given = ["train", str(folder / "model.ckpt"), "--data", str(data), "--label", "click"]
    return [*given, "--batch-size", str(ROWS), "--report-every", "1", "--out", str(out), *more]


LOOKED_UP = {"item": "model/item", "parts": "model/parts", "bag": "model/bag", "tag": "model/tag"}


@pytest.mark.few(1)
@pytest.mark.parametrize(("column", "one"), CASES)
def test_an_id_is_refused_where_tensorflow_refuses_it(folder, tmp_path, capsys, column, one):
    answer = json.loads((folder / "answers.json").read_text())[f"{column}={one}"]
    data = tmp_path / "rows.parquet"
    pq.write_table(table_of(folder, column, one), data)
    given = command(folder, data, tmp_path / "out", "--shuffle", str(ROWS))
    if answer is not None:
        assert main(given) == 0
        (line,) = (tmp_path / "out" / "log.jsonl").read_text().splitlines()
        assert json.loads(line)["loss"] == pytest.approx(answer, abs=1e-6)
        return
    said = refusal(given, capsys)
    if column in LOOKED_UP:
        place = f"{data}: column {column!r} in row {AT + 1} is {one}, "
        table = f"the table {LOOKED_UP[column]!r}, which has the rows 0 to 19: "
        assert said.startswith(f"semisync train: {place}no row of {table}TensorFlow ends there")
    else:  # ids that the graph computes, and a table of numbers, which no collection holds
        own, table = {
            "shifted": (one - 1, "the table 'model/shifted'"),
            "bias": (one, "its table"),
        }[column]
        sentence = f"the id {own} is no row of {table}, which has the rows 0 to 19: TensorFlow ends"
        assert sentence in said


def test_the_row_of_an_id_in_lists_is_that_of_its_file(job, clicks, tmp_path, capsys):
    rows = pq.read_table(clicks).slice(0, 600)
    tags = [[5], [], [2, -3]] * 199 + [None, [19], [29, -4, 30]]  # negative ones are left out
    rows = rows.set_column(rows.column_names.index("tags"), "tags", pa.array(tags))
    pq.write_table(rows.slice(0, 100), tmp_path / "a.parquet")
    path = tmp_path / "b.parquet"
    pq.write_table(rows, path, row_group_size=50)
    said = refusal(arguments(job, tmp_path / "*.parquet", tmp_path / "out"), capsys)
    assert f"{path}: column 'tags' in row 600 is 30, no row of the table 'model/tags'" in said


def test_a_converted_model_that_scores_names_the_id_and_the_table(folder, tmp_path, capsys):
    converted = tmp_path / "converted"
    assert main(["convert", str(folder / "model.ckpt"), str(converted), "--model"]) == 0
    capsys.readouterr()
    for column, one in (("item", -1), ("bag", 20), ("bias", 20)):
        data = tmp_path / "rows.parquet"
        pq.write_table(table_of(folder, column, one), data)
        out = ["--out", str(tmp_path / "scores.parquet")]
        said = refusal(["score", str(data), "--converted", str(converted), *out], capsys)
        table = "its table" if column == "bias" else f"the table 'model/{column}'"
        assert f"the id {one} is no row of {table}, which has the rows 0 to 19: " in said
