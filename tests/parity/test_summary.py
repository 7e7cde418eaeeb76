"""Counted scores: the bound holds, the error is not too small, parts add up to the whole."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parity
from parity.histogram.beyond_memory import count
from parity.histogram.bins import BINS, COARSE_BINS, COARSE_BITS, bins_of, middles
from parity.histogram.compare import compare_summary
from parity.histogram.counts import Counts, Kind, load_all
from parity.histogram.summary import Summary
from parity.inputs.rows import Rows
from parity.io.blocks import blocks
from parity.io.readers import ColumnNames
from parity.stats.tf1_auc import thresholds
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.support.score_files import write

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


def counted(positive, old, new, weights=None):
    summary = Summary(weighted=weights is not None)
    summary.add(positive, old, new, weights)
    return summary


def summarize(path, names=ONE):
    return count(blocks(path, names), Kind()).whole


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_bins_rise_with_the_score_and_hold_it_in_their_middle(scores):
    scores = np.sort(np.array(scores, np.float32))
    bins = bins_of(scores)
    assert (np.diff(bins) >= 0).all()
    other_sign = np.where(scores != 0, BINS - 1 - bins, bins)
    assert (bins_of(-scores) == other_sign).all()
    assert (bins_of(scores * np.float64(1)) == bins).all()
    usual = (np.abs(scores) >= 2.0**-24) & (np.abs(scores) < 2**8)
    assert middles(bins)[usual] == pytest.approx(scores[usual].astype(float), rel=2.0**-15)
    coarse = middles(bins >> COARSE_BITS, COARSE_BITS)[usual]
    assert coarse == pytest.approx(scores[usual].astype(float), rel=2.0**-7)


def test_bins_cover_every_score():
    largest, least = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal
    scores = np.array([-largest, -1, -least, -0.0, 0, least, 0.5, 256, largest])
    bins = bins_of(scores)
    assert bins[3] == bins[4]
    assert bins.min() >= 0
    assert bins.max() < BINS
    assert (bins_of(np.array([1e300, -1e300])) >> COARSE_BITS < COARSE_BINS).all()
    edges = middles(np.arange(COARSE_BINS), COARSE_BITS)
    assert (np.diff(edges) > 0).all()
    assert np.isfinite(edges).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["probability", "logit", "tied", "edges", "close"])
def test_the_auc_of_tensorflow_1_is_that_of_rows_in_memory(kind, weighted):
    """Also of scores on its thresholds, and one float32 beside them."""
    labels, old, new = sample(kind="logit" if kind == "logit" else "probability")
    if kind == "tied":
        old, new = old.round(2), new.round(2)
    if kind in ("edges", "close"):
        new = thresholds()[1:-1][np.arange(len(old)) % (len(thresholds()) - 2)]
        new = np.nextafter(new, np.float32(1)) if kind == "close" else new
    if kind == "logit":
        edges = np.log(thresholds()[1:-1].astype(float) / (1 - thresholds()[1:-1].astype(float)))
        new = np.where(np.arange(len(old)) % 3, new, edges[np.arange(len(old)) % len(edges)])
    logits = ("baseline", "candidate") if kind == "logit" else ()
    weights = np.random.default_rng(1).exponential(size=len(old)) if weighted else None
    expected = parity.compare(labels, old, new, weights=weights, logits=logits)
    parts = [Summary(weighted, (kind == "logit",) * 2) for _ in range(2)]
    for part, rows in zip(parts, (slice(0, 1_000), slice(1_000, None))):
        part.add(labels[rows], old[rows], new[rows], None if weights is None else weights[rows])
    parts[0].merge(parts[1])
    again = Summary.from_arrays(parts[0].arrays(), weighted, parts[0].logits)
    for summary in (parts[0], again):
        found = compare_summary(summary)
        for side in ("baseline", "candidate"):
            ours, theirs = (getattr(c, side).tf1_compat_auc for c in (found, expected))
            assert ours == pytest.approx(theirs, abs=1e-12 if weighted else 0)


@pytest.mark.parametrize("kind", ["probability", "logit"])
def test_how_near_the_scores_are_is_told_by_coarse_bins(kind):
    labels, old, new = sample(kind=kind)
    logits = ("baseline", "candidate") if kind == "logit" else ()
    expected = parity.compare(labels, old, new, logits=logits).score_difference
    summary = Summary(False, (kind == "logit",) * 2)
    summary.add(labels, old, new)
    found = compare_summary(summary).score_difference
    assert found.spearman == pytest.approx(expected.spearman, abs=1e-4)
    assert found.logit == pytest.approx(expected.logit, rel=0.1)
    assert found[:4] == pytest.approx(expected[:4], rel=0.1)


def test_scores_beyond_1_have_no_auc_of_tensorflow_1():
    labels, old, new = sample()
    new[7] = 1 + 1e-6
    found = compare_summary(counted(labels, old, new))
    assert found.baseline.tf1_compat_auc is not None
    assert found.candidate.tf1_compat_auc is None


@pytest.mark.parametrize("kind", ["probability", "logit", "tied"])
@pytest.mark.parametrize(("noise", "weighted"), [(0.001, False), (0.1, True), (2, False)])
@pytest.mark.few(4)
def test_bound_and_error_are_on_the_safe_side(kind, noise, weighted):
    columns = sample(noise=noise, kind=kind)
    weights = np.random.default_rng(5).exponential(size=len(columns[0])) if weighted else None
    exact = parity.compare(*columns, weights=weights)
    found = compare_summary(counted(*columns, weights))
    assert abs(found.delta - exact.delta) <= found.bound + 1e-15
    assert exact.standard_error <= found.standard_error
    if kind != "tied":  # rows of one score share a bin, and the bound cannot know that they tie
        assert found.bound < 1e-5
        assert found.standard_error < exact.standard_error + 6e-5
    assert found.interval.low <= exact.interval.low + 1e-12
    assert found.interval.high >= exact.interval.high - 1e-12
    half = 1.6448536 * found.standard_error + found.bound
    assert found.interval.high - found.delta == pytest.approx(half)
    for side, expected in ((found.baseline, exact.baseline), (found.candidate, exact.candidate)):
        assert side.auc == pytest.approx(expected.auc, abs=found.bound)
        assert side.standard_error == pytest.approx(expected.standard_error, rel=1e-3)
        assert side.freedom == pytest.approx(expected.freedom, rel=1e-3)
        assert side.pr_auc == pytest.approx(expected.pr_auc, abs=2e-3)
    assert found.score_difference.ks == pytest.approx(exact.score_difference.ks, abs=2e-3)


def test_the_bound_holds_where_a_bin_hides_how_its_rows_are_ranked():
    labels = np.arange(200) % 4 == 0
    found = compare_summary(counted(labels, np.full(200, 0.5), 0.5 + 1e-9 * labels))
    assert (found.delta, found.bound) == (0, 1), "each AUC may be anything"


def test_the_error_holds_where_a_bin_hides_how_far_positives_stand_from_all_negatives():
    labels = np.arange(2020) < 20
    apart = np.linspace(1, 9, 16)
    old = np.concatenate([np.full(4, 0.6), apart, np.repeat([0.1, 0.95], 1000)])
    new = np.concatenate([np.repeat([0.6, 0.6 + 2e-9], 2), apart, np.full(2000, 0.6 + 1e-9)])
    exact = parity.compare(labels, old, new)
    found = compare_summary(counted(labels, old, new))
    assert found.delta == pytest.approx(exact.delta)
    assert exact.standard_error <= found.standard_error


def test_the_error_of_the_difference_in_pcoc_is_that_of_rows_in_memory():
    labels, old, new = sample(2000)
    new = np.float32(0.75) * new
    exact = parity.compare(labels, old, new).pcoc_difference
    found = compare_summary(counted(labels, old, new)).pcoc_difference
    assert found.delta == pytest.approx(exact.delta)
    assert found.standard_error == pytest.approx(exact.standard_error, rel=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_figures_of_probabilities_are_exact_sums(weighted):
    columns = sample()
    weights = np.random.default_rng(5).exponential(size=len(columns[0])) if weighted else None
    exact = parity.compare(*columns, weights=weights)
    found = compare_summary(counted(*columns, weights))
    assert found.weighted is weighted
    for name in ("logloss", "ne", "pcoc"):
        ours = getattr(found.baseline.calibration, name)
        assert ours == pytest.approx(getattr(exact.baseline.calibration, name), rel=1e-9)
    assert found.baseline.calibration.ece == pytest.approx(exact.baseline.calibration.ece, abs=1e-3)
    paired, expected = found.logloss_difference, exact.logloss_difference
    assert paired.delta == pytest.approx(expected.delta, rel=1e-6)
    assert paired.standard_error == pytest.approx(expected.standard_error, rel=1e-6)
    assert compare_summary(counted(*sample(kind="logit"))).baseline.logloss is None


@pytest.mark.few(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_add_up_to_the_whole_whatever_their_sizes(tmp_path, weighted):
    columns = sample()
    if weighted:  # sums of powers of two are exact, in any order
        columns = (*columns, 2.0 ** np.random.default_rng(1).integers(-3, 3, len(columns[0])))
    whole = counted(*columns)
    paths = []
    for i, rows in enumerate((slice(0, 10), slice(10, 31_000), slice(31_000, None))):
        part = Counts(Kind(weighted))
        taken = [column[rows] for column in columns]
        part.add(Rows(*taken[:3], None, *taken[3:]), {})
        paths.append(str(tmp_path / f"{i}.part"))
        part.save(paths[-1])
    parts = load_all(paths[::-1]).whole
    assert (parts.rows_by_bin == whole.rows_by_bin).all()
    assert (parts.mass == whole.mass).all()
    for ours, theirs in zip(parts.joint.cells(), whole.joint.cells()):
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
    for ours, theirs in zip(pieces.joint.cells(), counted(*columns).joint.cells()):
        assert (ours == theirs).all()


@pytest.mark.parametrize("damage", [lambda d: d[:-40], lambda d: b"no", lambda d: b""])
def test_a_damaged_part_is_refused(tmp_path, damage):
    path = tmp_path / "a.part"
    part = Counts(Kind())
    part.add(Rows(*sample(rows=100)), {})
    part.save(str(path))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadInput, match="a.part is not a partial result"):
        Counts.load(str(path))


@pytest.mark.long
def test_no_flipped_byte_of_a_part_ends_in_a_traceback_or_in_other_counts(tmp_path):
    path = tmp_path / "a.part"
    part = Counts(Kind())
    part.add(Rows(*sample(rows=20)), {})
    part.save(str(path))
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 17):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            found = Counts.load(str(path)).whole
        except BadInput as error:
            refused += "a.part is not a partial result" in str(error)
        else:  # a time stamp, say
            assert (found.rows_by_bin == part.whole.rows_by_bin).all()
    assert refused > len(whole) / 17 / 2


def test_a_bound_too_wide_for_the_margin_gives_no_verdict():
    columns = sample(rows=400_000, noise=1e-4)
    assert compare_summary(counted(*columns), 5e-3).verdict == "EQUIVALENT"
    wide = compare_summary(counted(*columns), 2e-5)
    assert wide.bound > 2e-5 / 20
    assert wide.verdict == "INCONCLUSIVE"
    assert "more than a twentieth of the margin" in " ".join(wide.notes)


@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "a.csv", "a.tfrecord"])
def test_streams_of_every_format_count_the_same(tmp_path, monkeypatch, name):
    monkeypatch.setattr("parity.io.formats.tfrecord._TOGETHER", 100)
    labels, old, new = sample(rows=300)
    table = pa.table({"y": labels.astype(int), "a": old.astype(float), "b": new.astype(float)})
    found = summarize(write(tmp_path / name, table))
    assert (found.rows_by_bin == counted(labels, old, new).rows_by_bin).all()


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
    monkeypatch.setattr("parity.io.blocks.BATCH", 400)
    labels, old, new = sample(rows=2000)
    columns = {"y": labels.astype(int).tolist(), "a": old.tolist(), "b": new.tolist()}
    (tmp_path / "d").mkdir()
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "d" / "1.parquet")
    columns[column][1499] = value
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "d" / "2.parquet")
    with pytest.raises(BadInput, match=f"2.parquet: {sentence}"):
        summarize(str(tmp_path / "d"))


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("p,nan,1", "column 'b' in row 2 is nan; a score must be finite"),
        ("p,NA,1", "column 'b' in row 2 is 'NA'; a number is"),
        (",0.1,1", "column 'site' in row 2 is empty"),
    ],
)
@pytest.mark.parametrize("memory", ["4", "0"])
def test_a_text_file_in_batches_is_refused_in_the_words_of_one_in_memory(
    tmp_path, capsys, memory, field, sentence
):
    path = tmp_path / "a.csv"
    path.write_text(f"site,b,y\nNA,0.3,0\n{field}\nnull,0.4,0\nq,0.5,1\n")
    columns = ["--label", "y", "--baseline-score", "y", "--candidate-score", "b"]
    more = ["--slice", "site", "--memory", memory, "--out", str(tmp_path / "out")]
    assert main(["parity", str(path), *columns, *more]) == 3
    assert f"a.csv: {sentence}" in capsys.readouterr().err


@pytest.mark.long
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
    again = ["parity", "0.parquet", *columns, "--partial", "2.part"]
    assert main([*again, "--group", "y"]) == 3
    assert "--group needs the rows a second time" in capsys.readouterr().err
    assert main(["parity", "--merge", "0.part", "--weight", "y", *margin, "x"]) == 3
    assert "--weight is for --partial" in capsys.readouterr().err
