"""Rare faults: a sample that need not show one does not pass, unless other evidence excludes it."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parity
from parity.histogram.beyond_memory import compare_counts
from parity.histogram.compare import compare_summary
from parity.histogram.counts import Counts, Kind
from parity.histogram.summary import Summary
from parity.inputs.rows import checked_rows
from parity.report.words import verdict as words
from parity.report.words.advice import what_to_do
from parity.stats.equivalence import Evidence, decide
from parity.stats.intervals import HITS
from parity.stats.rare_failures import Sample, rare_failures
from parity.verified import read_record
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.parity.records import PASSED

MARGIN = 5e-4


def faulty(rng, positives, share, rows=4):
    """Scores of a candidate that loses a share of its positives to the middle of the negatives.

    The baseline ranks right throughout, so each loss moves the AUC by half of 1 / positives.
    """
    labels = np.arange(rows * positives) % rows == 0
    baseline = labels * 1000.0 + rng.random(len(labels))
    candidate = baseline.copy()
    hit = np.flatnonzero(labels)[rng.random(positives) < share]
    candidate[hit] = 0.5
    return labels, baseline, candidate


@pytest.mark.long
def test_a_fault_of_one_in_a_thousand_does_not_pass_on_four_hundred_positives():
    """It moves the AUC by the margin; more than half of such samples used to pass."""
    rng = np.random.default_rng(1)
    verdicts = [parity.compare(*faulty(rng, 400, 1e-3)).verdict for _ in range(100)]
    assert verdicts.count("EQUIVALENT") == 0


@pytest.mark.long
def test_rows_that_bring_the_floor_below_the_margin_keep_the_promise():
    """Every share of faults that moves the AUC by the margin passes one time in twenty at most."""
    rng = np.random.default_rng(2)
    passed, trials = 0, 250
    for _ in range(trials):
        columns = faulty(rng, 6200, 2 * MARGIN, rows=2)
        passed += parity.compare(*columns).verdict == "EQUIVALENT"
    assert passed / trials <= 0.06


def test_the_floor_is_three_over_n_times_the_reach():
    labels, baseline, candidate = faulty(np.random.default_rng(3), 1000, 0)
    rare = parity.compare(labels, baseline, candidate).rare_failures
    assert rare.observations == 1000
    assert rare.share == pytest.approx(3.0 / 1000, rel=0.002)
    assert rare.reach == 1
    assert rare.floor == rare.share
    least = 4 * 3.0 / MARGIN
    assert 1.02 * least < rare.rows_to_exclude < 1.1 * least, "as many positives nearly always"


def test_enough_rows_exclude_it_without_a_record():
    enough = parity.compare(*faulty(np.random.default_rng(4), 6100, 0))
    assert enough.verdict == "EQUIVALENT"
    assert enough.rare_failures.floor < MARGIN
    short = parity.compare(*faulty(np.random.default_rng(4), 5900, 0))
    assert short.verdict == "INCONCLUSIVE"
    assert short.rows_to_settle == short.rare_failures.rows_to_exclude > 4 * 5992
    assert short.reason == "rare_faults"


def test_the_reach_is_how_far_a_fault_can_take_a_placement():
    """Of a baseline that ranks at random by one level, no fault moves a row by more than half."""
    labels = np.arange(4000) % 4 == 0
    found = parity.compare(labels, np.zeros(4000), np.zeros(4000))
    assert found.rare_failures.reach == 0.5


@pytest.mark.parametrize("sign", [1, -1])
def test_a_fault_can_take_a_row_from_either_end_to_the_other(sign):
    labels = np.arange(400) % 4 == 0
    scores = sign * (2 * labels + np.random.default_rng(0).random(400))
    assert parity.compare(labels, scores, scores).rare_failures.reach == 1


@given(st.floats(10, 1e6), st.floats(10, 1e6), st.floats(0.1, 1), st.floats(0.1, 1))
def test_the_class_with_the_larger_floor_decides(negatives, positives, reach_of_0, reach_of_1):
    rare = rare_failures(
        Sample(1000, (negatives, positives), (reach_of_0, reach_of_1), 0.0, 0.0), MARGIN
    )
    floors = [min(1, HITS / n) * r for n, r in ((negatives, reach_of_0), (positives, reach_of_1))]
    assert rare.floor == pytest.approx(max(floors))


@given(st.integers(100, 5000), st.integers(100, 5000), st.integers(0, 20))
def test_no_fault_that_is_likely_missed_moves_the_auc_by_more_than_the_floor(p, q, part):
    """Brute force: shares hit of both classes on the edge of being missed one time in twenty."""
    rare = rare_failures(Sample(p + q, (float(q), float(p)), (1.0, 1.0), 0.0, 0.0), MARGIN)
    hits_of_positives = HITS * part / 20
    of_positives, of_negatives = hits_of_positives / p, (HITS - hits_of_positives) / q
    assert (1 - of_positives) ** p * (1 - of_negatives) ** q < 0.0501
    assert of_positives + of_negatives <= rare.floor * (1 + 1e-9)


def test_the_record_stands_for_the_rows():
    labels, baseline, candidate = faulty(np.random.default_rng(5), 400, 0)
    without = parity.compare(labels, baseline, candidate)
    found = parity.compare(labels, baseline, candidate, verified=PASSED)
    assert (without.verdict, found.verdict) == ("INCONCLUSIVE", "EQUIVALENT")
    assert "together" in words.headline(found)
    assert "the verdict rests on both" in " ".join(words.rare_failures_in_words(found))
    assert found.to_json()["verified"]["directory"] == "converted"
    assert "--verified" in what_to_do(without)


def test_a_record_does_not_help_a_difference():
    labels, baseline, candidate = faulty(np.random.default_rng(6), 2000, 0.05)
    assert parity.compare(labels, baseline, candidate, verified=PASSED).verdict == "NOT_EQUIVALENT"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verified": False, "differences": ["'w' differs"]}, "did not pass: 'w' differs"),
        ({"differing_rows": 1}, "did not pass"),
        ({"sample": 100}, "is of a sample of 100 rows of each tensor"),
        ({"schema": "semisync/parity/1"}, "has the schema 'semisync/parity/1'"),
        ({"rows": 0}, "is of a verification of 0 rows"),
        ({"rows": "all"}, "has 'all' for 'rows', not a count"),
        ({"hashes": 0}, "is of a verification of 0 hashes"),
        ({"verified": 1}, "did not pass"),
    ],
)
def test_any_other_record_is_refused(tmp_path, change, message):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**PASSED, **change}))
    with pytest.raises(BadInput, match=message):
        read_record(path)


@pytest.mark.parametrize(
    "key", sorted(set(PASSED) - {"source", "directory", "notes", "bound", "confidence"})
)
def test_a_record_with_a_part_missing_is_refused(key):
    with pytest.raises(BadInput, match="the record of the verification"):
        read_record({name: value for name, value in PASSED.items() if name != key})


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "null", "\0"])
def test_what_is_no_record_ends_with_exit_code_3(tmp_path, capsys, text):
    (tmp_path / "record.json").write_text(text)
    command = command_of(tmp_path, *faulty(np.random.default_rng(7), 400, 0))
    assert main([*command, "--verified", str(tmp_path / "record.json")]) == 3
    assert "semisync verify PREFIX OUT --json" in capsys.readouterr().err
    assert main([*command, "--verified", str(tmp_path / "nowhere.json")]) == 3
    assert "cannot be read" in capsys.readouterr().err


def command_of(folder, labels, baseline, candidate):
    table = pa.table({"y": labels, "a": baseline, "b": candidate})
    pyarrow.parquet.write_table(table, folder / "s.parquet")
    command = ["parity", str(folder / "s.parquet"), "--label", "y", "--baseline-score", "a"]
    return [*command, "--candidate-score", "b", "--out", str(folder / "out")]


def sound(rows=40_000):
    """Two models of one ranking but for the last digits; distinct scores that histograms part."""
    labels = np.arange(rows) % 100 == 0
    baseline = labels / 4 + np.random.default_rng(8).random(rows)
    return labels, baseline, baseline * (1 + 1e-12)


@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.few(1)
def test_the_command_asks_for_the_record_in_memory_and_beyond(tmp_path, capsys, memory):
    command = [*command_of(tmp_path, *sound()), "--memory", memory, "--margin", "0.001"]
    (tmp_path / "record.json").write_text(json.dumps(PASSED))
    assert main(command) == 2
    told = capsys.readouterr().out
    assert "the AUCs agree to within the margin, but so few rows cannot exclude" in told
    assert "Rare faults: one that hits fewer than 0.0075" in told
    assert main([*command, "--verified", str(tmp_path / "record.json")]) == 0
    assert "Verified: converted holds every value" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert record["rare_failures"]["floor"] == pytest.approx(3.0 / 400, rel=0.01)
    assert record["verified"]["rows"] == PASSED["rows"]
    for name in ("report.html", "report.md"):
        assert "Rare faults: one that hits" in (tmp_path / "out" / name).read_text()


@pytest.mark.long
def test_merged_parts_ask_for_it_too(tmp_path, capsys):
    command = [*command_of(tmp_path, *sound()), "--partial", str(tmp_path / "part")]
    assert main([*command, "--verified", "r.json"]) == 3
    assert "give it with --merge" in capsys.readouterr().err
    assert main(command) == 0
    merge = ["parity", "--merge", str(tmp_path / "part"), "--out", str(tmp_path / "m")]
    merge += ["--margin", "0.001"]
    (tmp_path / "record.json").write_text(json.dumps(PASSED))
    assert main(merge) == 2
    assert main([*merge, "--verified", str(tmp_path / "record.json")]) == 0


def test_runs_ask_for_it_too():
    labels, baseline, _ = sound()
    columns = labels, [baseline, baseline + 1e-13], [baseline, baseline - 1e-13]
    found = parity.compare_runs(*columns, margin=1e-3)
    assert (found.verdict, found.rare_failures.floor > 1e-3) == ("INCONCLUSIVE", True)
    assert found.rows_to_settle == found.rare_failures.rows_to_exclude
    assert "rows like these" in what_to_do(found), "more runs would not do"
    assert parity.compare_runs(*columns, margin=1e-3, verified=PASSED).verdict == "EQUIVALENT"


@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_find_the_floor_of_the_rows(weighted):
    rng = np.random.default_rng(9)
    labels, baseline, _ = sound(20_000)
    candidate = baseline + 0.01 * rng.normal(size=20_000)
    weights = rng.integers(1, 4, 20_000).astype(float) if weighted else None
    exact = parity.compare(labels, baseline, candidate, weights=weights).rare_failures
    summary = Summary(weighted)
    rows = checked_rows(labels, baseline, candidate, None, weights)
    summary.add(rows.positive, rows.baseline, rows.candidate, rows.weights)
    counted = compare_summary(summary).rare_failures
    assert counted.observations == pytest.approx(exact.observations)
    assert exact.floor <= counted.floor <= exact.floor * 1.001
    assert counted.carriers == pytest.approx(exact.carriers, rel=0.1)
    counts = Counts(Kind(weighted))
    counts.add(rows, {})
    assert compare_counts(counts, MARGIN).rare_failures == counted


def test_few_rows_that_carry_the_standard_error_are_noted_and_allowed_for():
    """Two lost of 12,000: the interval ends below the margin, a Poisson count of 2 does not."""
    labels, baseline, candidate = faulty(np.random.default_rng(10), 12_000, 0, rows=2)
    candidate[np.flatnonzero(labels)[[5, 6]]] = -1
    found = parity.compare(labels, baseline, candidate, verified=PASSED)
    assert max(map(abs, found.interval)) < MARGIN
    assert found.rare_failures.carriers == pytest.approx(2, abs=0.01)
    assert found.rare_failures.allowance == pytest.approx(HITS / 12_000, rel=0.01)
    assert "About 2 rows, or clusters, carry the standard error" in " ".join(found.notes)
    assert found.verdict == "INCONCLUSIVE"
    wide = parity.compare(labels, baseline, candidate, margin=7e-4, verified=PASSED)
    assert wide.verdict == "EQUIVALENT"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-1e-4, 1e-4, "EQUIVALENT"),
        (-3e-4, 1e-4, "INCONCLUSIVE"),
        (-9e-4, -6e-4, "INCONCLUSIVE"),
        (-12e-4, -9e-4, "NOT_EQUIVALENT"),
    ],
)
def test_the_allowance_alone_can_leave_it_open(low, high, verdict):
    rare = rare_failures(Sample(10_000, (5e3, 5e3), (0.1, 0.1), 2.0, 1e-4), MARGIN)
    evidence = Evidence(
        delta=(low + high) / 2,
        standard_error=(high - low) / 2 / 1.6448536,
        freedom=1e9,
        observations=rare.observations,
        allowance=rare.allowance,
        floor=rare.floor,
    )
    decision = decide(evidence, MARGIN)
    assert decision.interval == pytest.approx((low, high))
    assert decision.verdict == verdict


def test_a_comparison_without_the_figures_still_has_a_report():
    found = dataclasses.replace(parity.compare(*sound()), rare_failures=None)
    assert words.rare_failures_in_words(found) == []
    assert not words.needs_record(found)
