"""Rows that pull hardest are told with what names them, however the rows were read."""

import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from parity.io.look_up import values_at
from semisync.cli import main
from tests.parity.kinds import columns

COLUMNS = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q", "--margin", "0.2"]
ROWS = 3000


@pytest.fixture
def table(tmp_path, monkeypatch):
    """one.parquet; old.parquet in two files, and new.parquet in another order."""
    labels, old, new = columns(ROWS, 1.0)
    number = np.arange(ROWS)
    data = {
        "id": (number * 3).astype(np.uint64) + np.uint64(2**63),
        "y": labels,
        "p": old,
        "q": new,
        "user": number // 10,
    }
    data["at"] = pa.array(number, pa.timestamp("ns"))
    data["tags"] = [[n, n + 1] for n in number.tolist()]
    data["gaps"] = pa.array([None if n % 2 else f"name {n}" for n in number.tolist()])
    data["country"] = np.array(["de", "fr"])[number % 2]
    monkeypatch.chdir(tmp_path)
    table = pa.table(data)
    (tmp_path / "old").mkdir()
    pyarrow.parquet.write_table(table, "one.parquet")
    pyarrow.parquet.write_table(table.slice(0, 1000).drop(["q"]), "old/1.parquet")
    pyarrow.parquet.write_table(table.slice(1000).drop(["q"]), "old/2.parquet")
    order = np.random.default_rng(0).permutation(ROWS)
    pyarrow.parquet.write_table(table.take(order).select(["id", "q"]).slice(50), "new.parquet")
    return table


def worst(*arguments):
    assert main(["parity", *arguments, *COLUMNS, "--worst", "7", "--out", "out"]) in (0, 1, 2)
    with open("out/report.json") as file:
        return json.load(file)["worst_rows"]


@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.parametrize(
    "files", [["one.parquet"], ["old", "new.parquet", "--key", "id", "--allow-misses"]]
)
@pytest.mark.few(2)
def test_worst_rows_come_with_key_day_slices_and_chosen_columns(table, capsys, memory, files):
    arguments = ["--show", "tags", "gaps", "--day", "country", "--slice", "country"]
    found = worst(*files, "--group", "user", *arguments, "--show", "at", "--memory", memory)
    assert len(found) == 7
    names = ["id", "user", "country", "tags", "gaps", "at"][len(files) == 1 :]
    for row in found:
        assert list(row["columns"]) == names
        given = {name: table[name][row["row"]].as_py() for name in names if name != "at"}
        given["tags"] = str(given["tags"])
        at = row["columns"].pop("at")
        assert at.startswith("1970-01-01 00:00:00.00000") and int(at[-9:]) == row["row"]
        assert row["columns"] == {name: given[name] for name in names if name != "at"}
        assert row["baseline"] == pytest.approx(table["p"][row["row"]].as_py())
    page = pathlib.Path("out/report.html").read_text("utf-8")
    assert f"<td>{found[0]['columns']['tags']}</td>" in page


def test_a_column_to_show_that_is_not_there_ends_it_before_the_comparison(table, capsys):
    arguments = ["one.parquet", *COLUMNS, "--worst", "1", "--show", "none", "--out", "out"]
    assert main(["parity", *arguments]) == 3
    assert "one.parquet has no column 'none'" in capsys.readouterr().err
    assert main(["parity", "one.parquet", *COLUMNS, "--show", "at", "--out", "out"]) == 3
    assert (
        "--show lists columns of the worst rows; --worst says how many" in capsys.readouterr().err
    )


def test_values_are_looked_up_in_any_order_and_format(table, tmp_path):
    rows = [2999, 0, 1000, 999, 0]
    expected = [
        {"user": row // 10, "gaps": f"name {row}" if row % 2 == 0 else None} for row in rows
    ]
    assert values_at("old", ["user", "gaps"], rows) == expected
    pyarrow.csv.write_csv(table.select(["user", "gaps"]), "one.csv")
    as_text = [{**row, "user": str(row["user"])} for row in expected]
    assert values_at("one.csv", ["user", "gaps"], rows) == as_text
