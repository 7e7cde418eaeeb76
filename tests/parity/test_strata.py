"""Slices and days: each is its own comparison; hunts and drift are honest about chance."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats

import parity
from parity.histogram.beyond_memory import compare_counts
from parity.histogram.counts import Counts, Division, Kind
from parity.inputs.rows import Rows
from parity.stats.strata import Part, drift, with_q
from semisync.cli import main
from semisync.common.errors import BadInput, UsageError
from tests.parity.records import PASSED


def sample(rows=6000, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < 0.3
    old = rng.normal(size=rows) + labels
    return labels, old, old + 0.2 * rng.normal(size=rows), rng.integers(0, 6, rows)


@pytest.mark.parametrize("within", [parity.compare_slices, parity.compare_days])
@pytest.mark.parametrize("margin", [0.0, 1.0, float("nan")])
def test_a_margin_without_meaning_is_refused_as_by_the_whole_comparison(within, margin):
    columns = sample(100)
    with pytest.raises(UsageError, match=f"^the margin is {margin};"):
        within(*columns, margin)


def test_a_slice_is_the_comparison_of_its_rows():
    labels, old, new, part = sample()
    users = np.arange(6000) // 3
    found = parity.compare_slices(labels, old, new, part, 0.01, users)
    assert [slice_.name for slice_ in found] == list("012345")
    for i, slice_ in enumerate(found):
        rows = part == i
        columns = labels[rows], old[rows], new[rows], 0.01, users[rows]
        alone = parity.compare(*columns, verified=PASSED)  # rare faults are asked of all rows alone
        assert slice_.delta == alone.delta
        assert slice_.standard_error == pytest.approx(alone.standard_error)
        assert slice_.verdict == alone.verdict
        assert slice_.rows == rows.sum()


def test_a_slice_of_one_class_is_listed_without_figures():
    found = parity.compare_slices([0, 1, 0, 1, 1, 1], range(6), range(6), list("aaaabb"))
    assert found[1] == Part("b", 2, 2)


def test_q_values_are_benjamini_hochbergs():
    p = np.random.default_rng(1).random(40) ** 3
    found = with_q([Part("", 1, 1, p=value) for value in p] + [Part("none", 1, 1)])
    assert [part.q for part in found[:-1]] == pytest.approx(stats.false_discovery_control(p))
    assert found[-1].q is None


def test_a_hunt_finds_the_slice_that_differs():
    labels, signal, new, part = sample(rows=20_000)
    old = signal + 0.2 * np.random.default_rng(1).normal(size=20_000)  # as good as the new one
    new = np.where(part == 4, new + np.random.default_rng(2).normal(size=20_000), new)
    found = parity.compare_slices(labels, old, new, part)
    assert [slice_.name for slice_ in found if slice_.differs] == ["4"]


def in_memory(columns, slices):
    return parity.compare_slices(*columns, slices)


def in_histograms(columns, slices):
    counts = Counts(Kind(slices=("s",)))
    values, codes = np.unique(slices, return_inverse=True)
    counts.add(Rows(*columns), {"s": Division(values.tolist(), codes)})
    return compare_counts(counts, 5e-4).slices[0][1]


@pytest.mark.parametrize("compared", [in_memory, in_histograms])
def test_a_hunt_does_not_point_out_few_rows_that_all_see_one_difference(compared):
    """Two positives above two negatives, and below them: a difference of 1, an error of 0."""
    labels = np.tile([True, True, False, False], 3)
    old = np.array([3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2], float)
    new = np.array([1, 2, 3, 4, 3, 4, 1, 2, 1.1, 3, 2, 1], float)
    wrong, alike, mixed = compared((labels, old, new), np.repeat(["a", "b", "c"], 4))
    assert (wrong.delta, wrong.standard_error) == (-1, 0)
    assert wrong.p == pytest.approx(2 * 0.5**2)  # 50 % see no such thing: missed by two rows
    assert wrong.verdict == "INCONCLUSIVE"
    assert (alike.delta, alike.p) == (0, 1)
    assert mixed.standard_error > 0
    alone = parity.compare(labels[:4], old[:4], new[:4])
    assert (wrong.verdict, wrong.interval) == (alone.verdict, alone.interval)


def test_mean_over_days_and_its_error():
    labels, old, new, day = sample()
    found = parity.compare_days(labels, old, new, day, 0.01)
    deltas = [part.delta for part in found.days]
    assert found.mean_delta == pytest.approx(np.mean(deltas))
    errors = np.array([part.standard_error for part in found.days])
    assert found.standard_error == pytest.approx(np.sqrt((errors**2).sum()) / 6)
    alone = parity.compare_days(labels, old, new, day, 0.01, clusters=np.arange(6000))
    assert alone.standard_error == pytest.approx(found.standard_error, rel=0.01)
    # A user who brings the same rows every day brings nothing new after the first.
    again = [np.tile(column, 5) for column in (labels, old, new)]
    days, users = np.repeat(np.arange(5), 6000), np.tile(np.arange(6000), 5)
    repeated = parity.compare_days(*again, days, 0.01, clusters=users)
    once = parity.compare(labels, old, new, 0.01, clusters=np.arange(6000))
    assert repeated.standard_error == pytest.approx(once.standard_error)


def test_drift_is_found_where_there_is_one_and_rarely_where_there_is_none():
    rng = np.random.default_rng(3)

    def series(slope, scatter=1e-4):
        return [
            Part(str(day), 1, 1, delta=slope * day + scatter * rng.normal(), standard_error=1e-4)
            for day in range(12)
        ]

    slope, error, p = drift(series(5e-5))
    assert slope == pytest.approx(5e-5, abs=4 * error)
    assert p < 0.01
    for scatter in (1e-4, 5e-4):  # as the errors say, and more than they say
        false = [drift(series(0, scatter))[2] < 0.05 for _ in range(600)]
        assert np.mean(false) < 0.08
    assert drift(series(0)[:2]) == (None, None, None)


@pytest.mark.parametrize("name", ["{}".format, "2024-1-{}".format, "day {}".format])
def test_days_in_words_have_the_order_of_the_days(name):
    labels, old, new, _ = sample()
    day = np.arange(6000) // 500 + 1  # 1 to 12
    new += (day == 10) * 3 * np.random.default_rng(1).normal(size=6000)
    found = parity.compare_days(labels, old, new, list(map(name, day.tolist())))
    by_number = parity.compare_days(labels, old, new, day)
    assert [part.name for part in found.days] == [name(number) for number in range(1, 13)]
    assert (found.slope, found.drift_p) == (by_number.slope, by_number.drift_p)
    assert (found.change.day, found.change.lasts) == (name(10), False)


@pytest.mark.parametrize(
    "days", [["12/31/2023", "1/1/2024"], ["Mon, 30 Sep 2024", "Tue, 1 Oct 2024"]]
)
def test_dates_that_do_not_sort_by_their_names_are_refused(days):
    labels, old, new, _ = sample(100)
    with pytest.raises(BadInput, match=r"has its year last.* write dates as 2024-01-31$"):
        parity.compare_days(labels, old, new, days * 50)


def test_no_day_to_compare_is_refused():
    with pytest.raises(BadInput, match="no day has two rows of each class"):
        parity.compare_days([0, 1, 0, 1], [1, 2, 3, 4], [1, 2, 3, 4], [1, 1, 2, 2])


def test_worst_rows_hold_the_largest_shares():
    labels, old, new, _ = sample(rows=300)
    new[np.flatnonzero(labels)[7]] = -50
    every = parity.worst_rows(labels, old, new, 300)
    assert every[0].row == np.flatnonzero(labels)[7]
    assert every[0].candidate == -50
    shares = [row.share for row in every]
    assert shares == sorted(shares) and shares[-1] < 0
    # Lost: all negatives that the row stood above, a half for each that it tied with.
    lost = np.mean(old[~labels] < old[every[0].row])
    assert every[0].share == pytest.approx(-lost / (2 * labels.sum()))
    assert parity.worst_rows(labels, old, new, 2) == every[:2]


def test_the_command_writes_days_slices_and_worst_rows(tmp_path, capsys):
    labels, old, new, part = sample()
    table = pa.table({"y": labels, "a": old, "b": new, "day": part, "os": part.astype(str)})
    pyarrow.parquet.write_table(table, tmp_path / "s.parquet")
    command = ["parity", str(tmp_path / "s.parquet"), "--label", "y", "--baseline-score", "a"]
    command += ["--candidate-score", "b", "--out", str(tmp_path / "out"), "--margin", "0.5"]
    assert main([*command, "--day", "day", "--slice", "os", "--worst", "3"]) == 0
    out = capsys.readouterr().out
    assert "Mean of 6 daily differences" in out
    assert "os: of 6 slices 6 equivalent" in out
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len(record["days"]["days"]) == len(record["slices"]["os"]) == 6
    assert record["slices"]["os"][0]["verdict"] == "EQUIVALENT"
    assert len(record["worst_rows"]) == 3


def test_rows_of_weight_zero_are_in_no_slice_and_no_worst_row():
    labels, old, new, part = sample(rows=1200)
    weights = np.where((np.arange(1200) % 5 == 0) | (part == 3), 0.0, 1.0)
    kept = weights > 0
    columns = [column[kept] for column in (labels, old, new, part)]
    found = parity.compare_slices(labels, old, new, part, 0.01, weights=weights)
    assert [(one.name, one.rows) for one in found] == [
        (one.name, one.rows) for one in parity.compare_slices(*columns, 0.01)
    ]
    assert found == parity.compare_slices(*columns, 0.01, weights=weights[kept])
    worst = parity.worst_rows(labels, old, new, 50, weights)
    assert all(kept[row.row] and old[row.row] == row.baseline for row in worst)
    short = parity.worst_rows(*columns[:3], 50)
    assert [np.flatnonzero(kept)[row.row] for row in short] == [row.row for row in worst]
