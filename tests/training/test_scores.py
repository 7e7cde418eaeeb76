"""`--scores`: what the model said of every row before it was trained on it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import parity
from migrate.training import Batch
from migrate.training.scores import Scores
from semisync.cli import main
from semisync.common.errors import UsageError
from tests.training.command import arguments, refusal


def scored(job, clicks, out, *more):
    """The command of one pass whose scores go to OUT.parquet."""
    given = arguments(job, clicks, out, "--epochs", "1", "--checkpoint-every", "4", "--key", "key")
    return [*given, "--scores", f"{out}.parquet", *more]


@pytest.fixture(scope="module")
def whole(job, clicks, tmp_path_factory):
    """OUT of a training that nothing interrupted."""
    out = tmp_path_factory.mktemp("scored") / "out"
    assert main(scored(job, clicks, out)) == 0
    return out


def test_every_row_has_the_score_that_the_figures_are_of(whole, clicks):
    found, rows = pq.read_table(f"{whole}.parquet"), pq.read_table(clicks)
    assert found.column_names == ["key", "clicked", "day", "score", "logit"]
    order = np.argsort(found["key"].to_numpy())
    assert found["key"].to_numpy()[order].tolist() == rows["key"].to_pylist()
    for name in ("clicked", "day"):
        assert np.array_equal(found[name].to_numpy()[order], rows[name].to_numpy())
    logit = found["logit"].to_numpy().astype(float)
    assert np.allclose(found["score"].to_numpy(), 1 / (1 + np.exp(-logit)), rtol=1e-6, atol=0)
    report = json.loads((whole / "report.json").read_text())
    label, day = found["clicked"].to_numpy(), found["day"].to_numpy()
    # the report counts logits in bins
    assert parity.auc(label, logit) == pytest.approx(report["training"]["auc"], abs=1e-5)
    for one, figures in report["days"].items():
        own = day == int(one)
        assert parity.auc(label[own], logit[own]) == pytest.approx(figures["auc"], abs=1e-5)


@pytest.mark.long
def test_a_training_that_went_on_leaves_the_file_of_one_that_did_not_stop(
    whole,
    job,
    clicks,
    tmp_path,
):
    out = tmp_path / "out"
    assert main(scored(job, clicks, out, "--steps", "6")) == 0
    assert main(scored(job, clicks, out, "--resume")) == 0
    assert pq.read_table(f"{out}.parquet") == pq.read_table(f"{whole}.parquet")


def test_parts_of_later_steps_than_the_checkpoint_are_scored_again(tmp_path):
    scores = Scores(str(tmp_path / "all.parquet"), str(tmp_path), "key", "label", None)
    batch = one_batch([1, 2])
    for step in (4, 8):
        scores.add(batch, torch.tensor([0.5, -0.5]))
        scores.flush(step)
    scores.go_on(4, rows=2)
    scores.add(one_batch([3, 4]), torch.tensor([0.0, 1.0]))
    scores.flush(8)
    scores.write()
    assert pq.read_table(tmp_path / "all.parquet")["key"].to_pylist() == [1, 2, 3, 4]


def one_batch(keys):
    from migrate.training import Batch

    return Batch({}, torch.tensor([0.0, 1.0]), None, keys)


def test_rows_without_scores_are_not_left_out_in_silence(tmp_path):
    scores = Scores(str(tmp_path / "all.parquet"), str(tmp_path), "key", "label", None)
    with pytest.raises(UsageError, match="the scores of 0 of the 512 rows trained on so far"):
        scores.go_on(8, rows=512)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--epochs", "2"], "--scores takes one epoch"),
        (["--key", "day"], "cannot be the key too"),
        (["--key", "absent"], "absent"),
    ],
)
def test_what_cannot_be_scored_is_refused(more, sentence, job, clicks, tmp_path, capsys):
    assert sentence in refusal([*scored(job, clicks, tmp_path / "out"), *more], capsys)


def test_scores_and_key_go_together(job, clicks, tmp_path, capsys):
    given = arguments(job, clicks, tmp_path / "out", "--key", "key")
    assert "give both, or neither" in refusal(given, capsys)


@pytest.mark.filterwarnings("error")
def test_a_logit_whose_exponential_overflows_has_a_score(tmp_path):
    scores = Scores(str(tmp_path / "scores.parquet"), str(tmp_path), "row", "clicked", None)
    scores.add(
        Batch(None, torch.tensor([0.0, 1.0]), keys=["a", "b"]), torch.tensor([-800.0, 800.0])
    )
    scores.flush(1)
    scores.write()
    assert pq.read_table(tmp_path / "scores.parquet")["score"].to_pylist() == [0, 1]
