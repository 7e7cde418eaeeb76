import csv
import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semisync.common.errors import BadInput
from semisync.demo.data.columns import equal_buckets, three_idiots
from semisync.demo.data.reading import read
from tests.demo.logs import column, criteo_line, ids, quietly
from tests.support import score_files


def write(path, text):
    path.write_bytes(text.encode())
    return path


def test_criteo_lines_become_39_fields(tmp_path):
    other = criteo_line(1, ["", "-1", "0", "2", "3", *["1000"] * 8], ["", *["0b153874"] * 25])
    log = quietly(write(tmp_path / "day_0", criteo_line() + other))
    assert log.fields == tuple(f"C{i}" for i in range(1, 27)) + tuple(f"I{i}" for i in range(1, 14))
    assert log.numeric == 13 and log.labels.tolist() == [0, 1] and log.days.tolist() == [0, 0]
    assert column(log, "C1").tolist() == ids("C1", ["68fd1e64", ""]).tolist()
    buckets = ["", "SP-1", "SP0", "SP2", "1", "47"]
    assert log.ids[1, 26:32].tolist() == [ids(f"I{i}", [b])[0] for i, b in enumerate(buckets, 1)]


@given(st.integers(-5, 2**62))
def test_counts_are_transformed_as_the_3_idiots_did(value):
    expected = str(int(math.log(float(value)) ** 2)) if value > 2 else "SP" + str(value)
    assert three_idiots(value) == expected


def test_a_criteo_header_makes_the_counts_numbers_too(tmp_path):
    names = ["Id", "Label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    bare = quietly(write(tmp_path / "bare", criteo_line() + criteo_line(1, ["260"] * 13)))
    rows = "".join(
        "7," + line.replace("\t", ",")
        for line in (criteo_line(), criteo_line(1, ["260.0"] + ["260"] * 12))
    )
    log = quietly(write(tmp_path / "a.csv", ",".join(names) + "\n" + rows))
    np.testing.assert_array_equal(column(log, "I1"), column(bare, "I1"))
    np.testing.assert_array_equal(column(log, "I13"), column(bare, "I13"))
    assert log.numeric == 13


values = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cc", "Cs"]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("01"), values, values), min_size=2, max_size=8),
    st.sampled_from([",", "\t", ";"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_rows_come_back_as_they_were_written(tmp_path_factory, rows, delimiter, end, bom):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(["click", "one", "two"])
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_bytes(("\ufeff" * bom + text.getvalue()).encode())
    # Declared as ids, so that chance numbers do not become buckets.
    options = {"categorical": ("one", "two")}
    constant = [name for i, name in ((1, "one"), (2, "two")) if len({row[i] for row in rows}) == 1]
    if len(constant) == 2:
        with pytest.raises(BadInput, match="no column to learn from"):
            quietly(path, **options)
        return
    log = quietly(path, **options)
    assert log.labels.tolist() == [float(row[0]) for row in rows]
    for i, name in ((1, "one"), (2, "two")):
        if name not in constant:
            assert column(log, name).tolist() == ids(name, [row[i] for row in rows]).tolist()


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "orc", "jsonl", "tfrecord"])
def test_one_table_gives_one_log_in_every_format(tmp_path, form):
    rng = np.random.default_rng(0)
    table = {
        "label": rng.integers(0, 2, 500),
        "item": rng.integers(-50, 50, 500),
        "name": rng.choice(["a", "b", "c"], 500),
        "price": np.round(rng.gamma(2.0, size=500), 3),
        "day": rng.integers(0, 9, 500),
    }
    rows = zip(*(values.tolist() for values in table.values()))
    lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
    one = quietly(write(tmp_path / "log.txt", "\n".join(lines)))
    other = quietly(score_files.write(tmp_path / f"log.{form}", pa.table(table)))
    assert one.fields == other.fields == ("item", "name", "price") and one.numeric == 1
    for attribute in ("ids", "labels", "days"):
        np.testing.assert_array_equal(getattr(one, attribute), getattr(other, attribute))
    order = np.argsort(table["day"], kind="stable")
    assert column(one, "item").tolist() == ids("item", table["item"][order]).tolist()


def test_nulls_are_missing_values(tmp_path):
    table = pa.table(
        {
            "label": pa.array([0, 1, 0, 1]),
            "a": pa.array([1, None, 2, None]),
            "b": pa.array(["x", None, "", "y"]).dictionary_encode(),
            "c": pa.array([0.5, None, float("nan"), 1.5]),
            "history": pa.array([[1], [2, 3], [], None]),
            "born": pa.array([1, 2, 3, 4], pa.timestamp("s")),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    log = quietly(tmp_path / "log.parquet")
    assert log.fields == ("a", "b", "c"), "nested values and moments are no ids"
    assert column(log, "a").tolist() == ids("a", ["1", "", "2", ""]).tolist()
    assert column(log, "b").tolist() == ids("b", ["x", "", "", "y"]).tolist()
    assert column(log, "c")[1:3].tolist() == ids("c", ["", ""]).tolist()


def test_held_out_rows_have_no_say_in_the_buckets(tmp_path):
    def buckets(late):
        rows = [f"{i % 2},{v},{i}" for i, v in enumerate([*np.arange(200) + 0.5, *late])]
        log = quietly(write(tmp_path / "log.csv", "\n".join(["y,price,day", *rows])))
        assert log.numeric == 1
        return column(log, "price")

    early = buckets(np.arange(200) + 0.5)
    np.testing.assert_array_equal(early[:200], buckets(np.full(200, 1e9))[:200])
    assert len(set(early.tolist())) == 32
    counts = np.unique(early[:200], return_counts=True)[1]
    assert counts.min() >= 6 and counts.max() <= 7


def test_a_column_that_is_mostly_zero_keeps_its_other_values_apart():
    numbers = np.append(np.zeros(1), np.linspace(0.1, 1, 50))
    rows = np.append(np.zeros(950), numbers[1:])
    buckets = equal_buckets(np.append(numbers, np.nan), rows)
    assert buckets.count(buckets[0]) == 1 and 20 <= len(set(buckets)) <= 33
    assert buckets[-1] == "" and equal_buckets(np.array([np.inf]), rows) == [buckets[-2]]


@pytest.mark.parametrize(
    "times, days, hour",
    [
        (["2020-03-01 23:59:59.5+00:00", "2020-02-29T00:00:00Z", "2020-03-02"], [0, 1, 2], True),
        (["20200302", "20200229", "20200301"], [0, 1, 2], False),
        (["7", "5", "9"], [0, 2, 4], False),
        (["1583107200", "1582934400.5", "1583020801"], [0, 1, 2], True),
        (["1583107200000", "1582934400500", "1583020801000"], [0, 1, 2], True),
    ],
)
def test_rows_are_ordered_by_whatever_tells_the_time(tmp_path, times, days, hour):
    rows = "".join(f"{t},{i % 2},{i}\n" for i, t in enumerate(times))
    log = quietly(write(tmp_path / "log.csv", "time,label,row\n" + rows))
    order = np.argsort(times) if len(times[0]) == len(times[1]) else None
    assert log.days.tolist() == days
    assert ("hour_of_day" in log.fields) == hour
    if order is not None:
        assert column(log, "row").tolist() == ids("row", order).tolist()


def test_a_moment_gives_its_hour_and_is_no_id(tmp_path):
    rows = "".join(f"{i % 2},2020-01-0{i} 0{i}:30:00,u{i}\n" for i in (3, 1, 2))
    log = quietly(write(tmp_path / "log.csv", "click,timestamp,user\n" + rows))
    assert log.fields == ("user", "hour_of_day")
    assert column(log, "hour_of_day").tolist() == ids("hour_of_day", "123").tolist()
    assert column(log, "user").tolist() == ids("user", ["u1", "u2", "u3"]).tolist()


def test_parquet_timestamps_order_the_rows(tmp_path):
    moments = np.array(["2020-01-02T05", "2020-01-01T07", "2020-01-01T06"], "M8[ns]")
    table = pa.table({"y": [0, 1, 0], "a": [3, 2, 1], "datetime": moments})
    pq.write_table(table, tmp_path / "log.parquet")
    log = quietly(tmp_path / "log.parquet")
    assert column(log, "a").tolist() == ids("a", "123").tolist() and log.days.tolist() == [0, 0, 1]
    assert column(log, "hour_of_day").tolist() == ids("hour_of_day", "675").tolist()


def test_columns_that_would_mislead_are_left_out_with_a_note(tmp_path):
    header = ",Id,label,date,timestamp,propensity_score,rating,country,seen,user\n"
    rows = "".join(
        f"{i},{i + 500},{i % 2},x,{i % 3},0.5,{3 + i % 2}.0,nl,2020-01-01 00:00:{i % 60:02}"
        f",{i % 7}\n"
        for i in range(120)
    )
    notes = []
    log = read(write(tmp_path / "log.csv", header + rows), note=notes.append)
    assert log.fields == ("user",)
    for name in ("Unnamed: 0", "Id", "propensity_score", "rating", "country", "seen", "date"):
        assert sum(name in line for line in notes) == 1


def test_the_caller_chooses_among_columns(tmp_path):
    path = write(tmp_path / "log.csv", "click,y,at,version\n0,1,2,1.5\n1,0,1,2.5\n0,0,3,1.50\n")
    with pytest.raises(BadInput, match="'click' and 'y' could both be the label"):
        quietly(path)
    log = quietly(path, label="click", time="at", drop=["y"], categorical=["version"])
    assert log.fields == ("version",) and log.numeric == 0 and log.labels.tolist() == [1, 0, 0]
    assert column(log, "version").tolist() == ids("version", ["2.5", "1.5", "1.50"]).tolist()
    for wish in ({"label": "nope"}, {"time": "nope"}, {"drop": ["nope"]}, {"categorical": "n"}):
        with pytest.raises(BadInput, match=r"no (time )?column '(nope|n)'"):
            quietly(path, **{"label": "click", **wish})


def test_a_folder_is_one_log_in_the_order_of_its_parts(tmp_path):
    write(tmp_path / "test.csv", "click,a\n1,5\n")
    write(tmp_path / "train.csv", "click,a\n0,1\n1,2\n")
    write(tmp_path / "dev.csv", "0,3\n1,4\n")  # a piece that was cut off has no header
    write(tmp_path / "README.txt", "About these, and those.\n")
    write(tmp_path / "notes.md", "click\n")
    notes = []
    log = read(tmp_path, note=notes.append)
    assert log.name == tmp_path.name
    assert column(log, "a").tolist() == ids("a", "12345").tolist()
    assert log.labels.tolist() == [0, 1, 0, 1, 1]
    assert len(notes) == 2
    assert "notes.md is skipped" in notes[0] and "README.txt is skipped" in notes[1]


def test_rows_that_a_delta_table_has_removed_are_not_read(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    for name, values in (("old", [1, 2]), ("new", [3, 4])):
        pq.write_table(pa.table({"click": [0, 1], "a": values}), tmp_path / f"{name}.parquet")
    log = [{"add": {"path": "old.parquet"}}, {"add": {"path": "new.parquet"}}]
    log.append({"remove": {"path": "old.parquet"}})
    commit = "\n".join(map(json.dumps, log))
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text(commit)
    notes = []
    assert column(read(tmp_path, note=notes.append), "a").tolist() == ids("a", "34").tolist()
    assert not any("_delta_log" in line for line in notes)


def test_files_of_different_columns_are_told_apart(tmp_path):
    write(tmp_path / "men.csv", "click,day,a\n0,1,x\n1,3,y\n")
    write(tmp_path / "women.csv", "click,day,b\n0,2,z\n1,0,x\n")
    log = quietly(tmp_path)
    assert log.fields == ("a", "file", "b")
    assert column(log, "file").tolist() == ids("file", ["women", "men", "women", "men"]).tolist()
    assert column(log, "b").tolist() == ids("b", ["x", "", "z", ""]).tolist()
