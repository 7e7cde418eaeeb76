"""The figures beside the AUC, each against sklearn, scipy, TensorFlow or its definition."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

import parity
from parity.stats import roc
from parity.stats.calibration import loss_difference, losses
from parity.stats.gauc import within_groups
from parity.stats.sorting import tie_groups
from semisync.common.errors import BadInput
from tests.parity import definition


def sample(rows=5000, share=0.05, digits=3, seed=0):
    """Labels, two models' tied probabilities, weights and users."""
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < share
    logits = rng.normal(size=rows) + labels - 2
    old, new = (1 / (1 + np.exp(-logits - noise)) for noise in rng.normal(0, 0.1, (2, rows)))
    clip = 10.0**-digits
    old, new = (scores.round(digits).clip(clip, 1 - clip) for scores in (old, new))
    return labels, old, new, rng.integers(1, 5, rows).astype(float), rng.integers(0, 300, rows)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("weighted", [False, True])
def test_pr_auc_and_log_loss_are_sklearns(share, weighted):
    labels, old, new, weights, _ = sample(share=share)
    weights = weights if weighted else None
    found = parity.compare(labels, old, new.astype(np.float32), weights=weights).baseline
    expected = metrics.average_precision_score(labels, old, sample_weight=weights)
    assert found.pr_auc == pytest.approx(expected, abs=1e-12)
    assert found.logloss == pytest.approx(metrics.log_loss(labels, old, sample_weight=weights))


def test_calibration_by_definition():
    labels, old, new, weights, _ = sample()
    fit = parity.compare(labels, old, new, weights=weights).baseline.calibration
    mean = np.average(labels, weights=weights)
    constant = metrics.log_loss(labels, np.full(len(labels), mean), sample_weight=weights)
    assert fit.ne == pytest.approx(fit.logloss / constant)
    assert fit.pcoc == pytest.approx((weights * old).sum() / weights[labels].sum())
    spread_out = old + np.random.default_rng(1).random(len(old)) * 1e-9  # no ties
    plain = parity.compare(labels, spread_out, new).baseline.calibration
    bins = np.array_split(np.argsort(spread_out), 20)
    expected = sum(abs((spread_out[b] - labels[b]).sum()) for b in bins) / len(labels)
    assert plain.ece == pytest.approx(expected)


def test_loss_difference_is_paired_and_by_clusters():
    labels, old, new, weights, users = sample()
    one, two = losses(labels, old), losses(labels, new)
    found = parity.compare(labels, old, new).logloss_difference
    difference = two - one
    assert found.delta == pytest.approx(difference.mean())
    assert found.standard_error == pytest.approx(stats.sem(difference))
    same = np.arange(len(labels)) // 2  # every row twice: the error is that of half as many
    doubled = loss_difference(one.repeat(2), two.repeat(2), None, np.arange(2 * len(one)) // 2)
    assert doubled.standard_error == pytest.approx(found.standard_error)
    weighted = loss_difference(one, two, weights, same)
    assert weighted.delta == pytest.approx(np.average(difference, weights=weights))


def test_the_error_of_the_difference_in_pcoc_is_the_jackknifes():
    labels, old, new, _, _ = sample(1000)
    found = parity.compare(labels, old, 3 * new / 4).pcoc_difference
    moved = 3 * new / 4 - old
    left_out = (moved.sum() - moved) / (labels.sum() - labels)
    jackknife = np.sqrt(999 / 1000 * ((left_out - left_out.mean()) ** 2).sum())
    assert found.delta == pytest.approx(moved.sum() / labels.sum())
    assert found.standard_error == pytest.approx(jackknife, rel=0.02)


@pytest.mark.parametrize("weighted", [False, True])
def test_gauc_is_the_weighted_mean_of_the_groups_own_aucs(weighted):
    labels, old, _, weights, users = sample(rows=2000, share=0.2)
    weights = weights if weighted else np.ones(len(labels))
    total = heavy = counted = 0.0
    for user in np.unique(users):
        rows = users == user
        if 0 < labels[rows].sum() < rows.sum():
            impressions = weights[rows].sum()
            total += impressions * definition.auc(labels[rows], old[rows], weights[rows])
            heavy, counted = heavy + impressions, counted + 1
    found = within_groups(labels, old, users, weights if weighted else None)
    assert found.gauc == pytest.approx(total / heavy, abs=1e-12)
    assert len(found.areas) == counted < 300
    assert within_groups(labels, old, labels.astype(int)).gauc is None


@pytest.mark.parametrize("share", [0.003, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_tf1_compat_auc_is_what_tensorflow_shows(share, weighted):
    tf = pytest.importorskip("tensorflow").compat.v1
    labels, old, _, weights, _ = sample(rows=20_000, share=share, digits=5)
    old[:4] = 0, 1, 1 / 199, 2 / 199  # on the thresholds themselves
    weights = weights if weighted else None
    with tf.Graph().as_default(), tf.Session() as session:
        value, update = tf.metrics.auc(labels, old.astype(np.float32), weights)
        session.run(tf.local_variables_initializer())
        session.run(update)
        expected = session.run(value)
    found = parity.tf1_compat_auc(labels, old, weights)
    assert found == pytest.approx(expected, abs=2e-6)


def test_tf1_compat_auc_is_far_from_the_auc_where_scores_are_small():
    labels, old, _, _, _ = sample()
    small = old / 100  # the ranks are the same; nearly all lie below the first thresholds
    assert parity.auc(labels, small) == parity.auc(labels, old)
    assert parity.tf1_compat_auc(labels, small) < parity.auc(labels, old) - 0.1


def test_tf1_compat_auc_takes_probabilities_alone():
    with pytest.raises(BadInput, match=r"^scores\[1\] is 2.0; tf.metrics.auc takes probabilities"):
        parity.tf1_compat_auc([0, 1], [0.5, 2.0])


def test_tf1_compat_auc_compares_single_precision():
    scores = np.arange(200) / 199  # TensorFlow's thresholds, which a score must exceed
    labels = np.random.default_rng(0).random(200) < scores
    single = parity.tf1_compat_auc(labels, scores.astype(np.float32))
    assert parity.tf1_compat_auc(labels, scores) == single


def test_score_differences_are_numpys_and_scipys():
    labels, old, new, _, _ = sample()
    found = parity.compare(labels, old, new).score_difference
    gap = np.abs(new - old)
    assert (found.p50, found.p90, found.p99, found.max) == pytest.approx(
        tuple(np.quantile(gap, (0.5, 0.9, 0.99, 1)))
    )
    logits = np.abs(np.log(new / (1 - new)) - np.log(old / (1 - old)))
    assert tuple(found.logit) == pytest.approx(tuple(np.quantile(logits, (0.5, 0.9, 0.99, 1))))
    assert found.ks == pytest.approx(stats.ks_2samp(old, new).statistic, abs=1e-15)
    assert found.spearman == pytest.approx(stats.spearmanr(old, new).statistic, abs=1e-12)
    flat = parity.compare(labels, old, np.full(len(old), 0.5)).score_difference
    assert flat.spearman is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("digits", [1, 12], ids=["tied", "distinct"])
@pytest.mark.parametrize("outlier", [False, True], ids=["even", "one far away"])
@pytest.mark.few(1)
def test_looking_positives_up_gives_what_sorting_all_rows_gives(dtype, digits, outlier):
    rng = np.random.default_rng(5)
    labels = rng.random(100_000) < 0.02
    scores = rng.normal(size=100_000).round(digits).astype(dtype)
    if outlier:  # all other rows then share a few cells of the look-up table
        scores[:2] = -1e30, 1e30
    looked_up = roc.rank(scores, labels, None)
    groups = tie_groups(scores)
    order = np.empty(len(scores), int)
    order[groups.order] = np.repeat(np.arange(len(groups.edges) - 1), np.diff(groups.edges))
    below = np.searchsorted(np.sort(order[labels]), order) + np.searchsorted(
        np.sort(order[labels]), order, side="right"
    )
    expected = 1 - below / (2 * labels.sum())
    placements = looked_up.placements()
    assert placements[~labels] == pytest.approx(expected[~labels], abs=1e-14)
    assert looked_up.area() == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-12)
    assert placements[labels].mean() == pytest.approx(looked_up.area(), abs=1e-12)


def test_reliability_bins_hold_all_rows_and_give_the_ece():
    rng = np.random.default_rng(4)
    scores = rng.random(3000) * 0.98 + 0.01
    labels = rng.random(3000) < scores**2
    weights = rng.integers(1, 4, 3000)
    for options, weight in (({}, np.ones(3000)), ({"weights": weights}, weights)):
        side = parity.compare(labels, scores, scores, **options).baseline
        bins = side.reliability
        assert len(bins.shares) == 20
        assert bins.shares.sum() == pytest.approx(1)
        assert bins.shares @ bins.scores == pytest.approx(np.average(scores, weights=weight))
        assert bins.shares @ bins.labels == pytest.approx(np.average(labels, weights=weight))
        assert bins.shares @ abs(bins.scores - bins.labels) == pytest.approx(side.calibration.ece)
    lowest = np.sort(scores)[:150]
    assert parity.compare(labels, scores, scores).baseline.reliability.scores[0] == pytest.approx(
        lowest.mean()
    )


def test_joint_counts_are_rows_by_both_scores():
    rng = np.random.default_rng(5)
    labels = np.arange(2000) % 2
    old, new = rng.normal(size=(2, 2000))
    found = parity.compare(labels, old, new).score_difference.joint
    assert not found.logits
    assert found.counts.sum() == 2000
    low, high = found.edges[[10, 30]]
    inside = (old >= low) & (old < high)
    assert found.counts[10:30].sum() == inside.sum(), "the first axis is the baseline's"
    logistic = [1 / (1 + np.exp(-scores)) for scores in (old, new)]
    again = parity.compare(labels, *logistic).score_difference.joint
    assert again.logits
    assert abs(again.counts - found.counts).sum() <= 4, "but for rounding at the edges"
