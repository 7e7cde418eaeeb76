import json
import subprocess

import numpy as np
import pytest

from semisync.common.errors import BadInput, UsageError
from semisync.demo.data import click_log
from semisync.demo.data.click_log import ClickLog, load, save, split
from semisync.demo.data.truth import expected_auc
from tests.support.require import ROOT, tf1_python


def log_of(days, labels=None, truth=None):
    rows = len(days)
    return ClickLog(
        name="made",
        fields=("user", "price"),
        numeric=1,
        ids=np.arange(-rows, rows, dtype=np.int64).reshape(rows, 2) * 2**40,
        labels=np.asarray(np.arange(rows) % 2 if labels is None else labels, np.float32),
        days=np.asarray(days, np.int32),
        truth=truth,
    )


def assert_same(one, other):
    for a, b in zip(one, other):
        np.testing.assert_array_equal(a, b)


def test_days_are_held_out_whole():
    train, test = split(log_of(np.repeat(np.arange(10), 7)))
    assert train.days.tolist() == np.repeat(np.arange(8), 7).tolist()
    assert set(test.days.tolist()) == {8, 9}
    assert_same(test.ids, log_of(np.repeat(np.arange(10), 7)).ids[56:])


def test_the_midnight_nearest_to_the_share_is_taken():
    days = [0] * 70 + [1] * 16 + [2] * 14  # 14% or 30% for 20%
    assert split(log_of(days))[1].rows == 14
    assert split(log_of(days), 0.3)[1].rows == 30


def test_rows_are_cut_where_no_midnight_is_near():
    assert split(log_of([0] * 100))[1].rows == 20
    assert split(log_of([0] * 10 + [1] * 90))[1].rows == 20
    assert split(log_of([0] * 95 + [1] * 5))[1].rows == 20


@pytest.mark.parametrize("labels", [[0, 1] * 8 + [0] * 4, [0] * 16 + [0, 1] * 2])
def test_a_side_without_both_classes_is_refused(labels):
    with pytest.raises(BadInput, match=r"made: the (training|held-out) rows, .* hold 0 clicks"):
        split(log_of([0] * 20, labels))


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_a_share_outside_0_and_1_is_refused(share):
    with pytest.raises(UsageError, match="expected a share between 0 and 1"):
        split(log_of([0] * 20), share)


def test_a_log_comes_back_as_it_was_saved(tmp_path):
    for truth in (None, np.linspace(0, 1, 6)):
        log = log_of([0, 0, 1, 1, 5, 5], truth=truth)
        save(log, tmp_path / "log")
        back = load(tmp_path / "log")
        assert_same(back, log)
        assert isinstance(back.ids, np.memmap)
        assert [p.name for p in tmp_path.iterdir()] == ["log"]


def test_an_interrupted_save_leaves_the_earlier_log(tmp_path, monkeypatch):
    earlier = log_of([0, 1])
    save(earlier, tmp_path / "log")

    def full(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(click_log.json, "dumps", full)
    with pytest.raises(OSError, match="disk full"):
        save(log_of([0, 1, 2]), tmp_path / "log")
    assert_same(load(tmp_path / "log"), earlier)
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


def test_a_folder_of_something_else_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="something other than a click log"):
        save(log_of([0, 1]), tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_a_log_out_of_order_is_not_saved(tmp_path):
    with pytest.raises(BadInput, match="expected time order"):
        save(log_of([1, 0]), tmp_path / "log")
    with pytest.raises(BadInput, match="neither 0 nor 1"):
        save(log_of([0, 1], [0, 2]), tmp_path / "log")


def test_what_was_damaged_is_named(tmp_path):
    def damaged(name, change):
        save(log_of([0, 0, 1]), tmp_path / "log")
        path = tmp_path / "log" / name
        change(path)
        with pytest.raises(BadInput, match=name.split(".")[0]):
            load(tmp_path / "log")

    damaged("ids.npy", lambda path: path.write_bytes(path.read_bytes()[:-8]))
    damaged("labels.npy", lambda path: path.write_bytes(b""))
    damaged("days.npy", lambda path: path.unlink())
    damaged("days.npy", lambda path: np.save(path, np.arange(3)))
    damaged("ids.npy", lambda path: np.save(path, np.zeros((3, 5), np.int64)))
    damaged("log.json", lambda path: path.write_text('{"schema": 1}'))
    damaged("log.json", lambda path: path.write_text("[" * 10))
    damaged("log.json", lambda path: path.write_text(json.dumps({"schema": click_log.SCHEMA})))


def test_a_pickle_in_place_of_an_array_is_not_run(tmp_path):
    save(log_of([0, 0, 1]), tmp_path / "log")
    np.save(tmp_path / "log" / "ids.npy", np.array([print], object), allow_pickle=True)
    with pytest.raises(BadInput, match=r"ids\.npy cannot be read"):
        load(tmp_path / "log")


def test_python_37_reads_splits_and_writes_a_log(tmp_path):
    log = log_of(np.repeat(np.arange(5), 20), truth=np.linspace(0, 1, 100))
    save(log, tmp_path / "log")
    program = (
        "import sys; from semisync.demo.data.click_log import load, save, split\n"
        "assert sys.version_info[:2] == (3, 7)\n"
        "train, test = split(load({0!r} + '/log')); save(test, {0!r} + '/test')\n"
        "print(train.rows, test.bayes_auc)"
    ).format(str(tmp_path))
    ran = subprocess.run(
        [tf1_python(), "-c", program], cwd=ROOT, stdout=subprocess.PIPE, timeout=300, check=True
    )
    train, test = split(log)
    rows, auc = ran.stdout.split()
    assert int(rows) == train.rows and float(auc) == pytest.approx(test.bayes_auc, abs=1e-12)
    assert_same(load(tmp_path / "test"), test)


def pairs_by_hand(p):
    pairs = [(a, b) for i, a in enumerate(p) for j, b in enumerate(p) if i != j]
    wins = sum(a * (1 - b) * ((a > b) + (a == b) / 2) for a, b in pairs)
    return wins / sum(a * (1 - b) for a, b in pairs)


def test_the_bayes_auc_counts_every_pair_once():
    for p in ([0.2, 0.7], [0.3, 0.3, 0.3], [0, 1], [0.1, 0.5, 0.5, 0.9, 0.1, 0, 1]):
        assert expected_auc(np.array(p)) == pytest.approx(pairs_by_hand(p), abs=1e-12)


def test_the_bayes_auc_is_the_mean_over_drawn_labels():
    rng = np.random.default_rng(0)
    p = np.sort(rng.choice(rng.beta(1, 4, 150), 400))  # with ties
    below = np.searchsorted(p, p, "left")
    tied = np.searchsorted(p, p, "right") - below
    drawn = []
    for _ in range(2000):
        clicks = rng.random(400) < p
        misses = np.concatenate([[0], np.cumsum(~clicks)])
        wins = misses[below] + (misses[below + tied] - misses[below]) / 2
        drawn.append(wins[clicks].sum() / (clicks.sum() * (~clicks).sum()))
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert expected_auc(p) == pytest.approx(np.mean(drawn), abs=4 * error)


def test_there_is_no_bayes_auc_without_pairs():
    assert expected_auc(np.zeros(0)) is None
    assert expected_auc(np.array([0.5])) is None
    assert expected_auc(np.ones(9)) is None
    assert log_of([0, 1]).bayes_auc is None
