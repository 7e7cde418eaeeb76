"""Logits are compared as probabilities of float64, which have a log loss where float32's are 1.0;
where there is none, the terminal and the report say why."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync.cli import main

ROWS = 2000


@pytest.fixture
def files(tmp_path, monkeypatch):
    """both.parquet with labels, logits and their float32 probabilities; new.parquet, to join."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    label = random.random(ROWS) < 0.4
    old = (8 * random.normal(size=ROWS) + 6 * label).astype(np.float32)
    new = (old + 0.01 * random.normal(size=ROWS)).astype(np.float32)
    columns = {"id": np.arange(ROWS), "y": label, "old": old, "new": new}
    for name in ("old", "new"):
        columns[f"p_{name}"] = probability(columns[name]).astype(np.float32)
    assert (columns["p_old"] == 1).any()
    table = pa.table(columns)
    pyarrow.parquet.write_table(table, "both.parquet")
    renamed = table.select(["id", "new", "p_new"]).rename_columns(["id", "old", "p_new"])
    pyarrow.parquet.write_table(renamed, "new.parquet")
    return columns


def probability(logits):
    return 1 / (1 + np.exp(-logits.astype(np.float64)))


def log_loss(label, logits):
    return np.logaddexp(0, np.where(label, -1, 1) * logits.astype(np.float64)).mean()


def report(capsys, *arguments):
    """report.json and what the terminal says."""
    assert main(["parity", *arguments, "--label", "y", "--out", "out"]) in (0, 1, 2)
    with open("out/report.json") as file:
        return json.load(file), capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["both.parquet", "--baseline-logit", "old", "--candidate-logit", "new"],
        ["both.parquet", "new.parquet", "--key", "id", "--baseline-logit", "old"],
        ["both.parquet", "--baseline-logit", "old", "--candidate-logit", "new", "--memory", "0"],
        ["both.parquet", "new.parquet", "--key", "id", "--baseline-logit=old", "--memory=0"],
    ],
)
def test_the_log_loss_of_large_logits_is_theirs(files, capsys, arguments):
    found, _ = report(capsys, *arguments)
    for side, name in (("baseline", "old"), ("candidate", "new")):
        exact = log_loss(files["y"], files[name])
        assert found[side]["logloss"] == pytest.approx(exact, rel=1e-7)
    assert found["unavailable"] == []
    assert found["provenance"]["columns"]["logits"] == ["baseline_score", "candidate_score"]


def test_a_logit_is_compared_with_a_probability(files, capsys):
    """The smallest probabilities of float32 are as good as float64's; only those near 1 are not."""
    found, out = report(capsys, "both.parquet", "--baseline-logit=old", "--candidate-score=p_old")
    assert found["baseline"]["logloss"] == pytest.approx(log_loss(files["y"], files["old"]))
    assert found["candidate"]["logloss"] is None
    ones = int((files["p_old"] == 1).sum())
    sentence = (
        f"are not available: of the candidate's scores {ones:,} are 1 exactly. They need scores"
    )
    assert sentence in found["unavailable"][0]
    assert sentence in out
    assert abs(found["delta"]) < 1e-4


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([], "the baseline's scores lie between "),
        (["--memory", "0"], "a score is 0, 1 or outside of them"),
    ],
)
def test_scores_that_are_no_probabilities_have_no_log_loss_and_it_is_said(
    files, capsys, more, reason
):
    columns = ["--baseline-score", "old", "--candidate-score", "new"]
    found, out = report(capsys, "both.parquet", *columns, *more)
    assert found["baseline"]["logloss"] is None
    assert f"Log loss, NE, PCOC and ECE are not available: {reason}" in found["unavailable"][0]
    assert found["unavailable"][0] in out


def test_a_side_has_a_score_or_a_logit(files, capsys):
    columns = ["--baseline-logit", "old", "--baseline-score", "p_old"]
    assert main(["parity", "both.parquet", *columns, "--label", "y", "--out", "out"]) == 3
    assert "give either --baseline-score or --baseline-logit" in capsys.readouterr().err


def test_parts_of_logits_and_of_scores_are_not_merged(files, capsys):
    columns = ["both.parquet", "--label", "y", "--candidate-score", "p_new"]
    assert main(["parity", *columns, "--baseline-logit", "old", "--partial", "one"]) == 0
    assert main(["parity", *columns, "--baseline-score", "old", "--partial", "two"]) == 0
    assert main(["parity", "--merge", "one", "two", "--out", "out"]) == 3
    assert "parts must be made alike" in capsys.readouterr().err
