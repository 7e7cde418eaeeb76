"""Rows that stand more than once: refused by their key or file, warned of by labels and scores."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import parity
from parity.stats.repeats import RepeatCounter
from semisync.cli import main
from tests.parity.kinds import columns

SCORES = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q", "--margin", "0.1"]
ROUNDED = {"digits": lambda x: x, "float32": np.float32, "hundredths": lambda x: x.round(2)}


def sample(rows, kind="digits"):
    labels, old, new = columns(rows, noise=1e-4)
    return labels, ROUNDED[kind](old), ROUNDED[kind](new)


def found(sample, most=1 << 20):
    counter = RepeatCounter(most)
    for start in range(0, len(sample[0]), 7000):
        counter.add(*(column[start : start + 7000] for column in sample))
    return counter.found()


@pytest.mark.parametrize("kind", ROUNDED)
@pytest.mark.parametrize("times", [2, 3])
def test_rows_that_all_stand_several_times_are_counted_however_they_are_rounded(kind, times):
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(10_000), times))
    assert found([column[rows] for column in sample(10_000, kind)]) == (
        10_000 * (times - 1),
        times,
    )


def test_a_zero_of_either_sign_is_one_score():
    labels, old, _ = sample(10_000)
    new = np.repeat([0.0, -0.0], 10_000)
    assert found((np.tile(labels, 2), np.tile(old, 2), new)) == (10_000, 2)


@pytest.mark.parametrize("kind", ROUNDED)
def test_rows_that_are_equal_by_rounding_are_no_copies(kind):
    assert found(sample(200_000, kind)) is None
    assert found(sample(200_000, kind), most=1000) is None


def test_rows_that_are_equal_by_their_features_are_no_copies():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 20_000, 100_000)
    labels, old, new = sample(20_000)
    risk = np.clip(old * np.exp(rng.normal(size=20_000) / 2), 0, 1)  # which the model misses
    assert found((rng.random(100_000) < risk[features], old[features], new[features])) is None


@pytest.mark.parametrize(("most", "error"), [(1 << 20, 0), (5000, 0.1)])
def test_a_few_copies_among_many_rows_are_counted(most, error):
    rows = np.concatenate([np.arange(100_000), np.arange(0, 100_000, 20)])
    repeats = found([column[rows] for column in sample(100_000)], most)
    assert repeats.rows == pytest.approx(5000, rel=error)
    assert repeats.times == 1


def test_few_equal_rows_are_left_to_chance():
    rows = np.concatenate([np.arange(5000), np.arange(15)])
    assert found([column[rows] for column in sample(5000)]) is None


def test_the_warning_says_how_many_and_groups_need_none():
    rows = np.repeat(np.arange(3000), 2)
    doubled = [column[rows] for column in sample(3000)]
    (sentence,) = parity.compare(*doubled).warnings
    assert sentence.startswith(
        "3,000 of 6,000 rows (50.0%) equal an earlier row in label and both scores, as if every "
        "row stood 2 times; chance does not explain it."
    )
    assert parity.compare(*doubled, clusters=rows).warnings == ()
    labels, old, new = doubled
    assert sentence in parity.compare_runs(labels, [old, new], [new**2]).warnings


def write(path, sample, keys=None, **options):
    labels, old, new = sample
    keys = np.arange(len(labels)) if keys is None else keys
    path.parent.mkdir(exist_ok=True)
    table = pa.table({"id": keys, "y": labels, "p": old, "q": new})
    pyarrow.parquet.write_table(table, path, **options)


def run(path, tmp_path, capsys, *more):
    code = main(["parity", str(path), *SCORES, *more, "--out", str(tmp_path / "out")])
    return (code, *capsys.readouterr())


@pytest.mark.long
@pytest.mark.parametrize("memory", ["4", "0"])
def test_one_file_with_a_key_is_refused_where_it_repeats(tmp_path, capsys, memory):
    more = ["--key", "id", "--memory", memory]
    path = tmp_path / "scores.parquet"
    write(path, sample(3000))
    assert run(path, tmp_path, capsys, *more)[0] == 0
    write(path, sample(3000), np.where(np.arange(3000) < 2998, np.arange(3000), 7))
    code, out, err = run(path, tmp_path, capsys, *more)
    assert (code, out) == (3, "")
    assert "column 'id' is not a key: 2 rows repeat the key of an earlier one, 7 comes 3" in err


@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.few(1)
def test_a_part_that_was_copied_sorted_and_compressed_anew_is_refused(tmp_path, capsys, memory):
    labels, old, new = sample(3000, "hundredths")
    order = np.argsort(old, kind="stable")
    write(tmp_path / "data" / "0.parquet", (labels, old, new))
    write(tmp_path / "data" / "1.parquet", sample(4000, "hundredths"))
    assert run(tmp_path / "data", tmp_path, capsys, "--memory", memory)[0] < 3
    copy = (labels[order], old[order], new[order])
    write(tmp_path / "data" / "2.parquet", copy, compression="gzip")
    code, _, err = run(tmp_path / "data", tmp_path, capsys, "--memory", memory)
    assert code == 3
    assert "2.parquet is a copy of " in err
    assert "0.parquet; rows that are counted twice" in err


@pytest.mark.parametrize("memory", ["4", "0"])
def test_repeated_rows_without_a_key_are_warned_of(tmp_path, capsys, memory):
    rows = np.concatenate([np.arange(3000), np.arange(1000)])
    write(tmp_path / "scores.parquet", [column[rows] for column in sample(3000)])
    code, out, _ = run(tmp_path / "scores.parquet", tmp_path, capsys, "--memory", memory)
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    sentence = "1,000 of 4,000 rows (25.0%) equal an earlier row in label and both scores; chance"
    assert code == 0
    assert f"Warning: {sentence}" in out
    assert record["warnings"][0].startswith(sentence)
