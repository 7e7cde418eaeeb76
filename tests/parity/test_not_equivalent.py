"""NOT EQUIVALENT is guarded as EQUIVALENT is: by what few rows, groups or one run cannot show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parity
from parity.report.words.advice import what_to_do
from parity.report.words.verdict import explanation, headline
from parity.stats.equivalence import Evidence, decide
from semisync.cli import main
from semisync.common.errors import UsageError
from tests.parity.records import PASSED


def heavy_users(rng, users=200):
    """Two equal models that err by user; a few users have most of the rows."""
    rows = np.minimum(np.ceil(2 * rng.pareto(0.8, users)), 3000).astype(int)
    user = np.repeat(np.arange(users), rows)
    labels = rng.random(len(user)) < rng.choice([0.1, 0.5], users)[user]
    shared = rng.normal(size=len(user)) + labels
    old, new = (shared + 0.5 * rng.normal(size=users)[user] for _ in range(2))
    return labels, old, new, user


@pytest.mark.long
def test_equal_models_with_heavy_users_are_told_apart_less_often_than_promised():
    """One in ten at a margin of next to nothing; it was one in five."""
    rng = np.random.default_rng(1)
    samples = [heavy_users(rng) for _ in range(150)]
    found = [parity.compare(*s[:3], margin=1e-4, clusters=s[3], verified=PASSED) for s in samples]
    outside = np.mean([not one.interval.low < 1e-4 or one.interval.high < -1e-4 for one in found])
    assert outside > 0.1, "the interval alone"
    assert np.mean([one.verdict == "NOT_EQUIVALENT" for one in found]) < 0.1


def test_a_difference_that_few_rows_make_is_no_verdict_and_it_is_said():
    rng = np.random.default_rng(2)
    labels = np.arange(8000) % 4 == 0
    baseline = labels * 1000.0 + rng.random(8000)
    candidate = baseline.copy()
    candidate[np.flatnonzero(labels)[:6]] = 0.5
    found = parity.compare(labels, baseline, candidate, margin=1e-4)
    assert found.interval.high < -1e-4
    assert (found.verdict, found.reason) == ("INCONCLUSIVE", "carriers")
    assert headline(found) == (
        "On these rows the AUCs differ by more than the margin, but so few rows carry the standard "
        "error that three more like them could turn it."
    )
    assert "Here the bar lies outside, but so few rows carry" in explanation(found)
    candidate[np.flatnonzero(labels)[:60]] = 0.5
    assert parity.compare(labels, baseline, candidate, margin=1e-4).verdict == "NOT_EQUIVALENT"


@given(st.floats(-3, 3), st.floats(0.01, 2), st.floats(0, 2), st.sampled_from([50.0, 1e3, 1e6]))
def test_both_sides_of_the_verdict_ask_for_the_same_allowance(delta, error, allowance, rows):
    evidence = Evidence(delta, error, rows, rows, allowance=allowance)
    decision = decide(evidence, 0.9)
    low, high = decision.interval
    decided = decision.verdict != "INCONCLUSIVE"
    outside = low - allowance > 0.9 or high + allowance < -0.9
    inside = low - allowance > -0.9 and high + allowance < 0.9
    assert decided == (outside or inside)
    assert decision.reason in ((None,) if decided else ("interval", "carriers"))


def seeds(rng, labels, spreads):
    """A run for each standard deviation of the signal between runs."""
    shared = rng.normal(size=len(labels))
    return [
        rng.normal(1, spread) * labels + shared + 0.1 * rng.normal(size=len(labels))
        for spread in spreads
    ]


@pytest.mark.parametrize("margin", [0.3, 1e-3])
def test_a_lone_run_gives_no_verdict_until_its_spread_is_stated(margin):
    rng = np.random.default_rng(3)
    labels = rng.random(4000) < 0.3
    old, (new,) = seeds(rng, labels, [1e-3] * 5), seeds(rng, labels, [1e-3])
    if margin < 0.01:
        new = new - 0.5 * labels
    found = parity.compare_runs(labels, old, [new], margin=margin)
    assert (found.verdict, found.reason) == ("INCONCLUSIVE", "lone_run")
    assert "the margin, but a model's only run cannot show how far" in headline(found)
    assert "--seed-sd" in what_to_do(found)
    stated = parity.compare_runs(labels, old, [new], margin=margin, seed_sd=1e-3)
    assert stated.verdict == ("EQUIVALENT" if margin > 0.01 else "NOT_EQUIVALENT")
    assert stated.training.seed_sd[1] == pytest.approx(1e-3)
    own = np.var(stated.training.baseline_aucs, ddof=1) / 5 + 1e-6
    assert stated.training.standard_error_seeds**2 == pytest.approx(own)
    assert "the one that was stated" in " ".join(stated.notes)


@pytest.mark.long
def test_a_stated_spread_holds_what_the_interval_promises():
    """Spreads of six to one, where the other side's stood for both the interval held .57."""
    rng = np.random.default_rng(4)
    held = np.zeros(2)
    labels = rng.random(20_000) < 0.3
    aucs = [parity.auc(labels, run) for run in seeds(rng, labels, [0.3] * 200)]
    for _ in range(200):
        labels = rng.random(1000) < 0.3
        old, (new,) = seeds(rng, labels, [0.05] * 4), seeds(rng, labels, [0.3])
        for place, seed_sd in enumerate((None, float(np.std(aucs)))):
            found = parity.compare_runs(labels, old, [new], margin=0.2, seed_sd=seed_sd)
            held[place] += found.interval.low < 0 < found.interval.high
    assert held[0] / 200 < 0.75
    assert held[1] / 200 > 0.84


@pytest.mark.parametrize("seed_sd", [-1e-3, float("nan"), 2])
def test_a_spread_is_one_of_aucs(seed_sd):
    with pytest.raises(UsageError, match="one of AUCs is expected, such as 0.0003"):
        parity.compare_runs([0, 1], [[0.1, 0.2]] * 2, [[0.1, 0.2]], seed_sd=seed_sd)


def test_a_spread_is_stated_of_a_lone_run_alone(capsys):
    with pytest.raises(UsageError, match="both sides have several runs"):
        parity.compare_runs([0, 1], [[0.1, 0.2]] * 2, [[0.1, 0.2]] * 2, seed_sd=1e-3)
    columns = ["--label", "y", "--baseline-score", "p", "--out", "out", "--seed-sd", "0.001"]
    assert main(["parity", "old.parquet", "new.parquet", "--key", "id", *columns]) == 3
    assert "--seed-sd is of training runs" in capsys.readouterr().err
