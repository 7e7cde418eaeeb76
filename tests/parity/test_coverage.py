"""The intervals hold what they promise: a small run of benchmarks/parity_coverage.py."""

import pytest

from benchmarks.parity_coverage_parts import advice, mistakes, requirements, runs
from benchmarks.parity_coverage_parts.intervals import Design, coverage, faults

SAMPLES = 400
OFF = 4.5 * (0.9 * 0.1 / SAMPLES) ** 0.5  # Monte Carlo errors


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "design",
    [
        Design(500, 0.5, "users"),
        Design(500, 0.01, "rows"),
        Design(500, 0.01, "users"),
        Design(2000, 0.05, "ties"),
    ],
)
def test_ninety_percent_intervals_hold_the_truth_nine_times_in_ten(design):
    *held, passed = coverage(design, SAMPLES, seed=1)
    assert all(0.9 - OFF < share < 0.9 + OFF for share in held)
    assert passed <= 0.06 + 2 * (0.06 * 0.94 / SAMPLES) ** 0.5


@pytest.mark.parametrize("case", [(400, 0.5), (2000, 1.0), (6200, 0.5)], ids=str)
def test_faults_worth_the_margin_rarely_pass(case):
    samples = 150
    now, by_interval_alone = faults(case, samples, seed=1)
    assert now <= 0.06 + 2 * (0.06 * 0.94 / samples) ** 0.5
    assert by_interval_alone > 0.09


@pytest.mark.parametrize("case", list(requirements.cases()), ids=lambda case: case.name)
def test_differences_beside_auc_worth_the_margin_rarely_pass(case):
    samples = 300
    (passed,) = requirements.passes(case, samples, seed=1)
    assert passed <= 0.06 + 2 * (0.06 * 0.94 / samples) ** 0.5


def test_an_interval_that_holds_less_than_it_says_is_noted():
    held, noted = requirements.tails(("log-normal, sigma 2", 300), 300, seed=1)
    assert held < 0.85 and noted > 0.9
    held, noted = requirements.tails(("normal", 300), 300, seed=1)
    assert held > 0.85 and noted == 0


@pytest.mark.long
@pytest.mark.parametrize("case", advice.CASES[:6], ids=lambda case: case.name)
def test_as_many_rows_as_are_advised_decide_it_four_times_out_of_five(case):
    found = advice.kept(case, 60, seed=1)
    assert found.named == found.undecided > 15
    assert found.decided / found.redrawn > 0.8 - 2 * (0.8 * 0.2 / found.redrawn) ** 0.5


@pytest.mark.parametrize("kind", mistakes.USELESS.cases)
def test_useless_models_are_not_found_equivalent(kind):
    now, by_interval_alone = mistakes.useless(kind, 40, seed=1)
    assert by_interval_alone > 0.95
    assert (now > 0.95) if kind == "sound" else (now == 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("times", mistakes.COPIES.cases)
def test_copies_are_warned_of_where_there_are_any(times):
    _, _, warned = mistakes.copied(times, 25, seed=1)
    assert warned == (times != "once")


@pytest.mark.long
@pytest.mark.parametrize(
    "design",
    [runs.Design((2, 1)), runs.Design((3, 1)), runs.Design((3, 1), True, True)],
    ids=lambda design: design.name,
)
def test_a_lone_run_leaves_the_interval_wide_enough(design):
    samples = 60
    equal, apart, passed = runs.kept(design, samples, seed=1)
    off = 3 * (0.9 * 0.1 / samples) ** 0.5
    assert min(equal, apart) > 0.9 - off
    assert passed <= (0.06 + 2 * (0.06 * 0.94 / samples) ** 0.5 if design.stated else 0)
