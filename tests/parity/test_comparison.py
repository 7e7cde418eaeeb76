"""`parity.compare`: the paired difference, its standard error, and what it notes."""

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import parity
from tests.parity import definition
from tests.parity.records import PASSED


def models(rows=4000, share=0.2, noise=0.1, seed=0):
    """Labels and two models' logits, the second the first plus noise."""
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < share
    baseline = rng.normal(size=rows) + labels
    return labels, baseline, baseline + noise * rng.normal(size=rows)


few = st.integers(0, 4).map(float)
rows = st.lists(st.tuples(st.booleans(), few, few, st.integers(0, 5)), min_size=6, max_size=40)


def columns_of(sample):
    labels, baseline, candidate, clusters = (np.array(column) for column in zip(*sample))
    assume(2 <= labels.sum() <= len(labels) - 2)
    return labels, baseline, candidate, clusters


@given(rows)
def test_variance_is_delongs_by_definition(sample):
    labels, baseline, candidate, _ = columns_of(sample)
    found = parity.compare(labels, baseline, candidate)
    expected = definition.delong_variance(labels, baseline, candidate)
    assert found.standard_error**2 == pytest.approx(expected, abs=1e-14)
    assert found.delta == pytest.approx(
        definition.auc(labels, candidate) - definition.auc(labels, baseline), abs=1e-15
    )


@given(rows)
def test_clustered_variance_is_obuchowskis_by_definition(sample):
    labels, baseline, candidate, clusters = columns_of(sample)
    assume(min(len(set(clusters[of_class])) for of_class in (labels, ~labels)) > 1)
    found = parity.compare(labels, baseline, candidate, clusters=clusters)
    expected = definition.obuchowski_variance(labels, baseline, candidate, clusters)
    assert found.standard_error**2 == pytest.approx(expected, abs=1e-14)
    assert found.clusters == len(set(clusters))
    independent = definition.delong_variance(labels, baseline, candidate)
    assert found.standard_error_independent**2 == pytest.approx(independent, abs=1e-14)
    if independent > 1e-12:
        assert found.design_effect == pytest.approx(expected / independent)


def test_swapping_the_models_turns_the_difference_round():
    labels, baseline, candidate = models()
    there = parity.compare(labels, baseline, candidate)
    back = parity.compare(labels, candidate, baseline)
    assert back.delta == -there.delta
    assert back.standard_error == pytest.approx(there.standard_error, rel=1e-12)
    assert back.verdict == there.verdict


def test_order_of_the_rows_and_names_of_the_clusters_do_not_matter():
    labels, baseline, candidate = models()
    clusters = np.arange(4000) % 100
    first = parity.compare(labels, baseline, candidate, clusters=clusters)
    order = np.random.default_rng(1).permutation(4000)
    names = np.array([f"user {code}" for code in clusters])
    second = parity.compare(labels[order], baseline[order], candidate[order], clusters=names[order])
    assert second.delta == first.delta
    assert second.standard_error == pytest.approx(first.standard_error, rel=1e-10)


def test_scattered_cluster_numbers_are_counted_like_dense_ones():
    labels, baseline, candidate = models()
    clusters = np.arange(4000) % 100
    dense = parity.compare(labels, baseline, candidate, clusters=clusters)
    for scattered in (clusters * 10**12 - 5, clusters.astype(float) / 7, -clusters):
        found = parity.compare(labels, baseline, candidate, clusters=scattered)
        assert found.clusters == 100
        assert found.standard_error == pytest.approx(dense.standard_error, rel=1e-12)


def test_single_and_double_precision_agree():
    labels, baseline, candidate = models()
    single = baseline.astype(np.float32), candidate.astype(np.float32)
    narrow = parity.compare(labels, *single)
    wide = parity.compare(labels, *(scores.astype(np.float64) for scores in single))
    assert (narrow.delta, narrow.standard_error) == (wide.delta, wide.standard_error)


def test_equal_weights_change_nothing_whatever_their_size():
    labels, baseline, candidate = models()
    plain = parity.compare(labels, baseline, candidate)
    for weight in (1.0, 1e-3, 250.0):
        found = parity.compare(labels, baseline, candidate, weights=np.full(4000, weight))
        assert found.delta == pytest.approx(plain.delta, abs=1e-13)
        assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-9)


def test_rows_of_weight_zero_are_not_there():
    labels, baseline, candidate = models()
    weights = np.where(np.arange(4000) % 3 == 0, 0.0, 2.0)
    kept = weights > 0
    clusters = np.arange(4000) // 10
    found = parity.compare(labels, baseline, candidate, weights=weights, clusters=clusters)
    without = parity.compare(labels[kept], baseline[kept], candidate[kept], clusters=clusters[kept])
    assert found.rows == kept.sum()
    assert found.delta == pytest.approx(without.delta, abs=1e-13)
    assert found.standard_error == pytest.approx(without.standard_error, rel=1e-9)


def test_weighted_error_is_that_of_the_jackknife():
    labels, baseline, candidate = models(rows=400, share=0.5, noise=0.5)
    weights = np.random.default_rng(5).integers(1, 10, 400)
    found = parity.compare(labels, baseline, candidate, weights=weights)

    def delta(kept):
        one, two = (
            definition.auc(labels[kept], scores[kept], weights[kept])
            for scores in (baseline, candidate)
        )
        return two - one

    left_out = np.array([delta(np.arange(400) != row) for row in range(400)])
    jackknife = np.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())
    assert found.standard_error == pytest.approx(jackknife, rel=0.02)


def test_figures_of_each_side():
    labels, baseline, candidate = models(rows=500)
    probabilities = 1 / (1 + np.exp(-baseline))
    found = parity.compare(labels, probabilities, candidate.round(1))
    expected = -np.mean(np.where(labels, np.log(probabilities), np.log(1 - probabilities)))
    assert found.baseline.logloss == pytest.approx(expected, rel=1e-12)
    assert found.candidate.logloss is None, "logits have none"
    positive, negative = candidate.round(1)[labels], candidate.round(1)[~labels]
    assert found.candidate.tied_pairs == (positive[:, None] == negative[None, :]).sum()
    gap = np.abs(candidate.round(1) - probabilities)
    assert found.score_difference.max == gap.max()
    assert found.score_difference.p50 == pytest.approx(np.median(gap))
    assert found.score_difference.counts.sum() == found.rows == 500
    assert found.positives == labels.sum()


def test_curve_lies_on_the_models_own_trade_off():
    labels, baseline, candidate = models(rows=2000)
    false_rates, true_rates = parity.compare(labels, baseline, candidate).baseline.curve
    assert (false_rates[0], true_rates[0]) == (0, 0)
    assert (false_rates[-1], true_rates[-1]) == (1, 1)
    for false_rate, true_rate in list(zip(false_rates, true_rates))[1:-1:16]:
        flagged = round(true_rate * labels.sum() + false_rate * (~labels).sum())
        threshold = np.sort(baseline)[-flagged]
        assert np.mean(baseline[labels] >= threshold) == pytest.approx(true_rate)


def test_identical_scores_are_equivalent_to_what_the_sample_can_resolve():
    labels, baseline, _ = models()
    clusters = np.arange(4000) // 8
    found = parity.compare(labels, baseline, baseline, clusters=clusters, verified=PASSED)
    assert found.verdict == "EQUIVALENT"
    assert (found.delta, found.standard_error) == (0, 0)
    held = np.bincount(clusters[labels])
    clusters_that_count = held.sum() ** 2 / (held**2).sum()
    assert found.interval.high == -found.interval.low
    assert found.interval.high == pytest.approx(-np.log(0.05) / clusters_that_count**2)
    assert found.design_effect is None
    assert found.score_difference.max == 0


def test_scores_on_another_scale_rank_alike_and_are_equivalent():
    labels, baseline, _ = models()
    scores = baseline.round(1), np.exp(baseline.round(1))
    found = parity.compare(labels, *scores, verified=PASSED)
    assert found.interval.high == pytest.approx(-np.log(0.05) / labels.sum() ** 2)
    assert found.verdict == "EQUIVALENT"
    assert found.notes == ()


def alternating(rows):
    """Labels, and scores that rank most pairs right."""
    place = np.arange(rows)
    return place % 2, place + place % 2 * rows / 2


@pytest.mark.parametrize("each", [2, 77])
def test_a_handful_of_rows_ranked_alike_proves_nothing(each):
    labels, scores = alternating(2 * each)
    found = parity.compare(labels, scores, scores, verified=PASSED)
    assert (found.delta, found.standard_error, found.verdict) == (0, 0, "INCONCLUSIVE")
    assert "this margin takes 78 or more" in " ".join(found.notes)
    assert 156 < found.rows_to_settle < 1000, "of so few nobody knows how many are positive"
    labels, scores = alternating(156)
    assert parity.compare(labels, scores, scores, verified=PASSED).verdict == "EQUIVALENT"


def test_an_error_of_zero_is_not_certainty_when_the_models_rank_differently():
    labels = np.array([0, 0, 0, 1, 1, 1])
    perfect = parity.compare(labels, [1, 2, 3, 4, 5, 6], [3, 2, 1, 6, 5, 4])
    assert (perfect.delta, perfect.standard_error) == (0, 0)
    assert perfect.verdict == "INCONCLUSIVE"
    assert "rule of three" in perfect.notes[0]
    assert perfect.rows_to_settle > 1000
    opposite = parity.compare(labels, [6, 5, 4, 3, 2, 1], [1, 2, 3, 4, 5, 6])
    assert (opposite.delta, opposite.standard_error) == (1, 0)
    assert opposite.interval.low < 0 < opposite.interval.high, "six rows prove nothing"


def test_a_large_sample_without_a_moved_row_is_equivalent():
    labels = np.arange(40_000) % 2
    baseline = labels + np.linspace(0, 0.5, 40_000)
    found = parity.compare(labels, baseline, labels + np.linspace(0.5, 0, 40_000))
    assert found.standard_error == 0
    assert found.interval.high == pytest.approx(-np.log(0.05) / 20_000)
    assert found.verdict == "EQUIVALENT"


@pytest.mark.parametrize("rows, positives", [(1600, 338), (5400, 79)])
def test_neighbours_of_one_class_that_swap_do_not_unsettle_the_verdict(rows, positives):
    """As two frameworks' rounding does: no placement moves, and the standard error is 0."""
    labels = np.zeros(rows)
    labels[np.linspace(0, rows - 1, positives).astype(int)] = 1
    baseline = np.linspace(0, 1, rows) + labels / 2
    candidate = baseline.copy()
    assert labels[2] == labels[3]
    candidate[[2, 3]] = baseline[[3, 2]]
    found = parity.compare(labels, baseline, candidate, verified=PASSED)
    assert (found.delta, found.standard_error) == (0, 0)
    by_rank, by_sample = 2 / (rows - positives), 1 / positives
    expected = -np.log(0.05) / positives * max(by_rank, by_sample)
    assert found.interval.high == pytest.approx(expected)
    assert found.verdict == "EQUIVALENT"
    assert "rule of three" in found.notes[0]


def test_few_observations_are_noted():
    labels, baseline, candidate = models()
    assert parity.compare(labels, baseline, candidate).notes == ()
    by_cluster = parity.compare(labels, baseline, candidate, clusters=np.arange(4000) % 12)
    assert "rests on 12 observations" in by_cluster.notes[0]
    by_row = parity.compare(labels[:50], baseline[:50], candidate[:50])
    assert f"rests on {labels[:50].sum()} observations" in by_row.notes[0]


@settings(max_examples=25)
@given(rows)
def test_json_is_strict_and_complete(sample):
    labels, baseline, candidate, _ = columns_of(sample)
    record = parity.compare(labels, baseline, candidate).to_json()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["schema"] == "semisync/parity/1"
    assert {"verdict", "delta", "standard_error", "interval", "margin"} <= set(record)
    assert {"rows", "positives", "rows_to_settle", "notes"} <= set(record)
    assert 0 <= record["baseline"]["auc"] <= 1
    assert 0 <= record["candidate"]["auc"] <= 1
