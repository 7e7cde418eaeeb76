"""Reading scores: every format gives the same rows, and every flaw is named with its place."""

import gzip
import json
import random

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
import pytest

from parity.io.blocks import blocks
from parity.io.readers import ColumnNames, read_one, read_two
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.support.score_files import write

ONE = ColumnNames("y", "old", "new")
_LINE = b'{"y": 0, "old": 1, "new": 2}\n'
TWO = ColumnNames("y", "p", "p", key="id")


def table(rows=6, **changed):
    number = np.arange(rows)
    columns = {
        "id": number * 7,
        "y": number % 2,
        "old": number / 10,
        "new": number / 10 + 0.01,
        "user": [f"u{n // 2}" for n in number],
        "w": number + 1.0,
    }
    return pa.table({**columns, **changed})


@pytest.mark.parametrize(
    "name",
    ["a.parquet", "a.orc", "a.csv", "a.tsv", "a.csv.gz", "A.TSV", "a.tfrecord", "a.jsonl"],
)
def test_every_format_gives_the_same_sample(tmp_path, monkeypatch, name):
    monkeypatch.setattr("parity.io.formats.tfrecord._TOGETHER", 3)
    path = write(tmp_path / name, table())
    sample = read_one(path, ONE._replace(group="user", weight="w"))
    assert sample.labels.tolist() == [False, True] * 3
    assert sample.baseline.tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert np.allclose(sample.candidate - sample.baseline, 0.01)
    assert sample.clusters.tolist() == [0, 0, 1, 1, 2, 2]
    assert sample.weights.tolist() == [1, 2, 3, 4, 5, 6]
    (file,) = sample.provenance()["files"]
    assert (file["rows"], file["path"], len(file["sha256"])) == (6, path, 64)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.tfrecord"])
def test_a_column_may_have_no_name(tmp_path, name):
    path = write(tmp_path / name, table().rename_columns({"new": ""}))
    assert np.allclose(
        read_one(path, ONE._replace(candidate_score="")).candidate, np.arange(6) / 10 + 0.01
    )


def of_both_classes(kind, dtype):
    """The probabilities of both classes as `table` has those of the positive one."""
    pairs = np.stack([1 - np.arange(6) / 10, np.arange(6) / 10], 1).astype(dtype)
    if kind != "vectors":
        return pa.array(pairs.tolist(), kind(pa.from_numpy_dtype(dtype)))
    parts = {
        "type": pa.array([1] * 6, pa.int8()),
        "size": pa.nulls(6, pa.int32()),
        "indices": pa.nulls(6, pa.list_(pa.int32())),
        "values": pa.array(pairs.tolist(), pa.list_(pa.float64())),
    }
    return pa.StructArray.from_arrays(list(parts.values()), list(parts))


@pytest.mark.parametrize(
    ("suffix", "kind", "dtype"),
    [
        ("parquet", pa.list_, np.float64),
        ("parquet", pa.list_, np.float32),
        ("parquet", lambda number: pa.list_(number, 2), np.float32),
        ("parquet", "vectors", np.float64),
        ("orc", "vectors", np.float64),
        ("jsonl", pa.list_, np.float64),
    ],
)
def test_of_the_probabilities_of_both_classes_the_second_is_the_score(
    tmp_path, suffix, kind, dtype
):
    changed = {"old": of_both_classes(kind, dtype)}
    path = write(tmp_path / f"scores.{suffix}", table(**changed))
    expected = (np.arange(6) / 10).astype(dtype)
    assert np.array_equal(read_one(path, ONE).baseline, expected)
    assert np.array_equal(next(blocks(path, ONE)).rows.baseline, expected)


@pytest.mark.parametrize("printed", [str, lambda pair: str(pair.tolist())], ids=["numpy", "list"])
@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
def test_a_list_may_be_text_as_it_is_printed(tmp_path, suffix, printed):
    scores = np.arange(6) / 10
    pairs = np.stack([1 - scores, scores], 1)
    changed = {"old": [printed(pair) for pair in pairs], "y": ["[0]", "[1]"] * 3}
    path = write(tmp_path / f"scores.{suffix}", table(**changed))
    sample = read_one(path, ONE)
    assert sample.baseline.tolist() == scores.tolist()
    assert sample.labels.tolist() == [False, True] * 3


@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "a.csv.gz", "a.jsonl.zst", "a.tfrecord.gz"])
def test_a_url_gives_the_sample_of_the_file(tmp_path, name):
    path = tmp_path / name
    write(tmp_path / path.stem if name[-2:] in ("gz", "st") else path, table())
    if not path.exists():
        with pa.output_stream(path) as stream:  # compresses by suffix
            stream.write((tmp_path / path.stem).read_bytes())
    place = tmp_path / "day=3"
    place.mkdir()
    path.rename(place / name)
    memory = fsspec.filesystem("memory")
    memory.put(str(place), "/scores/day=3", recursive=True)
    names = ONE._replace(parts=("day",))
    try:
        expected = read_one(str(place), names)
        for url in ("memory://scores", f"memory://scores/day=*/{name}", "memory://scores/day=3"):
            found = read_one(url, names)
            assert found.baseline.tolist() == expected.baseline.tolist()
            assert found.parts["day"].tolist() == [3] * 6
            assert found.files[0].path == f"memory:///scores/day=3/{name}"
            assert found.files[0].sha256 == expected.files[0].sha256
            assert sum(len(block.names["day"]) for block in blocks(url, names)) == 6
    finally:
        memory.rm("/scores", recursive=True)


@pytest.mark.parametrize("labels", [[False, True] * 3, [0.0, 1.0] * 3, ["0", "1"] * 3, [-1, 1] * 3])
def test_labels_may_be_words_or_numbers(tmp_path, labels):
    for name in ("a.parquet", "a.csv", "a.jsonl"):
        path = write(tmp_path / name, table(y=labels))
        assert read_one(path, ONE).labels.tolist() == [False, True] * 3


def test_a_text_file_may_end_without_a_newline(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"y,old,new\n" + 3 * b"0,0.125,0.250\n" + b"1,0.125,0.275")
    assert read_one(str(path), ONE).candidate.tolist() == [0.25, 0.25, 0.25, 0.275]


def test_views_of_text_are_read_as_their_values(tmp_path):
    scores = np.arange(6) / 10
    view = pa.array([str(score) for score in scores], pa.string_view())
    names = pa.array(["a", "b", "b"] * 2, pa.string_view())
    path = write(tmp_path / "a.parquet", table(old=view, user=names))
    sample = read_one(path, ONE._replace(group="user", parts=("user",)))
    assert sample.baseline.tolist() == scores.tolist()
    assert sample.parts["user"].tolist() == ["a", "b", "b"] * 2


def test_single_precision_stays_single(tmp_path):
    scores = pa.array(np.linspace(0, 1, 6, dtype=np.float32))
    path = write(tmp_path / "a.parquet", table(old=scores))
    assert read_one(path, ONE).baseline.dtype == np.float32


def two_files(tmp_path, old, new, suffixes=(".parquet", ".parquet")):
    old = old.select(["id", "y", "old"]).rename_columns(["id", "y", "p"])
    new = new.select(["id", "y", "new"]).rename_columns(["id", "y", "p"])
    names = (f"old{suffixes[0]}", f"new{suffixes[1]}")
    return tuple(write(tmp_path / name, data) for name, data in zip(names, (old, new)))


@pytest.mark.parametrize(
    "suffixes", [(".parquet", ".parquet"), (".csv", ".csv"), (".parquet", ".csv"), (".tsv", ".csv")]
)
def test_two_files_are_joined_by_key_whatever_their_order(tmp_path, suffixes):
    shuffled = table().take([4, 2, 0, 5, 1, 3])
    sample = read_two(*two_files(tmp_path, table(), shuffled, suffixes), TWO)
    assert sample.labels.tolist() == [False, True] * 3
    assert np.allclose(sample.candidate - sample.baseline, 0.01)
    join = sample.provenance()["join"]
    assert join == {"matched": 6, "only_baseline": 0, "only_candidate": 0}


def test_the_candidates_file_need_not_repeat_the_label(tmp_path):
    old, _ = two_files(tmp_path, table(), table())
    new = write(tmp_path / "bare.csv", table().select(["id", "new"]).rename_columns(["id", "p"]))
    assert read_two(old, new, TWO).labels.sum() == 3


def test_misses_are_refused_unless_allowed_and_then_counted(tmp_path):
    paths = two_files(tmp_path, table(6), table(8).slice(1))
    with pytest.raises(BadInput, match=r"1 only in .*old.parquet, 2 only in .*new.parquet"):
        read_two(*paths, TWO)
    sample = read_two(*paths, TWO, allow_misses=True)
    assert sample.provenance()["join"] == {"matched": 5, "only_baseline": 1, "only_candidate": 2}
    assert np.allclose(sample.candidate - sample.baseline, 0.01)


def test_leading_zeros_tell_keys_of_text_apart(tmp_path):
    old = write(tmp_path / "old.csv", pa.table({"id": ["07", "7"], "y": [0, 1], "p": [0.1, 0.2]}))
    new = write(tmp_path / "new.csv", pa.table({"id": ["7", "07"], "p": [2.0, 1.0]}))
    assert read_two(old, new, TWO).candidate.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"id": [0, 7, 7, 21, 28, 35]}, "not a key: 1 rows repeat .* 7 comes 2 times"),
        ({"id": [1, 2, 3, 4, 5, 6]}, "no key of .* is in"),
        ({"y": [0, 1, 1, 1, 0, 1]}, "labels of 1 joined rows disagree: .* in row 3 is 0, "),
        ({"id": [0, 7, None, 21, 28, 35]}, "'id' in row 3 is empty"),
        ({"id": [[0], [1], [2], [3], [4], [5]]}, "'id' holds list"),
    ],
)
def test_a_join_that_cannot_be_trusted_is_refused(tmp_path, changed, sentence):
    with pytest.raises(BadInput, match=sentence):
        read_two(*two_files(tmp_path, table(), table(**changed)), TWO)


@pytest.mark.parametrize(
    ("changed", "formats", "sentence"),
    [
        ({"old": [0, 1, 2, float("nan"), 4, 5]}, "both", "column 'old' in row 4 is nan; .*finite"),
        ({"new": [0, float("inf"), 2, 3, 4, 5]}, "both", "column 'new' in row 2 is inf; .*finite"),
        ({"old": [0, 1, None, 3, 4, 5]}, "both", "column 'old' in row 3 is empty"),
        ({"old": list("012x45")}, "both", "column 'old' in row 4 is 'x'; a number is exp"),
        ({"y": [0, 1, 0, 1, 3, 1]}, "both", "column 'y' in row 5 is 3.*; a label must be 0 or 1"),
        ({"y": ["yes", "no"] * 3}, "both", "column 'y' in row 1 is 'yes'; a number is "),
        ({"y": [1] * 6}, "both", "column 'y': all 6 labels are 1"),
        ({"w": [1, 1, -2.0, 1, 1, 1]}, "both", "column 'w' in row 3 is -2.0; .*negative"),
        ({"user": ["a", None, "b", "c", "d", "e"]}, "both", "column 'user' in row 2 is empty"),
        (
            {"old": [[0.1]] * 5 + [[]]},
            "parquet",
            "'old' in row 6 is a list of other than one value",
        ),
        (
            {"old": ["[0.1]"] * 5 + ["[]"]},
            "both",
            r"'old' in row 1 is '\[0.1\]'; a number is expected",
        ),
        ({"old": ["[.1 x]", "[.9 .1]"] * 3}, "both", "'old' in row 1 is 'x'; a number is expected"),
        ({"old": [[0.1], [None]] * 3}, "parquet", "column 'old' in row 2 is empty"),
        (
            {"old": [[0.4, 0.6]] * 3 + [[-1.2, 1.2]] * 3},
            "parquet",
            "'old' in row 4 does not hold the probabilities of both classes, two numbers that sum",
        ),
        ({"old": [[0.4, 0.6]] * 4 + [None] * 2}, "parquet", "column 'old' in row 5 is empty"),
        ({"old": pa.array([0] * 6, pa.timestamp("s"))}, "parquet", "'old' holds timestamp"),
    ],
)
def test_a_bad_value_is_named_by_file_column_and_row(tmp_path, changed, formats, sentence):
    for suffix in (".parquet", ".csv") if formats == "both" else (".parquet",):
        path = write(tmp_path / f"scores{suffix}", table(**changed))
        with pytest.raises(BadInput, match=sentence) as error:
            read_one(path, ONE._replace(group="user", weight="w"))
        assert str(error.value).startswith(path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"y,old,new\n", "has no rows"),
        ("a.csv", b"y,old\n1,2\n", "has no column 'new'; it has: y, old$"),
        ("a.csv", b"y,old,new\n1,2,3\n1,2,\xff\xfe\n", "row 2 is not UTF-8; convert"),
        ("a.jsonl", _LINE + b'{"y": 1, "old": 2, "new": null}', "column 'new' in row 2 is empty"),
        ("a.jsonl", b'{"y": 1, "old": 2}\n', "has no column 'new'; it has: y, old$"),
        ("a.jsonl", b'{"y": 1, "old": 2, "ne', "cut short or corrupt"),
        ("a.json", b'[{"y": 1, "old": 2, "new": 3}]', "cut short or corrupt"),
        ("a.parquet", b"y,old,new\n1,2,3\n", "neither Parquet .* nor, by its name"),
        ("a.parquet", b"PAR1", "cut short or corrupt"),
        ("a.parquet", b"PAR1" + b"\0" * 40 + b"\xff\xff\xff\x7fPAR1", "cut short or corrupt"),
    ],
)
def test_a_file_that_is_not_what_it_claims_is_refused(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput, match=sentence) as error:
        read_one(str(path), ONE)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(BadInput, match="none.csv does not exist"):
        read_one(str(tmp_path / "none.csv"), ONE)
    with pytest.raises(BadInput, match="is a folder without a Parquet"):
        read_one(str(tmp_path), ONE)
    with pytest.raises(BadInput, match="no file matches .*part-"):
        read_one(str(tmp_path / "part-*.csv"), ONE)


def test_a_cut_or_damaged_file_gives_a_sentence_or_a_sample_and_nothing_else(tmp_path):
    whole = {}
    for name in ("a.parquet", "a.csv", "a.csv.gz", "a.orc", "a.tfrecord"):
        path = tmp_path / name
        write(path, table(200))
        whole[path] = path.read_bytes()
    rng = random.Random(5)
    refused = 0
    for path, content in whole.items():
        for _ in range(60):
            damaged = bytearray(content)
            if rng.random() < 0.5:
                del damaged[rng.randrange(len(damaged)) :]
            else:
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            try:
                read_one(str(path), ONE)
            except BadInput as error:
                refused += 1
                assert "\n" not in str(error)
    assert refused > 60


@pytest.mark.parametrize("path", ["", "*.csv", "day=*/*"])
def test_folders_and_patterns_are_read_in_the_order_of_their_names(tmp_path, path):
    for folder in ("", "day=1", "day=2"):
        (tmp_path / folder).mkdir(exist_ok=True)
    first, second = ("day=1/b.csv", "day=2/a.parquet") if path != "*.csv" else ("1.csv", "2.csv")
    write(tmp_path / first, table(6))
    write(tmp_path / second, table(6, old=[9.0] * 6))
    (tmp_path / "_SUCCESS").write_text("")
    sample = read_one(str(tmp_path / path), ONE)
    assert sample.baseline.tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5] + [9] * 6
    assert [file.rows for file in sample.files] == [6, 6]
    write(tmp_path / second, table(6, old=[0, float("nan"), 0, 0, 0, 0]))
    with pytest.raises(BadInput, match=rf"{second}: column 'old' in row 2 is nan"):
        read_one(str(tmp_path / path), ONE)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda data: data[:-3], "record 6 is cut short"),
        (lambda data: data[:20] + b"?" + data[21:], "record 1 is corrupt, its checksum"),
        (lambda data: b"\xff" * 12 + data, "record 1 is cut short or corrupt in its length"),
    ],
)
def test_a_damaged_tfrecord_names_the_record(tmp_path, damage, sentence):
    path = write(tmp_path / "a.tfrecord", table())
    content = (tmp_path / "a.tfrecord").read_bytes()
    (tmp_path / "a.tfrecord").write_bytes(damage(content))
    with pytest.raises(BadInput, match=sentence):
        read_one(path, ONE)


def test_a_file_that_comes_twice_in_a_folder_is_refused(tmp_path):
    for name in ("1.parquet", "2.parquet"):
        write(tmp_path / name, table())
    with pytest.raises(BadInput, match=r"2\.parquet is a copy of .*1\.parquet; rows that are"):
        read_one(str(tmp_path), ONE)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_the_same_rows_in_another_format_are_a_copy(tmp_path, kind):
    old, new = (pa.array(np.random.default_rng(k).random(100)).cast(kind) for k in (0, 1))
    for name in ("scores.csv", "scores.parquet"):
        write(tmp_path / name, table(100, old=old, new=new))
    with pytest.raises(
        BadInput, match=r"scores\.parquet is a copy of .*scores\.csv; rows that are"
    ):
        read_one(str(tmp_path), ONE)


@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.parametrize("option", ["--slice", "--group"])
def test_names_of_several_types_are_refused(tmp_path, capsys, memory, option):
    users = np.arange(200) % 7
    for i, names in enumerate((users.astype(str), users)):
        data = table(200, old=np.arange(200) + i, user=names)
        pyarrow.parquet.write_table(data, tmp_path / f"{i}.parquet")
    columns = ["--label", "y", "--baseline-score", "old", "--candidate-score", "new"]
    more = [option, "user", "--memory", memory, "--out", str(tmp_path / "out")]
    assert main(["parity", str(tmp_path), *columns, *more]) == 3
    assert "same types" in capsys.readouterr().err


def test_a_compressed_tfrecord_that_is_damaged_is_refused(tmp_path):
    write(tmp_path / "a.tfrecord", table())
    whole = gzip.compress((tmp_path / "a.tfrecord").read_bytes())
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(whole)
    assert read_one(str(path), ONE).baseline[1] == pytest.approx(0.1)
    garbled = [whole[:i] + bytes([whole[i] ^ 0x5A]) + whole[i + 1 :] for i in range(10, 60, 7)]
    for damaged in (whole[:-1], whole[:-9], whole[:40], whole[:5], *garbled):
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match=f"^{path}.* cut short|^{path}.* corrupt"):
            read_one(str(path), ONE)


def test_a_feature_that_is_missing_is_named_with_its_record(tmp_path):
    path = write(tmp_path / "a.tfrecord", table())
    with pytest.raises(BadInput, match=r"record 1 has no feature 'none'; it has: id, new, old"):
        read_one(path, ONE._replace(baseline_score="none"))


@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.few(2)
def test_rows_without_a_slice_a_day_or_a_group_are_a_part_of_their_own(
    tmp_path, capsys, memory, files
):
    place, rng = np.arange(4000), np.random.default_rng(0)
    old = place % 2 / 4 + rng.random(4000)
    country = pa.array(["de", "fr"] * 2000, mask=place % 5 == 0)
    day, user = pa.array(place % 3, mask=place % 7 == 0), pa.array(place // 2 * 1.0)
    user = pa.array(np.where(place % 11 == 0, np.nan, user))
    path, other = tmp_path / "old.parquet", tmp_path / "new.parquet"
    columns = {"id": place, "y": place % 2, "p": old, "country": country, "day": day}
    write(path, pa.table({**columns, "user": user, "q": old + 1e-9}))
    write(other, pa.table({"id": place, "q": old + 1e-9}))
    scores = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q"]
    command = [
        "parity",
        *map(str, [path, other][:files]),
        "--key",
        "id",
        *scores,
        "--memory",
        memory,
    ]
    command += ["--slice", "country", "--day", "day", "--group", "user"]
    command += ["--out", str(tmp_path / "out")]
    assert main(command) == 3
    assert "every row needs a value" in capsys.readouterr().err
    fills = ["--fill", "c*=none", "--fill", "day=-1", "--fill", "user=-1"]
    assert main([*command, *fills]) in (0, 2)
    record = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    rows = {part["name"]: part["rows"] for part in record["slices"]["country"]}
    assert rows == {"de": 1600, "fr": 1600, "none": 800}
    days = {day["name"]: day["rows"] for day in record["days"]["days"]}
    assert days["-1"] == np.count_nonzero(place % 7 == 0)
    assert record["clusters"] == 2001
    assert main([*command, *fills[:2], "--fill", "day=none"]) == 3
    assert "holds int64; 'none' cannot fill what is missing" in capsys.readouterr().err
    assert main([*command, "--fill", "y=0"]) == 3
    assert "--fill y=0 names no column of --group, --day or --slice" in capsys.readouterr().err
