"""`semisync parity --partial` and `--merge`: what does not add up is refused, with its reason."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from parity.histogram.counts import Counts, Kind, Source
from semisync.cli import main


@pytest.fixture
def made(tmp_path, monkeypatch, capsys):
    """Two days of scores in the working directory; runs the command, returns code and stderr."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for day in ("mon", "tue"):
        labels = rng.random(500) < 0.3
        scores = {name: labels / 2 + rng.random(500) for name in "ab"}
        table = pa.table({"id": np.arange(500), "y": labels, **scores})
        pyarrow.parquet.write_table(table, f"{day}.parquet")

    def run(*arguments):
        code = main(["parity", *arguments])
        return code, capsys.readouterr().err

    return run


def count(run, files, part, scores=("a", "b"), options=()):
    columns = ["--label", "y", "--baseline-score", scores[0], "--candidate-score", scores[1]]
    assert run(*files, *columns, *options, "--partial", part)[0] == 0


def test_a_merged_report_knows_the_files_and_columns_of_its_parts(made, tmp_path):
    for day in ("mon", "tue"):
        count(made, [f"{day}.parquet"], day)
    assert made("--merge", "mon", "tue", "--margin", "0.5", "--out", "report")[0] == 0
    origin = json.loads((tmp_path / "report" / "report.json").read_text())["provenance"]
    assert [file["path"] for file in origin["files"]] == ["mon.parquet", "tue.parquet"]
    assert origin["columns"] == {"label": "y", "baseline_score": "a", "candidate_score": "b"}


def test_a_part_or_a_file_that_comes_twice_is_refused(made, tmp_path):
    count(made, ["mon.parquet"], "mon")
    count(made, ["*.parquet"], "all")
    for parts in (("mon", "mon"), ("mon", "all"), ("all", "mon")):
        code, error = made("--merge", *parts, "--out", "report")
        assert (code, error.count("\n")) == (3, 1)
        assert f"{parts[1]} counts mon.parquet, which {parts[0]} has counted" in error
    assert not (tmp_path / "report").exists()


def test_parts_of_one_baseline_and_several_candidate_files_add_up(made):
    table = pyarrow.parquet.read_table("mon.parquet").select(["id", "b"])
    pyarrow.parquet.write_table(table.slice(0, 250), "one.parquet")
    pyarrow.parquet.write_table(table.slice(250), "two.parquet")
    for name in ("one", "two"):
        options = ["--key", "id", "--allow-misses"]
        count(made, ["mon.parquet", f"{name}.parquet"], name, options=options)
    assert made("--merge", "one", "two", "--margin", "0.5", "--out", "report")[0] == 0
    assert made("--merge", "one", "one", "--out", "report")[0] == 3


def test_parts_of_other_columns_are_refused(made):
    count(made, ["mon.parquet"], "mon")
    count(made, ["tue.parquet"], "tue", scores=("b", "a"))
    code, error = made("--merge", "mon", "tue", "--out", "report")
    assert code == 3
    assert "tue counts the columns label 'y', baseline_score 'b', candidate_score 'a', mon" in error


def test_a_part_remembers_its_source(tmp_path):
    part = Counts(Kind())
    file = {"path": "day.csv", "sha256": "00", "bytes": 7}
    part.source = Source({"label": "y"}, ((file,),))
    part.save(str(tmp_path / "a.part"))
    assert Counts.load(str(tmp_path / "a.part")).source == part.source


def test_a_part_that_is_not_there_is_named(made):
    code, error = made("--merge", "nowhere.part", "--out", "report")
    assert (code, error) == (3, "semisync parity: there is no file nowhere.part\n")


def test_a_part_that_cannot_be_put_in_its_place_leaves_nothing(made, tmp_path):
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    columns = ["--label", "y", "--baseline-score", "a", "--candidate-score", "b"]
    code, error = made("mon.parquet", *columns, "--partial", "folder")
    assert (code, error) == (3, "semisync parity: folder cannot be written: Is a directory\n")
    assert sorted(tmp_path.iterdir()) == before
