"""Keys of two files: what is the same key, and what must not be taken for it."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.inputs.checks import Column
from parity.io.keys import to_keys
from parity.io.readers import ColumnNames, read_one, read_two
from parity.io.stored_join import StoredJoin
from semisync.cli import main
from semisync.common.errors import BadInput

NAMES = ColumnNames("y", "p", "p", key="id")
HASHES = np.array([2**64 - 1, 2**63, 2**63 + 1, 7, 0, 2**53 + 1], np.uint64)
MOMENTS = [datetime.datetime(2024, 1, 31, 0, 0, second, 5000) for second in range(6)]


def write(tmp_path, name, keys, **more):
    count = np.arange(len(keys))
    table = pa.table({"id": keys, "y": count % 2, "p": count / 10, **more})
    pyarrow.parquet.write_table(table, tmp_path / name)
    return str(tmp_path / name)


def both_ways(old, new):
    """Joined rows (baseline's score, candidate's), in memory and in temporary files."""
    sample = read_two(old, new, NAMES, allow_misses=True)
    yield sorted(zip(sample.baseline.tolist(), sample.candidate.tolist()))
    blocks = list(StoredJoin((old, new), NAMES, allow_misses=True))
    columns = [np.concatenate([getattr(b.rows, side) for b in blocks]).tolist() for side in SIDES]
    yield sorted(zip(*columns))


SIDES = ("baseline", "candidate")
SAME = [(score / 10, score / 10) for score in range(6)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pa.array(HASHES), pa.array(HASHES)),
        (pa.array(HASHES), pa.array([str(value) for value in HASHES.tolist()])),
        (pa.array([3, 1, 4, 0, 5, 9], pa.uint64()), pa.array([3, 1, 4, 0, 5, 9], pa.int32())),
        (pa.array(MOMENTS, pa.timestamp("us")), pa.array(MOMENTS, pa.timestamp("ns"))),
        (
            pa.array(MOMENTS, pa.timestamp("ms", "UTC")),
            pa.array(MOMENTS, pa.timestamp("ns", "UTC")),
        ),
        (
            pa.array(MOMENTS, pa.timestamp("us", "UTC")),
            pa.array(MOMENTS, pa.timestamp("us", "UTC")).cast(pa.timestamp("ns", "Asia/Tokyo")),
        ),
        (pa.array([1.0, 2, 3, 4, 5, 6]), pa.array([1, 2, 3, 4, 5, 6])),
        (pa.array(np.arange(6, dtype=np.float32)), pa.array(np.arange(6.0))),
        (pa.array(list("abcdef")).dictionary_encode(), pa.array(list("abcdef"))),
        (pa.array([b"a", b"b", b"c", b"d", b"e", b"f"]), pa.array(list("abcdef"))),
    ],
)
def test_the_same_key_in_another_type_joins(tmp_path, ours, theirs):
    old, new = write(tmp_path, "a.parquet", ours), write(tmp_path, "b.parquet", theirs)
    for joined in both_ways(old, new):
        assert joined == SAME


@pytest.mark.parametrize(
    ("ours", "theirs", "sentence"),
    [
        (
            [1.0, 2.0, 3.0, 4.0],
            ["1", "2", "3", "4"],
            "holds double, but the other .* string; write",
        ),
        (["1.0", "2.0", "3", "4"], [1.0, 2.0, 3.0, 4.0], "holds double, but the other .* string"),
        (
            [0.5, 2.0, 3.0, 4.0],
            [0.5, 2.0, 3.0, 4.0],
            "'id' in row 1 is 0.5, in double, which cannot",
        ),
        ([1.0, 2.0**53, 3.0, 4.0], [1, 2**53 + 1, 3, 4], "'id' in row 2 is 9007199254740992"),
        ([1.0, float("nan"), 3.0, 4.0], [1, 2, 3, 4], "'id' in row 2 is nan; every row needs"),
        (
            pa.array(MOMENTS[:4], pa.timestamp("us")),
            pa.array(MOMENTS[:4], pa.timestamp("us", "UTC")),
            "no key of .* '2024-01-31 00:00:00.005'.* '2024-01-31 00:00:00.005Z'",
        ),
    ],
)
def test_keys_that_only_look_alike_are_refused(tmp_path, ours, theirs, sentence):
    old, new = write(tmp_path, "a.parquet", ours), write(tmp_path, "b.parquet", theirs)
    with pytest.raises(BadInput, match=sentence):
        read_two(old, new, NAMES)
    with pytest.raises(BadInput, match=sentence):
        list(StoredJoin((old, new), NAMES))


@given(st.lists(st.floats(width=32) | st.integers(0, 2**54).map(float), min_size=1))
def test_floating_point_is_a_key_exactly_where_no_two_whole_numbers_share_it(numbers):
    exact = [x == x and abs(x) < 2**53 and x == int(x) for x in numbers]
    values = pa.chunked_array([pa.array(numbers, pa.float64())])
    if all(exact):
        assert to_keys(values, Column("id")).to_pylist() == [int(x) for x in numbers]
    else:
        missing = [x != x for x in numbers]
        first = missing.index(True) if any(missing) else exact.index(False)
        with pytest.raises(BadInput, match=rf"id\[{first}\] is"):
            to_keys(values, Column("id"))


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=30, unique=True),
    st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=30, unique=True),
)
def test_keys_of_both_signs_join_as_brute_force_does(tmp_path_factory, ours, theirs):
    folder = tmp_path_factory.mktemp("keys")
    kind = pa.uint64() if min(theirs) >= 0 else pa.int64()
    theirs = [key for key in [*theirs, *ours[::2]] if kind == pa.uint64() or key < 2**63]
    theirs = list(dict.fromkeys([*theirs, 1, 2]))
    ours = list(dict.fromkeys([*ours, 1, 2]))
    old = write(folder, "a.parquet", pa.array(ours, pa.uint64()))
    new = write(folder, "b.parquet", pa.array(theirs, kind))
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(new).drop(["y"]), new)
    expected = sorted((ours.index(k) / 10, theirs.index(k) / 10) for k in set(ours) & set(theirs))
    for joined in both_ways(old, new):
        assert joined == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("memory", ["4", "0"])
def test_hashed_ids_are_groups_and_slices(tmp_path, capsys, memory):
    rng = np.random.default_rng(0)
    users = rng.integers(0, 2**64, 200, np.uint64, endpoint=False)
    rows = np.arange(4000)
    label = rng.random(4000) < 0.4
    score = label / 4 + rng.random(4000)
    columns = {"y": label, "p": score, "q": score + 1e-6, "u": users[rows % 200]}
    columns["s"] = users[rows % 2]
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    columns = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q", "--group", "u"]
    more = ["--slice", "s", "--memory", memory, "--margin", "0.5", "--out", str(tmp_path / "out")]
    assert main(["parity", str(tmp_path / "a.parquet"), *columns, *more]) == 0
    out = capsys.readouterr().out
    assert "in 200 clusters" in out and "s: of 2 slices" in out


def test_missing_numbers_are_no_group_and_no_slice(tmp_path, capsys):
    """pandas writes a missing id as a NaN."""
    users = np.where(np.arange(40) == 3, np.nan, np.arange(40) // 4)
    path = write(tmp_path, "a.parquet", list(range(40)), q=np.arange(40) / 40, u=users)
    for option in ("--group", "--slice", "--day"):
        for memory in ("4", "0"):
            columns = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q"]
            more = [option, "u", "--memory", memory, "--out", str(tmp_path / "out")]
            assert main(["parity", path, *columns, *more]) == 3
            assert "column 'u' in row 4 is nan; every row needs a value" in capsys.readouterr().err


def test_days_of_any_unit_have_one_name(tmp_path):
    names = ColumnNames("y", "p", "p", parts=("at",))
    found = []
    for unit in ("s", "ms", "us", "ns"):
        moments = pa.array(MOMENTS[:1] * 6, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
        path = write(tmp_path, f"{unit}.parquet", list(range(6)), at=moments)
        found.append(set(read_one(path, names).parts["at"].tolist()))
    assert found == [{"2024-01-31 00:00:00"}] + 3 * [{"2024-01-31 00:00:00.005"}]
