"""The yardstick: Theil's three parts, and what share of them some rows have."""

import numpy as np
import pytest

from parity.diagnosis.apart import measure
from parity.inputs.logits import logit, sigmoid

ROWS = 4000


def scores(seed=0):
    return np.random.default_rng(seed).normal(size=ROWS) * 2


def test_the_three_parts_add_up_to_the_mean_squared_difference():
    old = scores()
    new = 1.5 * old + 0.7 + scores(1) / 4
    apart = measure(old, new)
    assert apart.total == pytest.approx(np.mean((new - old) ** 2))
    assert apart.shift == pytest.approx((new.mean() - old.mean()) ** 2)
    assert apart.stretch == pytest.approx((new.std() - old.std()) ** 2)
    correlation = np.corrcoef(old, new)[0, 1]
    assert apart.scatter == pytest.approx(2 * old.std() * new.std() * (1 - correlation))
    assert apart.residuals().mean() == pytest.approx(apart.scatter)


def test_an_affine_map_is_all_shift_and_stretch():
    old = scores()
    assert measure(old, 0.5 * old - 1).affine == pytest.approx(1)
    assert measure(old, np.random.default_rng(1).permutation(old)).affine == pytest.approx(0)


def test_probabilities_are_compared_as_logits():
    old, new = scores(), scores(1)
    apart = measure(sigmoid(old), sigmoid(new))
    assert apart.logits
    assert apart.total == pytest.approx(np.mean((new - old) ** 2))
    assert logit(sigmoid(np.array([-30.0, 0.0, 3.0]))) == pytest.approx([-30, 0, 3])


def test_weights_count_rows_so_often():
    old, new = scores(), scores(1)
    weight = np.random.default_rng(2).integers(1, 4, ROWS)
    weighted = measure(old, new, weight.astype(float))
    repeated = measure(np.repeat(old, weight), np.repeat(new, weight))
    for name in ("total", "shift", "stretch", "scatter"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name))
    rows = old > 1
    assert weighted.share(rows) == pytest.approx(repeated.share(np.repeat(rows, weight)))


def test_rows_that_alone_differ_have_all_of_it():
    old, rows = scores(), np.arange(ROWS) % 10 == 3
    new = np.where(rows, scores(1), old)
    apart = measure(old, new)
    assert apart.share(rows) == pytest.approx(1)
    assert apart.share(~rows) == 0
    assert apart.mended(rows) == pytest.approx(old)


def test_rows_that_differ_as_all_do_have_nothing():
    old = scores()
    apart = measure(old, old + scores(1))
    assert apart.share(np.arange(ROWS) % 2 == 0) < 0.05


def test_a_shift_of_all_rows_leaves_less_for_some():
    """The other rows show the shift, which is then no difference of these rows."""
    old, rows = scores(), np.arange(ROWS) % 10 == 3
    new = np.where(rows, scores(1), old)
    alone, shifted = measure(old, new), measure(old, new + 2)
    expected = alone.total / shifted.total
    assert shifted.share(rows) == pytest.approx(expected)
    assert 0.1 < expected < 0.5
    assert shifted.mended(rows) == pytest.approx(old + 2)


def test_float32s_rounding_is_nothing():
    old = scores()
    assert measure(old, old.astype(np.float32)).nothing
    assert measure(old, old).nothing
    assert not measure(old, old + 1e-3).nothing


def test_a_constant_side_is_all_scatter_and_shift():
    apart = measure(scores(), np.full(ROWS, 0.3))
    assert np.isfinite(apart.residuals()).all()
    assert 0 <= apart.share(np.arange(ROWS) < 100) < 0.1


def test_nearly_all_rows_with_nearly_all_of_the_difference_have_no_share_of_their_own():
    old, many = scores(), np.arange(ROWS) % 100 < 92
    apart = measure(old, old + scores(1) * np.where(many, 1.3, 1))
    assert apart.share(many) == 0
    assert measure(old, old + scores(1) * np.where(many, 0.1, 1)).share(~many) > 0.8
