"""The demo end to end, as a user runs it but with fewer batches."""

import contextlib
import html
import io
import json
import re
import sys

import numpy as np
import pyarrow.parquet
import pytest
from sklearn.metrics import roc_auc_score

from semisync.cli import main
from semisync.cluster.forked import ForkedCluster
from semisync.demo import finding, story


@pytest.fixture(scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "BATCHES", 120)
        patch.setattr(story, "PAUSE", 0.01)
        yield


def forked(python, *more):
    """The demo's cluster, of this interpreter."""
    return ForkedCluster(*more)


WORKERS = [pytest.param("3", marks=pytest.mark.long, id="three workers")]


@pytest.fixture(scope="module", params=WORKERS)
def finished(request, short, tmp_path_factory, interpreters):
    out = tmp_path_factory.mktemp("demo") / "out"
    arguments = ["demo", "--out", str(out), "--workers", request.param]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "LocalCluster", forked)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            assert main([*arguments, "--tf-python", str(interpreters / "python"), "--json"]) == 0
    assert json.loads(said.getvalue()) == json.loads((out / "report.json").read_text())
    return out


@pytest.fixture(scope="module")
def record(finished):
    return json.loads((finished / "report.json").read_text())


def test_the_model_is_migrated(record):
    migration = record["migration"]
    assert migration["verdict"] == "MIGRATED"
    assert {part["state"] for part in migration["parts"]} == {"passed"}
    assert [one["name"] for one in migration["features"]] == ["ids"]
    parity = record["parity"]
    assert parity["verdict"] == "EQUIVALENT"
    assert abs(parity["delta"]) <= 1e-5
    assert parity["rows"] == record["data"]["rows"]["held_out"]


def test_the_aucs_are_sklearns(finished, record):
    for side, name in (("baseline", "tensorflow"), ("candidate", "torch")):
        scores = pyarrow.parquet.read_table(finished / "migration" / f"{name}.parquet")
        expected = roc_auc_score(scores["label"], scores["logit"])
        assert record["parity"][side]["auc"] == pytest.approx(expected, abs=1e-9)
        assert np.ptp(scores["score"]) > 0.01
    trained = record["modes"]["semi-sync"]["auc"]
    assert trained == pytest.approx(record["parity"]["baseline"]["auc"], abs=1e-6)


def test_each_mode_has_its_figures(record):
    assert list(record["modes"]) == ["async", "native-sync", "semi-sync", "balanced", "sync"]
    for mode in record["modes"].values():
        assert mode["batches_per_second"] > 0
        assert 0 < mode["auc"] < 1
        histogram = mode["staleness"]["histogram"]
        total = sum(histogram.values())
        weighted = sum(int(staleness) * count for staleness, count in histogram.items())
        assert mode["staleness"]["mean"] == pytest.approx(weighted / total)
        assert total == pytest.approx(record["settings"]["batches"], abs=3)
        assert 0.9 < mode["counted"] / record["settings"]["batches"] <= 1
    assert record["modes"]["sync"]["staleness"]["max"] == 0


def test_the_table_shows_the_difference_from_exact_synchronous_training(finished, record):
    modes = record["modes"]
    for name in ("async", "native-sync", "semi-sync", "balanced"):
        minus = modes[name]["minus_sync"]
        assert minus["delta"] == pytest.approx(modes[name]["auc"] - modes["sync"]["auc"])
        assert minus["low"] <= minus["delta"] <= minus["high"]
    page = (finished / "report.html").read_text()
    assert html.escape(finding.sentence(modes)) in page


def test_the_page_needs_no_network(finished):
    page = (finished / "report.html").read_text()
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert "<script" not in page
    assert "MIGRATED" in page
    assert len(page) < 500_000


def test_the_verdict_rests_on_the_verification_too(finished, record):
    verified = json.loads((finished / "migration" / "verified.json").read_text())
    assert verified["verified"] and verified["sample"] is None
    assert record["parity"]["verified"]["rows"] == verified["rows"] > 0
    page = (finished / "report.html").read_text()
    assert "Verified: " in page
    few_rows = record["data"]["rows"]["held_out"] < 50_000
    assert ("the verdict rests on both" in page) == few_rows


def test_the_scores_can_be_compared_again(finished, tmp_path):
    folder = finished / "migration"
    arguments = ["parity", str(folder / "tensorflow.parquet"), str(folder / "torch.parquet")]
    arguments += ["--key", "row", "--label", "label", "--baseline-logit", "logit"]
    arguments += ["--verified", str(folder / "verified.json")]
    assert main([*arguments, "--out", str(tmp_path)]) == 0


def test_a_foreign_folder_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main(["demo", "--out", str(tmp_path)]) == 3
    assert "holds something other than a demo's output" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_workers_are_one_or_more(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "out"), "--workers", "0"]) == 3
    assert "--workers takes a whole number of 1 or more" in capsys.readouterr().err


def test_a_malformed_row_is_named(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("label,user\n1,a\n0,b\n2,c\n")
    assert main(["demo", "--data", str(log), "--out", str(tmp_path / "out")]) == 3
    error = capsys.readouterr().err
    assert "row 3" in error
    assert error.count("\n") == 1


def test_an_interpreter_without_tensorflow_is_named_before_anything_starts(tmp_path, capsys):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    arguments = ["demo", "--out", str(tmp_path / "out"), "--tf-python", str(bare)]
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert f"{bare} has no TensorFlow; --tf-python names one that has it" in error
    assert not (tmp_path / "out").exists()


def test_an_interpreter_that_does_not_exist_is_named(tmp_path, capsys):
    arguments = ["demo", "--out", str(tmp_path / "out"), "--tf-python", "/no/such/python"]
    assert main(arguments) == 3
    assert "/no/such/python" in capsys.readouterr().err
