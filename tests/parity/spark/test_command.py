"""`semisync parity --spark`: files read by Spark, one or two, and the report of the other paths."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from semisync.cli import main
from tests.parity.spark.conftest import assert_same_figures, sample

COLUMNS = ["--label", "y", "--baseline-score", "old", "--candidate-score", "new"]
TWO = ["old", "short.orc", "--key", "id"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """old, a folder, and short.orc to be joined by id; others that do not fit."""
    folder = tmp_path_factory.mktemp("scores")
    table = pa.table(sample(rows=1_000, seed=2))
    (folder / "old").mkdir()
    for first in (0, 500):
        piece = table.select(["id", "y", "old", "user"]).slice(first, 500)
        pyarrow.parquet.write_table(piece, folder / "old" / f"{first}.parquet")
    new = table.select(["id", "y", "new"]).take(np.random.default_rng(0).permutation(1_000))
    pyarrow.orc.write_table(new.slice(5), folder / "short.orc")
    flipped = new.set_column(1, "y", pa.array(~new["y"].to_numpy()))
    pyarrow.parquet.write_table(flipped, folder / "flipped.parquet")
    (folder / "text.csv").write_text("id,y\n1,0\n")
    return folder


@pytest.fixture
def run(spark, folder, tmp_path, capsys):
    """Runs the subcommand on files of the folder; returns exit code, report or None, and stderr."""

    def run(*arguments, on="local-cluster[2,1,512]"):
        out = tmp_path / (on or "memory")
        where = ["--spark", on] if on else []
        arguments = [str(folder / one) if (folder / one).exists() else one for one in arguments]
        code = main(["parity", *arguments, *COLUMNS, *where, "--out", str(out)])
        report = out / "report.json"
        found = json.loads(report.read_text()) if report.exists() else None
        return code, found, capsys.readouterr()[1].replace(f"{folder}/", "")

    return run


def test_the_report_is_that_of_one_machine(run):
    arguments = [*TWO, "--allow-misses", "--group", "user", "--fill", "user=0", "--margin", "0.05"]
    arguments += ["--require", "pcoc=0.5", "gauc=0.1", "auc>=0.6"]
    code, report, errors = run(*arguments)
    assert report is not None, errors
    expected_code, expected, _ = run(*arguments, on=None)
    (_, ours), (_, theirs) = ((r.pop("diagnosis"), r.pop("provenance")) for r in (report, expected))
    assert ours.get("join") == theirs.get("join")
    assert_same_figures(report, expected)
    assert code == expected_code


def test_runs_in_files_of_their_own_are_joined(spark, tmp_path, capsys):
    rng = np.random.default_rng(0)
    data = sample(rows=500, ties=True)
    files = []
    for run in range(3):
        scores = data["old"] * rng.uniform(0.9, 1, 500)
        table = pa.table({"id": data["id"], "y": data["y"], "p": scores, "user": data["user"]})
        files.append(str(tmp_path / f"{run}.parquet"))
        pyarrow.parquet.write_table(table.take(rng.permutation(500)), files[-1])
    command = ["parity", "--baseline", *files[:2], "--candidate", files[2], "--key", "id", "--json"]
    command += ["--label", "y", "--baseline-score", "p", "--group", "user", "--seed-sd", "0.01"]
    found = []
    for where in ([], ["--spark", "local-cluster[2,1,512]"]):
        main([*command, *where])
        found.append(json.loads(capsys.readouterr()[0]))
        del found[-1]["provenance"], found[-1]["diagnosis"]
    assert_same_figures(found[1], found[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.parquet"], "Spark cannot read nowhere.parquet as Parquet or ORC: "),
        (["text.csv"], "Spark cannot read text.csv as Parquet or ORC: "),
        (TWO, "5 only in old, 0 only in short.orc; --allow-misses leaves them out"),
        (["old", "flipped.parquet", "--key", "id"], "the labels of 1,000 joined rows disagree"),
        (["old", "short.orc", "--key", "user"], "short.orc has no column 'user'; it has: id, y, "),
        (["old", "--worst", "3"], "--worst does not go with --spark: single rows are"),
    ],
)
def test_bad_input_ends_with_exit_code_3_and_no_report(run, arguments, message):
    code, report, errors = run(*arguments)
    assert (code, report) == (3, None)
    assert message in errors


def test_without_java_one_sentence_says_so(monkeypatch, tmp_path, capsys):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    arguments = ["scores.parquet", *COLUMNS, "--out", "out", "--spark", "local[1]"]
    assert main(["parity", *arguments]) == 3
    assert "Spark needs Java 17 or later, but there is no java" in capsys.readouterr()[1]
