"""Several runs per side: error rates in simulation, parts of the variance, control and power."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats

import parity
from parity.stats.intervals import quantile
from parity.stats.seeds import freedom_of_lone, power, runs_to_settle, satterthwaite
from semisync.cli import main
from semisync.common.errors import UsageError


@pytest.mark.parametrize("df", [1, 1.5, 2, 4, 14, 300.5, 1001, 5e6])
@pytest.mark.parametrize("level", [0.75, 0.95, 0.999])
def test_students_quantile_is_scipys(df, level):
    assert quantile(level, df) == pytest.approx(stats.t.ppf(level, df), rel=1e-6)


def pipeline(rng, labels, runs, shift=0.0, noise=0.2):
    """Runs whose AUCs differ by seed: each has its own signal strength."""
    strength = 1 + shift + noise * rng.normal(size=runs)
    shared = rng.normal(size=len(labels))
    return [labels * s + shared + 0.1 * rng.normal(size=len(labels)) for s in strength]


def test_variance_is_seeds_plus_rows():
    rng = np.random.default_rng(1)
    labels = rng.random(4000) < 0.3
    old, new = pipeline(rng, labels, 4), pipeline(rng, labels, 3)
    found = parity.compare_runs(labels, old, new, margin=0.05)
    noise = found.training
    aucs = [[parity.auc(labels, run) for run in side] for side in (old, new)]
    assert noise.baseline_aucs == tuple(aucs[0])
    assert found.delta == pytest.approx(np.mean(aucs[1]) - np.mean(aucs[0]))
    by_seed = np.var(aucs[0], ddof=1) / 4 + np.var(aucs[1], ddof=1) / 3
    assert noise.standard_error_seeds**2 == pytest.approx(by_seed)
    assert found.standard_error**2 == pytest.approx(by_seed + noise.standard_error_rows**2)
    gaps = np.abs(np.subtract.outer(aucs[0], aucs[0]))[np.triu_indices(4, 1)]
    assert noise.control.largest == gaps.max()
    assert noise.control.pairs == 6
    assert noise.control.beyond_margin == (gaps > 0.05).sum()


def test_runs_that_are_alike_leave_the_error_of_the_rows():
    rng = np.random.default_rng(2)
    labels = rng.random(2000) < 0.3
    old, new = (pipeline(rng, labels, 1)[0] for _ in range(2))
    once = parity.compare(labels, old, new)
    twice = parity.compare_runs(labels, [old, old], [new, new])
    assert twice.training.standard_error_seeds == 0
    assert twice.standard_error == pytest.approx(once.standard_error)
    assert twice.training.standard_error_rows == pytest.approx(once.standard_error)
    assert "Two of the baseline's runs have the same scores" in twice.notes[0]
    assert "Two of the candidate's runs" in twice.notes[1]
    others = parity.compare_runs(labels, [old, new], [new])
    assert not any("the same scores" in note for note in others.notes)


def test_pipelines_a_margin_apart_pass_at_most_one_time_in_twenty():
    """Few runs and much seed noise, where 1.645 standard errors would be too narrow."""
    rng = np.random.default_rng(3)
    passed, naive = 0, 0
    for _ in range(3000):
        parts = [(np.var(rng.normal(size=3), ddof=1) / 3, 2) for _ in range(2)]
        delta = 1.5 + rng.normal() * np.sqrt(2 / 3)
        error, df = satterthwaite([*parts, (0.0, 500)])
        passed += delta + quantile(0.95, df) * error < 1.5
        naive += delta + 1.645 * error < 1.5
    assert passed / 3000 < 0.06
    assert naive / 3000 > 0.07


def test_a_lone_run_borrows_a_variance_that_is_known_once():
    rng = np.random.default_rng(5)
    labels = rng.random(4000) < 0.3
    old, new = pipeline(rng, labels, 2), pipeline(rng, labels, 1)
    found = parity.compare_runs(labels, old, new, margin=0.05)
    noise = found.training
    seeds = np.var(noise.baseline_aucs, ddof=1) * (1 / 2 + 1)
    rows = noise.standard_error_rows**2
    assert noise.standard_error_seeds**2 == pytest.approx(seeds)
    assert noise.degrees_of_freedom < (seeds + rows) ** 2 / seeds**2  # Satterthwaite's
    assert "The candidate has one run: its seeds are assumed to spread as" in " ".join(found.notes)
    half = (found.interval.high - found.interval.low) / 2
    apart = (quantile(0.95, 1) * seeds**0.5) ** 2 + (quantile(0.95, 1e6) * rows**0.5) ** 2
    assert half == pytest.approx(apart**0.5, rel=1e-3)


@pytest.mark.parametrize("rows", [0.0, 0.3, 1.0, 3.0])
def test_of_two_runs_against_one_nine_of_ten_intervals_hold_the_difference(rows):
    """Whatever the rows add to what the seeds do."""
    rng = np.random.default_rng(8)
    seeds, by_rows, samples = 1.5, 1.5 * rows**2, 20_000
    delta = rng.normal(0, (seeds + by_rows) ** 0.5, samples)
    found = seeds * rng.chisquare(1, samples)
    half = np.sqrt(stats.t.ppf(0.95, 1) ** 2 * found + stats.norm.ppf(0.95) ** 2 * by_rows)
    assert (abs(delta) <= half).mean() > 0.9 - 3 * (0.09 / samples) ** 0.5
    for part, width in zip(found[:3], half):
        parts = [(part, 1), (by_rows, 1e6)]
        error, _ = satterthwaite(parts)
        assert quantile(0.95, freedom_of_lone(parts)) * error == pytest.approx(width, rel=1e-4)


@pytest.mark.parametrize("runs", [2, 3])
def test_with_a_lone_run_nine_of_ten_intervals_hold_the_difference(runs):
    rng = np.random.default_rng(6)
    aucs = rng.normal(size=(20_000, runs + 1))
    delta = aucs[:, 0] - aucs[:, 1:].mean(1)
    variance = aucs[:, 1:].var(1, ddof=1)
    one = satterthwaite([(1 / runs + 1, runs - 1)])
    error = np.sqrt(variance) * one[0]
    assert (abs(delta) <= quantile(0.95, one[1]) * error).mean() == pytest.approx(0.9, abs=0.01)
    two = satterthwaite([(1 / runs, runs - 1), (1.0, runs - 1)])
    assert (abs(delta) <= quantile(0.95, two[1]) * error).mean() < 0.87


def test_eight_runs_a_side_at_the_seed_noise_of_a_real_pipeline():
    """Seed SD 3e-4 at margin 5e-4: single pairs differ by more in 24 % of cases."""
    variance = 3e-4**2
    needed = runs_to_settle([variance, variance], (0.0, 1e6), 5e-4)
    assert needed in (7, 8)
    rng = np.random.default_rng(4)
    aucs = rng.normal(0, 3e-4, (4000, 2, needed))
    error = np.sqrt(aucs.var(axis=2, ddof=1).sum(axis=1) / needed)
    delta = np.abs(np.subtract(*aucs.mean(axis=2).T))
    passed = np.mean(delta + quantile(0.95, 2 * (needed - 1)) * error < 5e-4)
    expected = power([(variance / needed, needed - 1)] * 2, 5e-4)
    assert expected >= 0.8
    assert passed == pytest.approx(expected, abs=0.03)


def test_rows_that_are_too_few_are_not_blamed_on_the_seeds():
    assert runs_to_settle([1e-8, 1e-8], (1e-6, 100), 5e-4) is None


def test_one_run_a_side_shows_no_noise():
    with pytest.raises(UsageError, match="1 baseline and 1 candidate runs"):
        parity.compare_runs([0, 1], [[0.1, 0.2]], [[0.1, 0.2]])


def test_the_command_takes_a_file_a_run(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(5)
    labels = rng.random(5000) < 0.3
    names = []
    for name, scores in zip("abcd", pipeline(rng, labels, 4, noise=0.001)):
        order = rng.permutation(5000)
        table = pa.table({"id": order, "y": labels[order], "p": scores[order]})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
        names.append(f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    columns = ["--label", "y", "--baseline-score", "p", "--key", "id", "--out", "out"]
    runs = ["--baseline", *names[:2], "--candidate", *names[2:]]
    assert main(["parity", *runs, *columns, "--margin", "0.05"]) == 0
    assert "Control: of 1 pairs of the baseline's own runs, 0 differ" in capsys.readouterr().out
    assert main(["parity", "a.parquet", *runs, *columns]) == 3
    assert main(["parity", "--baseline", "a.parquet", *columns]) == 3
    assert "required: --candidate FILE ..." in capsys.readouterr().err
