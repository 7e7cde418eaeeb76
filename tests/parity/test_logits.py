"""Logits are ranked as they are and have a log loss however large they are; where scores have none,
the terminal and the report say why."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics import roc_auc_score

import parity
from semisync.cli import main
from semisync.common.errors import UsageError

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


@pytest.mark.few(1)
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


@pytest.mark.few(1)
@pytest.mark.parametrize("memory", [[], ["--memory", "0"]])
def test_models_that_differ_in_logits_above_37_alone_differ(files, capsys, memory):
    """Whose probabilities are 1.0 in float64, so that they tied."""
    random = np.random.default_rng(1)
    label = random.random(20_000) < 0.3
    old = 12 * (random.normal(size=20_000) + 1.2 * label) + 15
    new = old + 0.001 * random.normal(size=20_000)
    hot = old > 37
    new[hot] = 37 + (old[hot].max() - old[hot])
    pyarrow.parquet.write_table(pa.table({"y": label, "old": old, "new": new}), "hot.parquet")
    reports = [
        report(capsys, "hot.parquet", f"--baseline-{kind}=old", f"--candidate-{kind}=new", *memory)
        for kind in ("logit", "score")
    ]
    (by_logit, _), (by_score, _) = reports
    for side, logits in (("baseline", old), ("candidate", new)):
        precision = by_logit["bound"] or 1e-12
        assert by_logit[side]["auc"] == pytest.approx(roc_auc_score(label, logits), abs=precision)
        assert by_logit[side]["auc"] == by_score[side]["auc"]
        assert by_logit[side]["logloss"] == pytest.approx(log_loss(label, logits), rel=1e-9)
    assert by_logit["interval"] == by_score["interval"]
    assert by_logit["verdict"] == "NOT_EQUIVALENT"


@pytest.mark.parametrize("offset", [-800, -40, 0, 36, 98])
def test_no_offset_ties_logits(offset):
    random = np.random.default_rng(offset % 5)
    label = random.random(ROWS) < 0.5
    logits = offset + random.normal(size=ROWS) + label
    moved = logits + 1e-3 * random.normal(size=ROWS)
    found = parity.compare(label, logits, moved, logits=["baseline", "candidate"])
    assert found.baseline.auc == pytest.approx(roc_auc_score(label, logits), abs=1e-14)
    assert found.baseline.tied_pairs == 0
    assert found.baseline.logloss == pytest.approx(log_loss(label, logits), rel=1e-12)
    apart = log_loss(label, moved) - log_loss(label, logits)
    assert found.logloss_difference.delta == pytest.approx(apart, abs=1e-12)
    assert found.score_difference.logit.max == pytest.approx(np.abs(moved - logits).max())
    assert not found.unavailable


def test_figures_of_logits_within_the_range_of_probabilities_are_those_of_probabilities():
    random = np.random.default_rng(2)
    label = random.random(ROWS) < 0.5
    logits = random.normal(size=ROWS) + label
    given = probability(logits), probability(logits + 0.1 * random.normal(size=ROWS))
    columns = (label, np.log(given[0]) - np.log1p(-given[0]), given[1])
    found = parity.compare(*columns, logits="baseline").to_json()
    table = pa.table(dict(zip(("y", "old", "new"), columns)))
    names = {"label": "y", "baseline": "old", "candidate": "new"}
    assert parity.compare(table, logits=["baseline"], **names).to_json() == found
    expected = parity.compare(label, *given).to_json()
    assert found["baseline"]["logloss"] == pytest.approx(sklearn_log_loss(label, given[0]))
    assert _numbers(found) == pytest.approx(_numbers(expected), rel=1e-9, abs=1e-12)
    first, second = (
        parity.worst_rows(*rows, 3, logits=held)[0]
        for rows, held in ((columns, ["baseline"]), ((label, *given), []))
    )
    assert first.row == second.row
    assert first.baseline == pytest.approx(second.baseline)


def _numbers(value):
    """All that a report's JSON holds, in order; what is not a number as its place."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return [value if isinstance(value, (int, float)) else -1]


def test_logits_are_of_a_side_of_the_comparison():
    with pytest.raises(UsageError, match="logits names 'old'; 'baseline', 'candidate' or both"):
        parity.compare([0, 0, 1, 1], [1, 2, 3, 4], [1, 2, 4, 3], logits=["old"])


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
