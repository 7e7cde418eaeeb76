"""Counted scores: the bound holds, the error is not too small, parts add up to the whole."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

import parity
from parity.binned import compare_summary
from parity.readers import ColumnNames
from parity.streams import summarize
from parity.summary import Summary, merged
from semisync.cli import main
from semisync.errors import BadInput
from tests.parity.test_readers import write

ONE = ColumnNames("y", "a", "b")


def sample(rows=60_000, noise=0.1, seed=0, kind="probability"):
    rng = np.random.default_rng(seed)
    labels = rng.random(rows) < 0.1
    logits = rng.normal(size=(2, rows)) * noise + rng.normal(size=rows) + labels - 2
    if kind == "logit":
        return labels, logits[0], logits[1]
    old, new = 1 / (1 + np.exp(-logits))
    if kind == "tied":
        return labels, old.round(2).clip(0.01, 0.99), new.round(2).clip(0.01, 0.99)
    return labels, old.astype(np.float32), new.astype(np.float32)


def counted(*columns):
    summary = Summary()
    summary.add(*columns)
    return summary


@pytest.mark.parametrize("kind", ["probability", "logit", "tied"])
@pytest.mark.parametrize("noise", [0.001, 0.1, 2])
def test_bound_and_error_are_on_the_safe_side(kind, noise):
    columns = sample(noise=noise, kind=kind)
    exact, found = parity.compare(*columns), compare_summary(counted(*columns))
    assert abs(found.delta - exact.delta) <= found.bound + 1e-15
    assert exact.standard_error <= found.standard_error
    if kind != "tied":  # rows of one score share a bin, and the bound cannot know that they tie
        assert found.bound < 2e-4
        assert found.standard_error < exact.standard_error + 6e-5
    assert found.interval.low <= exact.interval.low + 1e-12
    assert found.interval.high >= exact.interval.high - 1e-12
    half = 1.6448536 * found.standard_error + found.bound
    assert found.interval.high - found.delta == pytest.approx(half)
    for side, expected in ((found.baseline, exact.baseline), (found.candidate, exact.candidate)):
        assert side.auc == pytest.approx(expected.auc, abs=found.bound)
        assert side.standard_error == pytest.approx(expected.standard_error, rel=1e-3)
        assert side.pr_auc == pytest.approx(expected.pr_auc, abs=2e-3)
    assert found.score_difference.ks == pytest.approx(exact.score_difference.ks, abs=2e-3)


def test_figures_of_probabilities_are_exact_sums():
    columns = sample()
    exact, found = parity.compare(*columns), compare_summary(counted(*columns))
    for name in ("logloss", "ne", "pcoc"):
        ours = getattr(found.baseline.calibration, name)
        assert ours == pytest.approx(getattr(exact.baseline.calibration, name), rel=1e-9)
    assert found.baseline.calibration.ece == pytest.approx(exact.baseline.calibration.ece, abs=1e-3)
    paired, expected = found.logloss_difference, exact.logloss_difference
    assert paired.delta == pytest.approx(expected.delta, rel=1e-6)
    assert paired.standard_error == pytest.approx(expected.standard_error, rel=1e-6)
    assert compare_summary(counted(*sample(kind="logit"))).baseline.logloss is None


def test_parts_add_up_to_the_whole_whatever_their_sizes(tmp_path):
    columns = sample()
    whole = counted(*columns)
    paths = []
    for i, rows in enumerate((slice(0, 10), slice(10, 31_000), slice(31_000, None))):
        paths.append(str(tmp_path / f"{i}.part"))
        counted(*(column[rows] for column in columns)).save(paths[-1])
    parts = merged([Summary.load(path) for path in paths[::-1]])
    assert (parts.fine == whole.fine).all()
    for ours, theirs in zip(parts.cells(), whole.cells()):
        assert (ours == theirs).all()
    one, other = (compare_summary(summary).to_json() for summary in (parts, whole))
    assert (one["delta"], one["interval"], one["bound"]) == (
        other["delta"],
        other["interval"],
        other["bound"],
    )


def test_many_small_batches_are_one_large_one():
    columns = sample(rows=5000)
    pieces = Summary()
    for start in range(0, 5000, 7):
        pieces.add(*(column[start : start + 7] for column in columns))
    for ours, theirs in zip(pieces.cells(), counted(*columns).cells()):
        assert (ours == theirs).all()


@pytest.mark.parametrize("damage", [lambda d: d[:-40], lambda d: b"no", lambda d: b""])
def test_a_damaged_part_is_refused(tmp_path, damage):
    path = tmp_path / "a.part"
    counted(*sample(rows=100)).save(str(path))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadInput, match="a.part is not a partial result"):
        Summary.load(str(path))


def test_a_bound_too_wide_for_the_margin_gives_no_verdict():
    columns = sample(rows=400_000, noise=1e-4)
    assert compare_summary(counted(*columns), 5e-3).verdict == "EQUIVALENT"
    wide = compare_summary(counted(*columns), 1e-4)
    assert wide.bound > 1e-4 / 20
    assert wide.verdict == "INCONCLUSIVE"
    assert "more than a twentieth of the margin" in " ".join(wide.notes)


@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "a.csv", "a.tfrecord"])
def test_streams_of_every_format_count_the_same(tmp_path, name):
    labels, old, new = sample(rows=300)
    table = pa.table({"y": labels.astype(int), "a": old.astype(float), "b": new.astype(float)})
    found = summarize(write(tmp_path / name, table), ONE)
    assert (found.fine == counted(labels, old, new).fine).all()


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("a", float("nan"), "column 'a' in row 1500 is nan"),
        ("b", None, "column 'b' in row 1500 is empty"),
        ("y", 2, "column 'y' in row 1500 is 2; a label must be 0 or 1"),
    ],
)
def test_a_bad_value_is_named_by_its_row_in_its_file(
    tmp_path, monkeypatch, column, value, sentence
):
    monkeypatch.setattr("parity.streams.BATCH", 400)
    labels, old, new = sample(rows=2000)
    columns = {"y": labels.astype(int).tolist(), "a": old.tolist(), "b": new.tolist()}
    (tmp_path / "d").mkdir()
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "d" / "1.parquet")
    columns[column][1499] = value
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "d" / "2.parquet")
    with pytest.raises(BadInput, match=f"2.parquet: {sentence}"):
        summarize(str(tmp_path / "d"), ONE)


def test_partial_results_merge_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    labels, old, new = sample(rows=100_000, noise=0.001)
    for i, rows in enumerate((slice(0, 40_000), slice(40_000, None))):
        table = pa.table({"y": labels[rows], "a": old[rows], "b": new[rows]})
        pyarrow.parquet.write_table(table, f"{i}.parquet")
    columns = ["--label", "y", "--baseline-score", "a", "--candidate-score", "b"]
    for i in "01":
        assert main(["parity", f"{i}.parquet", *columns, "--partial", f"{i}.part"]) == 0
    margin = ["--margin", "0.002", "--out"]
    assert main(["parity", "--merge", "0.part", "1.part", *margin, "merged"]) == 0
    assert main(["parity", "*.parquet", *columns, *margin, "counted", "--memory", "0"]) == 0
    assert main(["parity", "*.parquet", *columns, *margin, "exact"]) == 0
    found = [
        json.loads((tmp_path / out / "report.json").read_text())
        for out in ("merged", "counted", "exact")
    ]
    assert found[0]["interval"] == found[1]["interval"]
    assert abs(found[0]["delta"] - found[2]["delta"]) <= found[0]["bound"] < 1e-4
    assert found[2]["bound"] is None
    assert main(["parity", "*.parquet", *columns, "--memory", "0", "--day", "y", *margin, "x"]) == 3
    assert "--day needs the rows in memory" in capsys.readouterr().err
