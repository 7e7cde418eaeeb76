"""More rows than memory: what is found in blocks is what is found at once, within the bound."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import parity
from parity.histogram.beyond_memory import compare_blocks, compare_counts, count
from parity.histogram.counts import Kind, load_all
from parity.histogram.stored_rows import put_aside, read_back
from parity.inputs.checks import Column
from parity.inputs.rows import Rows
from parity.io.blocks import Block, blocks
from parity.io.columns import to_names
from parity.io.readers import ColumnNames, read_one, read_two
from parity.io.store import Store
from parity.io.stored_join import StoredJoin
from semisync.cli import main
from semisync.common.errors import BadInput


class Sample:
    """Rows in users, days and countries, with weights, and their blocks."""

    def __init__(self, rows=20_000, seed=0):
        rng = np.random.default_rng(seed)
        self.user = rng.integers(0, rows // 20, rows)
        of_user = rng.normal(size=rows)[self.user]
        self.day = np.sort(rng.integers(1, 6, rows))
        self.country = np.array(["at", "be", "ch", "de"])[rng.integers(0, 4, rows)]
        self.country[:3] = "li"  # too few to compare
        self.weights = rng.exponential(size=rows)
        self.labels = rng.random(rows) < np.where(of_user > 0, 0.4, 0.05)
        logits = rng.normal(size=rows) + self.labels - 2
        noise = 0.02 * of_user + 0.01 * rng.normal(size=rows)
        self.old = 1 / (1 + np.exp(-logits))
        self.new = 1 / (1 + np.exp(-logits - noise))

    def columns(self):
        return self.labels, self.old, self.new

    def blocks(self, size=1 << 13, weighted=False, grouped=False, names=()):
        for start in range(0, len(self.labels), size):
            at = slice(start, start + size)
            weights = self.weights[at] if weighted else None
            yield Block(
                Rows(self.labels[at], self.old[at], self.new[at], None, weights),
                np.arange(start, start + len(self.labels[at])),
                {name: pa.chunked_array([getattr(self, name)[at]]) for name in names},
                pa.chunked_array([self.user[at]]) if grouped else None,
            )


@pytest.fixture(scope="module")
def sample():
    return Sample()


def assert_is_upper(ours, exact, slack=1.2):
    """Not below the exact standard error, and not far above."""
    assert exact - 1e-12 <= ours <= slack * exact


def assert_part(ours, exact, bound=1e-5):
    assert ours[:3] == exact[:3]
    if exact.delta is None:
        assert ours.delta is None
        return
    assert ours.delta == pytest.approx(exact.delta, abs=bound)
    assert_is_upper(ours.standard_error, exact.standard_error, 1.5)
    assert ours.interval.low <= exact.interval.low + 1e-12
    assert ours.interval.high >= exact.interval.high - 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_groups(sample, weighted):
    weights = sample.weights if weighted else None
    exact = parity.compare(*sample.columns(), clusters=sample.user, weights=weights)
    found = compare_blocks(
        sample.blocks(weighted=weighted, grouped=True), Kind(weighted), 5e-4, grouped=True
    )
    assert found.clusters == exact.clusters
    assert found.delta == pytest.approx(exact.delta, abs=found.bound)
    assert_is_upper(found.standard_error, exact.standard_error)
    assert exact.design_effect > 1.5
    assert found.design_effect == pytest.approx(exact.design_effect, rel=0.05)
    for ours, theirs in ((found.baseline, exact.baseline), (found.candidate, exact.candidate)):
        assert ours.gauc == pytest.approx(theirs.gauc, rel=1e-9)
        assert ours.standard_error == pytest.approx(theirs.standard_error, rel=1e-3)
        assert ours.freedom == pytest.approx(theirs.freedom, rel=1e-2)
    loss = found.logloss_difference
    assert loss.delta == pytest.approx(exact.logloss_difference.delta, rel=1e-6)
    assert loss.standard_error == pytest.approx(exact.logloss_difference.standard_error, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["six", "heavy tails", "one is half of the rows"])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_or_unequal_groups_have_the_interval_of_rows_in_memory(kind, weighted):
    sample, rng = Sample(), np.random.default_rng(1)
    rows = len(sample.labels)
    if kind == "six":
        sample.user = np.arange(rows) % 6
    else:
        largest = rng.random(rows) < 0.5
        tails = np.minimum(rng.pareto(0.8, rows).astype(int), 40)
        sample.user = tails if kind == "heavy tails" else np.where(largest, 0, sample.user)
        sample.new = 1 / (1 + (1 / sample.old - 1) * np.exp(1e-2 * rng.normal(size=rows)))
    weights = sample.weights if weighted else None
    exact = parity.compare(*sample.columns(), clusters=sample.user, weights=weights)
    blocks = sample.blocks(weighted=weighted, grouped=True)
    found = compare_blocks(blocks, Kind(weighted), 5e-4, grouped=True)
    assert (found.verdict, found.reason) == (exact.verdict, exact.reason)
    width = exact.interval.high - exact.interval.low
    assert width < found.interval.high - found.interval.low < 1.5 * width + 2 * found.bound


@pytest.mark.few(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_days_and_slices(sample, weighted, grouped):
    weights = sample.weights if weighted else None
    users = sample.user if grouped else None
    kind = Kind(weighted, "day", ("country",))
    blocks = sample.blocks(weighted=weighted, grouped=grouped, names=("day", "country"))
    found = compare_blocks(blocks, kind, 5e-4, grouped)
    days = parity.compare_days(*sample.columns(), sample.day, 5e-4, users, weights)
    assert found.days.mean_delta == pytest.approx(days.mean_delta, abs=1e-5)
    assert_is_upper(found.days.standard_error, days.standard_error, 1.5)
    assert found.days.slope == pytest.approx(days.slope, rel=0.2, abs=1e-6)
    for ours, theirs in zip(found.days.days, days.days, strict=True):
        assert_part(ours, theirs)
    ((name, parts),) = found.slices
    assert name == "country"
    exact = parity.compare_slices(*sample.columns(), sample.country, 5e-4, users, weights)
    for ours, theirs in zip(parts, exact, strict=True):
        assert_part(ours, theirs)


@pytest.mark.parametrize("weighted", [False, True])
def test_worst_rows(sample, weighted):
    weights = sample.weights if weighted else None
    exact = parity.worst_rows(*sample.columns(), 30, weights)
    found = compare_blocks(sample.blocks(weighted=weighted), Kind(weighted), 5e-4, worst=30).worst
    assert len(found) == 30
    assert [abs(row.share) for row in found] == sorted((abs(row.share) for row in found))[::-1]
    by_row = {row.row: row for row in exact}
    for ours in found[:20]:
        theirs = by_row[ours.row]
        assert ours[:4] == theirs[:4]
        assert ours.share == pytest.approx(theirs.share, rel=0.01)


@pytest.mark.long
def test_parts_with_days_and_slices_add_up_to_the_whole(sample, tmp_path):
    kind = Kind(False, "day", ("country", "day"))
    blocks = list(sample.blocks(names=("day", "country")))
    for i in range(len(blocks)):
        count(blocks[i : i + 1], kind).save(str(tmp_path / f"{i}.part"))
    paths = [str(tmp_path / f"{i}.part") for i in reversed(range(len(blocks)))]
    merged = compare_counts(load_all(paths), 5e-4).to_json()
    whole = compare_blocks(blocks, kind, 5e-4).to_json()
    for name in ("delta", "interval", "days", "slices"):
        assert merged[name] == whole[name]


@pytest.mark.long
def test_parts_that_were_made_unlike_are_refused(sample, tmp_path):
    for i, kind in enumerate((Kind(), Kind(False, "day"))):
        count(sample.blocks(names=("day",)), kind).save(str(tmp_path / f"{i}.part"))
    with pytest.raises(BadInput, match=r"1.part was made with --day day, .* neither --weight"):
        load_all([str(tmp_path / "0.part"), str(tmp_path / "1.part")])


def test_days_and_slices_beyond_count_are_refused():
    many = Sample(rows=2000)
    many.day = np.arange(2000)
    with pytest.raises(BadInput, match="columns day have more than 250 values"):
        count(many.blocks(names=("day",)), Kind(False, "day"))


def test_a_single_group_has_no_standard_error(sample):
    sole = Sample(rows=500)
    sole.user = np.zeros(500, int)
    with pytest.raises(BadInput, match="all rows are in one group"):
        compare_blocks(sole.blocks(grouped=True), Kind(), 5e-4, grouped=True)


def test_a_slice_of_a_single_group_shows_nothing():
    sample = Sample(rows=4000)
    sample.new = sample.old**3 + sample.labels * sample.old * (sample.country == "at")
    sample.user[sample.country == "at"] = 9999
    blocks = sample.blocks(grouped=True, names=("country",))
    counted = compare_blocks(blocks, Kind(slices=("country",)), 5e-4, grouped=True).slices[0][1]
    exact = parity.compare_slices(*sample.columns(), sample.country, 5e-4, sample.user)
    for sole in (counted[0], exact[0]):
        assert (sole.name, sole.verdict, sole.p) == ("at", "INCONCLUSIVE", 1)
        assert sole.delta > 10 * sole.standard_error > 0
    alone = parity.compare_slices(*sample.columns(), sample.country, 5e-4)
    assert alone[0].differs and alone[0].verdict == "NOT_EQUIVALENT"


def test_temporary_files_without_room_are_named_and_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    rows = pa.table({"key": np.random.default_rng(0).integers(1 << 62, size=1_000_000)})
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, unlimited[1]))
        full = pytest.raises(BadInput, match=f"cannot be written to {tmp_path}.*set TMPDIR")
        with full, Store() as store:
            store.add("rows", rows)
            store.one_row("SELECT key FROM rows ORDER BY key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert not list(tmp_path.iterdir())


@pytest.mark.few(1)
@pytest.mark.parametrize("after", [0, 0.5])  # in the query's beginning, and within it
def test_an_interrupted_query_ends_as_python_does_and_leaves_no_file(tmp_path, after):
    script = """
import signal
import numpy as np, pyarrow as pa
from parity.io.store import Store
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
with Store() as store:
    store.add("rows", pa.table({"key": np.arange(100_000)}))
    print("ready", flush=True)
    store.one_row("SELECT sum(hash(key, i) % 7) FROM rows, range(1_000_000) AS times(i)")
"""
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, text=True) as job:
        assert job.stdout.readline() == "ready\n"
        time.sleep(after)
        job.send_signal(signal.SIGINT)
        _, told = job.communicate(timeout=60)
    assert told.strip().splitlines()[-1].startswith("KeyboardInterrupt")
    assert not list(tmp_path.iterdir())


def test_a_label_means_the_same_in_every_block(tmp_path, monkeypatch):
    monkeypatch.setattr("parity.io.blocks.BATCH", 4)
    path, names = str(tmp_path / "scores.parquet"), ColumnNames("y", "old", "new")

    def positives(*labels):  # of blocks of one label each
        rows = {"y": np.repeat(labels, 4), "old": np.arange(4.0 * len(labels))}
        pyarrow.parquet.write_table(pa.table({**rows, "new": rows["old"]}), path)
        return [int(block.rows.positive.sum()) for block in blocks(path, names)]

    assert positives(1, -1, 1) == [4, 0, 4]
    for labels in ((-1, 0, 1), (0, 1, -1), (1, -1, 0)):
        with pytest.raises(BadInput, match="a label must be 0 or 1, or all be -1 or 1$"):
            positives(*labels)
        with pytest.raises(BadInput, match="a label must be 0 or 1, or all be -1 or 1$"):
            read_one(path, names)


KEYED = ColumnNames("y", "old", "new", key="id", group="user", weight="w", parts=("day",))


def keyed_tables(rows=3000, seed=3):
    """The baseline's and the candidate's table, the latter in another order."""
    sample, rng = Sample(rows, seed), np.random.default_rng(seed)
    keys = rng.permutation(rows * 3)[:rows]
    old = {"id": keys, "y": sample.labels, "old": sample.old, "w": sample.weights}
    old.update(user=sample.user, day=sample.day)
    new = pa.table({"id": keys, "y": sample.labels, "new": sample.new})
    return pa.table(old), new.take(rng.permutation(rows))


def joined(folder, old, new, allow_misses=False):
    """Rows by their number in the baseline's file: what a join beyond memory gives."""
    pyarrow.parquet.write_table(old, folder / "old.parquet", row_group_size=700)
    pyarrow.csv.write_csv(new, folder / "new.csv")
    paths = str(folder / "old.parquet"), str(folder / "new.csv")
    join = StoredJoin(paths, KEYED, allow_misses)
    rows = []
    for block in join:
        columns = [block.numbers, *block.rows[:3], block.rows.weights]
        columns += [block.group.to_pylist(), block.names["day"].to_pylist()]
        rows += zip(*columns, strict=True)
    return sorted(rows, key=lambda row: row[0]), join, paths


@pytest.mark.parametrize("words", [False, True])
def test_a_join_beyond_memory_gives_the_rows_of_one_in_memory(tmp_path, words):
    old, new = keyed_tables()
    if words:
        old = old.set_column(0, "id", old["id"].cast(pa.string()))
    rows, join, paths = joined(tmp_path, old, new.slice(7), allow_misses=True)
    exact = read_two(*paths, KEYED, allow_misses=True)
    assert (
        join.counts
        == exact.provenance()["join"]
        == {
            "matched": 2993,
            "only_baseline": 7,
            "only_candidate": 0,
        }
    )
    columns = [np.array(column) for column in zip(*rows)]
    assert (columns[0] == exact.match.baseline).all()
    assert (columns[1] == exact.labels).all()
    assert (columns[2] == exact.baseline).all()
    assert (columns[3] == exact.candidate).all()
    assert (columns[4] == exact.weights).all()
    assert (columns[5] == old["user"].take(exact.match.baseline).to_numpy()).all()
    assert (columns[6] == exact.parts["day"]).all()


def repeat_keys(old, new):
    keys = new["id"].to_numpy().copy()
    keys[[5, 900, 2000]] = keys[4]
    return old, new.set_column(0, "id", [keys])


def flip_labels(old, new):
    labels = new["y"].to_numpy().copy()
    labels[[17, 1800]] ^= True
    return old, new.set_column(1, "y", [labels])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (repeat_keys, "is not a key: 3 rows repeat the key of an earlier one"),
        (flip_labels, "the labels of 2 joined rows disagree"),
        (lambda old, new: (old.slice(9), new.slice(4)), "the rows do not match by key 'id'"),
        (
            lambda old, new: (old, new.set_column(0, "id", [np.arange(-3000, 0)])),
            "no key of .* is in ",
        ),
    ],
)
def test_a_join_beyond_memory_refuses_what_one_in_memory_does(tmp_path, change, sentence):
    tables = change(*keyed_tables())
    with pytest.raises(BadInput, match=sentence) as ours:
        joined(tmp_path, *tables)
    with pytest.raises(BadInput) as exact:
        read_two(str(tmp_path / "old.parquet"), str(tmp_path / "new.csv"), KEYED)
    assert str(ours.value) == str(exact.value)


@pytest.mark.parametrize("kind", [pa.duration("ns"), pa.float16(), pa.time64("ns")])
def test_days_that_the_disk_would_change_are_refused(tmp_path, kind):
    old, new = keyed_tables()
    days = pa.array(old["day"].to_numpy().astype(np.float16))
    days = days if pa.types.is_float16(kind) else days.cast(pa.int64()).cast(kind)
    with pytest.raises(BadInput, match="'day' holds .* cannot divide joined rows beyond memory"):
        joined(tmp_path, old.set_column(old.column_names.index("day"), "day", days), new)


@pytest.mark.long
def test_two_files_beyond_memory_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in zip(("old", "new"), keyed_tables(20_000)):
        pyarrow.parquet.write_table(table, f"{name}.parquet")
    options = ["--label", "y", "--baseline-score", "old", "--candidate-score", "new"]
    options += ["--key", "id", "--group", "user", "--margin", "0.01"]
    found = []
    for memory in ("0", "4"):
        command = ["parity", "old.parquet", "new.parquet", *options, "--memory", memory]
        assert main([*command, "--out", memory]) == 0
        found.append(json.loads((tmp_path / memory / "report.json").read_text()))
    ours, exact = found
    assert abs(ours["delta"] - exact["delta"]) < ours["bound"] < 1e-5
    assert ours["clusters"] == exact["clusters"]
    assert ours["provenance"]["join"] == exact["provenance"]["join"]


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("runs", "more"),
    [
        ((3, 2), []),
        ((1, 3), ["--group", "user", "--seed-sd", "0.001"]),
        ((2, 2), ["--weight", "w"]),
    ],
)
def test_several_runs_beyond_memory_are_those_of_rows_in_memory(sample, tmp_path, runs, more):
    """By key, in other orders; the difference and every run's AUC within the bound."""
    rng = np.random.default_rng(7)
    ids, paths = np.arange(len(sample.labels)), {}
    for side, scores, several in zip(("old", "new"), (sample.old, sample.new), runs):
        for run in range(several):
            noisy = np.log(scores / (1 - scores)) + (0.02 + 0.01 * run) * rng.normal(
                size=len(scores)
            )
            table = {"id": ids, "y": sample.labels, "p": 1 / (1 + np.exp(-noisy))}
            table.update(user=sample.user, w=sample.weights)
            order = rng.permutation(len(ids))
            paths[side, run] = str(tmp_path / f"{side}{run}.parquet")
            pyarrow.parquet.write_table(pa.table(table).take(order), paths[side, run])
    of_sides = [[path for (s, _), path in paths.items() if s == side] for side in ("old", "new")]
    command = ["parity", "--baseline", *of_sides[0], "--candidate", *of_sides[1], "--key", "id"]
    command += ["--label", "y", "--baseline-score", "p", "--margin", "0.01", *more]
    found = []
    for memory in ("0", "4"):
        main([*command, "--memory", memory, "--out", str(tmp_path / memory)])
        found.append(json.loads((tmp_path / memory / "report.json").read_text()))
    ours, exact = found
    assert 0 < ours["bound"] < 1e-4
    assert abs(ours["delta"] - exact["delta"]) <= ours["bound"]
    for side in ("baseline_aucs", "candidate_aucs"):
        assert ours["training"][side] == pytest.approx(exact["training"][side], abs=1e-4)
    assert exact["standard_error"] == pytest.approx(ours["standard_error"], rel=1e-2)
    assert ours["training"]["standard_error_rows"] >= exact["training"]["standard_error_rows"]
    assert ours["verdict"] == exact["verdict"]
    assert ours["clusters"] == exact["clusters"]
    floors = [report["rare_failures"]["floor"] for report in found]
    assert floors[0] == pytest.approx(floors[1], rel=1e-2)
    files = [[file["path"] for file in report["provenance"]["files"]] for report in found]
    assert sorted(files[0]) == sorted(files[1])
    notes = [[note for note in report["notes"] if "istogram" not in note] for report in found]
    assert notes[0] == notes[1]


@pytest.mark.parametrize(
    "names",
    [
        np.arange(20_000) % 700,
        [f"user-{i % 900}@x.org" for i in range(20_000)],
        ["", "a", "a\0b", "é", "A"] * 4000,
        [b"\xff", b""] * 10_000,
        np.zeros(20_000, np.uint64) + 2**63,
        np.arange(20_000) % 2 == 0,
    ],
)
def test_rows_of_one_group_come_back_together_and_none_is_lost(monkeypatch, names):
    monkeypatch.setattr("parity.io.store.BATCH", 3000)
    numbers, names = np.arange(20_000), pa.array(names)
    kind = to_names(pa.chunked_array([names]), Column("user")).type
    seen, total = set(), []
    with Store() as store:
        for start in range(0, 20_000, 6000):
            at = slice(start, start + 6000)
            rows = Rows(numbers[at] % 2 == 0, numbers[at] / 7, numbers[at] / 9)
            groups = pa.chunked_array([names[at].cast(kind)])
            put_aside(store, Block(rows, numbers[at], {}, groups), {})
        for stored in read_back(store, ()):
            assert (stored.rows.candidate == stored.numbers / 9).all()
            groups = names.take(stored.numbers).to_pylist()
            assert not seen.intersection(groups)
            assert len(dict.fromkeys(zip(groups, stored.rows.clusters))) == len(set(groups))
            seen.update(groups)
            total += stored.numbers.tolist()
    assert sorted(total) == numbers.tolist()


@pytest.mark.long
def test_every_option_works_beyond_memory_on_the_command_line(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"y": sample.labels, "old": sample.old, "new": sample.new, "w": sample.weights}
    columns.update(user=sample.user, day=sample.day, country=sample.country)
    pyarrow.parquet.write_table(pa.table(columns), "scores.parquet")
    options = ["--label", "y", "--baseline-score", "old", "--candidate-score", "new"]
    options += ["--group", "user", "--weight", "w", "--day", "day", "--slice", "country", "day"]
    options += ["--worst", "5", "--margin", "0.01"]
    found = []
    for memory in ("0", "4"):
        command = ["parity", "scores.parquet", *options, "--memory", memory, "--out", memory]
        assert main(command) == 0
        found.append(json.loads((tmp_path / memory / "report.json").read_text()))
    ours, exact = found
    assert ours["bound"] < 1e-5
    assert exact["bound"] is None
    for name in ("rows", "positives", "clusters", "weighted", "margin"):
        assert ours[name] == exact[name]
    assert abs(ours["delta"] - exact["delta"]) < ours["bound"]
    assert [part["name"] for part in ours["days"]["days"]] == list("12345")
    assert ours["slices"].keys() == exact["slices"].keys()
    assert ours["worst_rows"][0]["row"] == exact["worst_rows"][0]["row"]
