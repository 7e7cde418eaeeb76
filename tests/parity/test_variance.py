"""The clustered variance: Obuchowski's factors, in memory and beyond it, and what it rests on."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import parity
from parity.histogram.beyond_memory import compare_blocks
from parity.histogram.counts import Kind
from parity.inputs.rows import checked_rows
from parity.io.blocks import Block
from parity.stats.delong import class_observations, effective_number
from semisync.common.errors import BadInput
from tests.parity import definition


def by_group(columns, clusters):
    rows = checked_rows(*columns, clusters)
    block = Block(rows, np.arange(len(clusters)), {}, pa.chunked_array([pa.array(clusters)]))
    return compare_blocks([block], Kind(), 5e-4, grouped=True)


def few_clusters_with_positives(seed=0):
    """Five of 200 users have clicked."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 200, 4000)
    labels = (clusters < 5) & (rng.random(4000) < 0.5)
    old = rng.normal(size=4000) + labels
    return (labels, old, old + rng.normal(size=200)[clusters]), clusters


def test_the_correction_counts_the_clusters_that_hold_the_class():
    columns, clusters = few_clusters_with_positives()
    found = parity.compare(*columns, clusters=clusters)
    expected = definition.obuchowski_variance(*columns, clusters)
    assert found.standard_error**2 == pytest.approx(expected, rel=1e-9)
    labels, old, new = columns
    moved = definition.kernel(new[labels], new[~labels]) - definition.kernel(
        old[labels], old[~labels]
    )
    up = np.bincount(clusters[labels], moved.mean(1) - moved.mean())
    down = np.bincount(clusters[~labels], moved.mean(0) - moved.mean())
    sums = np.pad(up, (0, 200 - len(up))) / labels.sum() + down / (~labels).sum()
    assert expected > 1.1 * 200 / 199 * (sums**2).sum(), "as if all clusters held positives"


def test_beyond_memory_has_the_same_variance():
    columns, clusters = few_clusters_with_positives()
    exact, counted = parity.compare(*columns, clusters=clusters), by_group(columns, clusters)
    assert counted.clusters == exact.clusters
    assert exact.standard_error <= counted.standard_error
    assert counted.standard_error == pytest.approx(exact.standard_error, rel=0.01)
    assert counted.rare_failures.observations == pytest.approx(exact.rare_failures.observations)
    assert counted.rare_failures.carriers == pytest.approx(exact.rare_failures.carriers, rel=0.02)
    assert counted.rare_failures.floor == pytest.approx(exact.rare_failures.floor, rel=1e-3)
    assert counted.interval.low == pytest.approx(exact.interval.low, rel=0.02)


def half_widths(found):
    return found.interval.high - found.delta, found.delta - found.interval.low


def test_the_interval_has_the_degrees_of_freedom_of_welch():
    rng = np.random.default_rng(1)
    labels = np.arange(40) < 12
    old = rng.normal(size=40) + labels
    new = old + rng.normal(size=40)
    moved = definition.kernel(new[labels], new[~labels]) - definition.kernel(
        old[labels], old[~labels]
    )
    df = stats.ttest_ind(moved.mean(1), moved.mean(0), equal_var=False).df
    found = parity.compare(labels, old, new)
    expected = stats.t.ppf(0.95, df) * found.standard_error
    assert half_widths(found) == pytest.approx((expected, expected), rel=1e-6)


def test_a_cluster_that_holds_both_classes_counts_once_in_them():
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(6), 40)
    labels = rng.random(240) < 0.5
    old = rng.normal(size=240) + labels
    new = old + rng.normal(size=240)
    found = parity.compare(labels, old, new, clusters=clusters)
    expected = stats.t.ppf(0.95, 5) * found.standard_error
    assert half_widths(found) == pytest.approx((expected, expected), rel=1e-6)


def test_a_class_in_one_cluster_has_no_standard_error():
    columns, clusters = few_clusters_with_positives()
    alone = np.where(columns[0], 0, clusters)
    for compared in (lambda *c: parity.compare(*c[0], clusters=c[1]), by_group):
        with pytest.raises(BadInput, match="^all positive rows are in one of the 200"):
            compared(columns, alone)


def test_few_clusters_that_hold_the_rarer_class_are_noted():
    columns, clusters = few_clusters_with_positives()
    found = parity.compare(*columns, clusters=clusters)
    assert found.clusters == 200
    assert found.rare_failures.observations <= 5
    assert "rests on 5 observations" in found.notes[0]
    assert "clusters that hold it" in found.notes[0]


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=30))
def test_the_effective_number_is_the_count_of_equals_and_never_more(weights):
    weights = np.array(weights)
    assert effective_number(np.full(len(weights), weights[0])) == pytest.approx(len(weights))
    assert effective_number(weights) * (1 + 1e-12) >= 1
    assert effective_number(weights) <= len(weights) * (1 + 1e-12)
    assert effective_number(7 * weights) == pytest.approx(effective_number(weights))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=4, max_size=40))
def test_observations_of_a_class_are_its_rows_or_what_its_clusters_come_to(sample):
    labels, clusters = (np.array(column) for column in zip(*sample))
    assume(0 < labels.sum() < len(labels))
    alone = class_observations(labels, None, None)
    assert alone == (np.count_nonzero(~labels), np.count_nonzero(labels))
    together = class_observations(labels, None, clusters)
    for of_class, count in zip((~labels, labels), together):
        held = np.unique(clusters[of_class], return_counts=True)[1]
        assert count == pytest.approx(held.sum() ** 2 / (held**2).sum())
