"""Drift and breaks over days: found where they are, rarely where there are none."""

import math

import numpy as np
import pytest
from scipy import stats

import parity
from parity.report.words.details import days_in_words
from parity.stats.intervals import Interval
from parity.stats.parts import Part
from parity.stats.trend import change_of, series_of, slope_of


def days_of(deltas, errors):
    z = stats.norm.ppf(0.95)
    return series_of(
        [
            Part(
                f"day {i + 1}",
                100,
                50,
                delta=d,
                standard_error=e,
                interval=Interval(d - z * e, d + z * e),
            )
            for i, (d, e) in enumerate(zip(deltas, errors))
        ]
    )


def broken(rng, first, errors, by=-5e-4):
    deltas = errors * rng.normal(size=len(errors))
    deltas[first:] += by
    return days_of(deltas, errors)


def test_a_model_that_breaks_on_day_11_of_14_is_found():
    rng = np.random.default_rng(1)
    found = [change_of(broken(rng, 10, np.full(14, 1e-4))) for _ in range(100)]
    named = [one for one in found if one.likely]
    assert len(named) > 95
    days = [one.day for one in named if one.lasts]
    assert days.count("day 11") > 85
    assert np.mean([one.difference for one in named]) == pytest.approx(-5e-4, rel=0.05)
    assert {one.places for one in found} == {2 * 14 - 3}


def test_it_is_found_in_rows_and_said_in_words():
    rng = np.random.default_rng(2)
    day = np.arange(28_000) % 14
    labels = rng.random(28_000) < 0.3
    old = rng.normal(size=28_000) + labels
    new = np.where(day >= 10, old + rng.normal(size=28_000), old)  # not a row moves before
    names = np.array([f"2024-01-{i + 1:02d}" for i in range(14)])
    found = parity.compare_days(labels, old, new, names[day])
    assert [one.standard_error for one in found.days[:10]] == [0] * 10
    assert (found.change.day, found.change.lasts) == ("2024-01-11", True)
    assert "From 2024-01-11 on the daily difference is another one" in days_in_words(found, 5e-4)
    assert found.drift_p < 0.05


def test_a_single_bad_day_is_found_as_one():
    rng = np.random.default_rng(3)
    deltas = 1e-4 * rng.normal(size=14)
    deltas[6] -= 1e-3
    found = change_of(days_of(deltas, np.full(14, 1e-4)))
    assert (found.day, found.lasts, found.likely) == ("day 7", False, True)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["alike", "two quiet", "unlike", "scattered", "few"])
def test_no_change_is_named_more_often_than_promised(kind):
    rng = np.random.default_rng(4)
    errors = np.full(5 if kind == "few" else 14, 1e-4)
    if kind == "two quiet":
        errors[[3, 9]] = 1e-7
    if kind == "unlike":
        errors *= np.exp(0.5 * rng.normal(size=14))
    scatter = 4 if kind == "scattered" else 1
    found = [days_of(scatter * errors * rng.normal(size=len(errors)), errors) for _ in range(500)]
    assert np.mean([change_of(one).likely for one in found]) < 0.05 + 3 * math.sqrt(
        0.05 * 0.95 / 500
    )
    assert np.mean([slope_of(one).p < 0.05 for one in found]) < 0.08


def test_quiet_days_do_not_rule():
    """Two days on which nothing moved would otherwise weigh a million times the others."""
    rng = np.random.default_rng(5)
    errors = np.full(14, 1e-4)
    errors[[2, 12]] = 1e-7
    deltas = errors * rng.normal(size=14)
    deltas[10:] -= 8e-4
    deltas[12] = 0  # few rows came, and none was hit
    found = change_of(days_of(deltas, errors))
    assert (found.day, found.lasts, found.likely) == ("day 11", True, True)


def test_the_slope_of_equal_errors_is_that_of_least_squares():
    rng = np.random.default_rng(6)
    deltas = 1e-3 * rng.normal(size=20) + 1e-4 * np.arange(20)
    found = slope_of(days_of(deltas, np.full(20, 1e-6)))  # far below the scatter
    expected = stats.linregress(np.arange(20), deltas)
    assert found.slope == pytest.approx(expected.slope)
    assert found.standard_error == pytest.approx(expected.stderr)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6)


def test_the_change_of_equal_errors_is_students_t_test():
    rng = np.random.default_rng(7)
    deltas = 1e-3 * rng.normal(size=12)
    deltas[8:] += 5e-3
    found = change_of(days_of(deltas, np.full(12, 1e-9)))
    expected = stats.ttest_ind(deltas[8:], deltas[:8])
    assert found.difference == pytest.approx(deltas[8:].mean() - deltas[:8].mean())
    assert found.p == pytest.approx(min(1, expected.pvalue * 21), rel=1e-3)


def test_days_without_any_difference_show_no_change():
    labels = np.arange(2000) % 2
    scores = np.random.default_rng(8).random(2000)
    found = parity.compare_days(labels, scores, scores, np.arange(2000) // 200)
    assert (found.slope, found.drift_p, found.change.p) == (0, 1, 1)


def test_days_are_numbered_among_all_and_two_are_too_few():
    days = [Part("a", 5, 1), *(Part(x, 9, 4, delta=0.1, standard_error=0.1) for x in "bc")]
    series = series_of(days)
    assert series.places.tolist() == [1, 2]
    assert (slope_of(series), change_of(series)) == (None, None)
