"""The verdict: the rule itself, its error rates in simulation, and the rows it asks for."""

import numpy as np
import pytest

import parity
from parity.stats.equivalence import Evidence, Reason, judge
from parity.stats.intervals import Interval
from parity.stats.rows_needed import Basis, rows_to_settle
from semisync.common.errors import UsageError


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.4, 0.4, "EQUIVALENT"),
        (0.1, 0.9, "EQUIVALENT"),  # different from zero for sure, and yet equivalent
        (-0.9, 1.0, "INCONCLUSIVE"),  # touching is not inside
        (-1.1, 0.2, "INCONCLUSIVE"),
        (0.5, 1.5, "INCONCLUSIVE"),
        (-2.0, 2.0, "INCONCLUSIVE"),
        (1.0, 2.0, "INCONCLUSIVE"),  # touching is not outside
        (-2.0, -1.0, "INCONCLUSIVE"),
        (1.1, 1.2, "NOT_EQUIVALENT"),
        (-9.0, -1.1, "NOT_EQUIVALENT"),
    ],
)
def test_the_interval_decides(low, high, verdict):
    assert judge(Interval(low, high), 1.0) == verdict


@pytest.mark.parametrize("margin", [0, -1e-3, 1e-300, 1, 50, float("nan"), float("inf")])
def test_a_margin_is_a_difference_that_two_models_can_have(margin):
    with pytest.raises(UsageError, match="at least 1e-09 and below 1, such as 0.0005"):
        parity.compare([0, 0, 1, 1], [1, 2, 3, 4], [1, 2, 3, 4], margin=margin)


def user_noise(rng, users=60, rows_each=10):
    """Two models of equal true AUC that err by user, not by row."""
    user = np.repeat(np.arange(users), rows_each)
    labels = rng.random(len(user)) < rng.choice([0.1, 0.7], size=users)[user]
    signal = rng.normal(size=len(user)) + labels
    noisy = [signal + rng.normal(size=users)[user] for _ in range(2)]
    return labels, noisy[0], noisy[1], user


@pytest.mark.long
def test_ninety_percent_intervals_hold_zero_nine_times_in_ten():
    rng = np.random.default_rng(11)
    by_cluster, by_row = [], []
    for _ in range(500):
        labels, baseline, candidate, user = user_noise(rng)
        clustered = parity.compare(labels, baseline, candidate, clusters=user)
        alone = parity.compare(labels, baseline, candidate)
        by_cluster.append(clustered.interval.low < 0 < clustered.interval.high)
        by_row.append(alone.interval.low < 0 < alone.interval.high)
    assert 0.86 < np.mean(by_cluster) < 0.94
    assert np.mean(by_row) < 0.84, "rows of one user are not independent, and it shows"


@pytest.mark.long
def test_models_a_margin_apart_pass_at_most_one_time_in_twenty():
    """The type I error of the verdict, where it is largest."""
    rng = np.random.default_rng(12)
    passed = 0
    for _ in range(600):
        labels = rng.random(2000) < 0.5
        shared = rng.normal(size=2000)
        baseline = labels + shared + 0.2 * rng.normal(size=2000)
        candidate = labels * 0.9 + shared + 0.2 * rng.normal(size=2000)
        passed += parity.compare(labels, baseline, candidate, TRUE_GAP).verdict == "EQUIVALENT"
    assert 0.02 < passed / 600 < 0.085


# Binormal: AUC = Phi(mean / sqrt(2 (1 + 0.2^2))), at means 1 and 0.9.
TRUE_GAP = 0.755950 - 0.733774


def test_rows_to_settle_are_those_of_the_power_calculation():
    """Margin 5e-4, 2 % positive, AUC 0.75, score correlation 0.9: 23.2 million rows."""
    rng = np.random.default_rng(13)
    labels = rng.random(200_000) < 0.02
    shared, one, two = rng.normal(size=(3, 200_000))
    scores = [labels * 0.9539 + np.sqrt(0.9) * shared + np.sqrt(0.1) * own for own in (one, two)]
    found = parity.compare(labels, *scores)
    assert found.baseline.auc == pytest.approx(0.75, abs=0.01)
    assert found.verdict == "INCONCLUSIVE"
    assert found.rows_to_settle == pytest.approx(23.2e6, rel=0.05)


def test_that_many_rows_do_settle_it_four_times_in_five():
    rng = np.random.default_rng(14)
    margin, standard_error = 1.0, 3.0
    evidence = Evidence(delta=0, standard_error=standard_error, freedom=1e6, observations=1e6)
    basis = Basis(1000, carriers=1e6, reach=0.0, alike=True)
    needed = rows_to_settle(basis, evidence, Reason.INTERVAL, margin)
    smaller = standard_error * (1000 / needed) ** 0.5
    centres = rng.normal(size=20_000) * smaller
    half = 1.6448536 * smaller
    passed = [judge(Interval(c - half, c + half), margin) == "EQUIVALENT" for c in centres]
    assert np.mean(passed) == pytest.approx(0.8, abs=0.03)


def test_advice_counts_what_the_sample_leaves_uncertain():
    """Two hits in 12,000 may be one or six; the least that would do on average does not do."""
    evidence = Evidence(
        delta=-1.7e-4, standard_error=1.2e-4, freedom=1e4, observations=12_000, allowance=2.5e-4
    )
    few = Basis(24_000, carriers=2, reach=0.0, alike=True)
    many = few._replace(carriers=2000)
    certain = evidence._replace(allowance=8e-6)
    assert rows_to_settle(few, evidence, Reason.CARRIERS, 5e-4) > 2 * rows_to_settle(
        many, certain, Reason.CARRIERS, 5e-4
    )
    assert rows_to_settle(few._replace(alike=False), evidence, Reason.CARRIERS, 5e-4) is None
    alike = certain._replace(delta=-4.9e-4, standard_error=1e-7)
    assert rows_to_settle(many, alike, Reason.CARRIERS, 5e-4) < 48_000, "all rows see it"
