"""`parity.auc` is exact: it is the definition, for any ties, dtype, order and weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import parity
from tests.parity import definition

TINY = float(np.finfo(np.float32).smallest_subnormal)
EDGES = [-np.inf, -2.0, -1.0, -TINY, -0.0, 0.0, TINY, 2 * TINY, 0.5, 1.0, 1e30]


def two_class_samples(values):
    row = st.tuples(st.integers(0, 1), values)
    both = st.tuples(st.tuples(st.just(0), values), st.tuples(st.just(1), values))
    return st.tuples(both, st.lists(row, max_size=40)).map(lambda parts: [*parts[0], *parts[1]])


@given(two_class_samples(st.sampled_from(EDGES[1:])), st.sampled_from([np.float32, np.float64]))
def test_is_the_share_of_pairs_won_with_ties_half_won(sample, dtype):
    labels, scores = (np.array(column) for column in zip(*sample))
    scores = scores.astype(dtype)
    assert parity.auc(labels, scores) == definition.auc(labels, scores)


@given(two_class_samples(st.floats(allow_nan=False, allow_infinity=False)))
def test_holds_for_any_doubles(sample):
    labels, scores = (np.array(column) for column in zip(*sample))
    assert parity.auc(labels, scores) == definition.auc(labels, scores)


@given(two_class_samples(st.tuples(st.sampled_from(EDGES[1:]), st.integers(1, 5))))
def test_weights_weigh_each_pair_by_their_product(sample):
    labels = np.array([label for label, _ in sample])
    scores = np.array([score for _, (score, _) in sample])
    weights = np.array([weight for _, (_, weight) in sample])
    expected = definition.auc(labels, scores, weights)
    assert parity.auc(labels, scores, weights) == pytest.approx(expected, abs=1e-14)
    repeated = parity.auc(labels.repeat(weights), scores.repeat(weights))
    assert parity.auc(labels, scores, weights) == pytest.approx(repeated, abs=1e-14)


@pytest.mark.parametrize(
    ("dtype", "digits", "shift"),
    [(np.float32, 2, 0), (np.float32, 9, -3), (np.float64, 2, -3), (np.float64, 9, 0)],
    ids=["tied", "distinct of both signs", "tied of both signs", "distinct"],
)
@pytest.mark.few(1)
def test_agrees_with_sklearn_on_a_million_rows(dtype, digits, shift):
    rng = np.random.default_rng(7)
    labels = rng.random(1_000_000) < 0.02
    scores = (rng.random(1_000_000) * 5 + labels + shift).round(digits).astype(dtype)
    assert parity.auc(labels, scores) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    weights = rng.random(1_000_000)
    expected = roc_auc_score(labels, scores, sample_weight=weights)
    assert parity.auc(labels, scores, weights) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("outlier", [1e30, -1e30, 1.5])
def test_either_class_may_be_rare_and_an_outlier_may_crowd_the_other_scores(rare, outlier):
    rng = np.random.default_rng(1)
    labels = (rng.random(4000) < 0.05) == rare
    steps = rng.integers(0, 900, 4000) + 200 * labels
    scores = np.append(1 + steps * 2.0**-23, outlier).astype(np.float32)
    labels = np.append(labels, True)
    assert parity.auc(labels, scores) == definition.auc(labels, scores)
    side = parity.compare(labels, scores, scores).baseline
    assert side.auc == pytest.approx(definition.auc(labels, scores), abs=1e-15)


def test_does_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(3)
    labels = rng.random(5000) < 0.3
    scores = rng.normal(size=5000).round(2).astype(np.float32)
    first = parity.auc(labels, scores)
    for _ in range(5):
        order = rng.permutation(5000)
        assert parity.auc(labels[order], scores[order]) == first


def test_a_constant_score_is_worth_one_half():
    labels = np.arange(1000) % 7 == 0
    for constant in (0.0, -3.5, 0.25):
        assert parity.auc(labels, np.full(1000, constant, np.float32)) == 0.5


def test_both_zeros_are_one_score():
    assert parity.auc([1, 0], [0.0, -0.0]) == 0.5
    assert parity.auc([0, 1], np.array([0.0, -0.0], np.float32)) == 0.5


def test_denormals_are_told_apart():
    scores = np.array([TINY, 2 * TINY, -TINY, 0], np.float32)
    assert parity.auc([0, 1, 0, 0], scores) == 1.0
    assert parity.auc([0, 0, 1, 0], scores) == 0.0


def test_single_precision_ranks_what_it_holds():
    doubles = np.array([0.1, 0.1 + 1e-12])
    assert parity.auc([0, 1], doubles) == 1.0
    assert parity.auc([0, 1], doubles.astype(np.float32)) == 0.5


@pytest.mark.parametrize(
    "labels", [[0, 1, 1], [False, True, True], [0.0, 1.0, 1.0], np.array([0, 1, 1], np.uint8)]
)
@pytest.mark.parametrize("scores", [[1, 2, 1], np.array([1, 2, 1], np.float16), (0.1, 0.2, 0.1)])
def test_takes_labels_and_scores_of_any_kind_of_number(labels, scores):
    assert parity.auc(labels, scores) == 0.75


def test_leaves_its_arguments_as_they_are():
    labels = np.array([0, 1, 0, 1])
    scores = np.array([-0.0, 0.5, -1.0, 0.25], np.float32)
    before = scores.tobytes()
    parity.auc(labels, scores)
    assert scores.tobytes() == before


def test_a_published_table_of_ratings():
    """109 CT images rated 1 to 5: Hanley & McNeil (1982); DeLong's error as in Stata's roctab."""
    labels = np.repeat([0, 1], [58, 51])
    ratings = np.repeat([1, 2, 3, 4, 5] * 2, [33, 6, 6, 11, 2, 3, 2, 2, 11, 33])
    assert round(parity.auc(labels, ratings), 4) == 0.8932
    side = parity.compare(labels, ratings, ratings).baseline
    assert round(side.standard_error, 4) == 0.0307
