"""Histories are what the files say, whichever way they say it."""

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

from migrate.sequences.histories import Columns, read_histories
from migrate.sequences.splits import SplitAt, split
from semisync.common.errors import BadInput, UsageError
from tests.support.score_files import write

USER = [9, 4, 9, 9, 4]
ITEM = [1, 2, 3, 4, 5]
TIME = [30, 7, 10, 30, 7]
CLICK = [1, 0, 0, 1, 1]


def check(histories, clicks=True):
    """Of the five events: those of equal times keep the order of the rows."""
    assert histories.users.tolist() == [4, 9]
    assert histories.offsets.tolist() == [0, 2, 5]
    assert histories.items.tolist() == [2, 5, 3, 1, 4]
    if clicks:
        assert histories.labels["click"].tolist() == [0, 1, 0, 1, 1]
        assert histories.times.tolist() == [7, 7, 10, 30, 30]


def test_a_row_per_event_a_row_per_user_and_text_are_the_same_histories(tmp_path):
    columns = Columns(time="time", labels=["click"])
    events = pa.table({"user": USER, "item": ITEM, "time": TIME, "click": CLICK})
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=2)
    check(read_histories(tmp_path / "events.parquet", columns))
    lists = {"user": [4, 9], "item": [[2, 5], [1, 3, 4]], "time": [[7, 7], [30, 10, 30]]}
    pa.orc.write_table(pa.table({**lists, "click": [[0, 1], [1, 0, 1]]}), tmp_path / "lists.orc")
    check(read_histories(tmp_path / "lists.orc", columns))
    names = ["user", "item", "time", "click"]
    rows = ["\t".join(map(str, row)) for row in zip(USER, ITEM, TIME, CLICK)]
    (tmp_path / "events.tsv").write_text("\n".join(["\t".join(names), *rows, ""]))
    check(read_histories(tmp_path / "events.tsv", columns))
    (tmp_path / "users.txt").write_text("9 3 1 4\n4 2 5\n")
    check(read_histories(tmp_path / "users.txt", Columns(form="lines")), clicks=False)


DAYS = ["2024-01-02", "2024-01-01", "2024-01-01", "2024-01-02", "2024-01-01"]


@pytest.mark.parametrize("suffix", ["parquet", "orc", "csv", "jsonl"])
@pytest.mark.parametrize("times", ["dates", "text", "zones", "nanoseconds"])
def test_users_and_items_may_be_text_and_times_moments(tmp_path, suffix, times):
    hours = [f"{day} 00:00:0{second}.5" for day, second in zip(DAYS, [3, 1, 2, 3, 1])]
    time = {
        "dates": pa.array(DAYS).cast(pa.date32()),
        "text": pa.array(hours),
        "zones": pa.array([hour + "Z" for hour in hours]),
        "nanoseconds": pa.array(hours).cast(pa.timestamp("ns")).cast(pa.timestamp("ns", "UTC")),
    }[times]
    if suffix == "jsonl":
        time = time.cast(pa.string())
    user, item = [f"user {one}" for one in USER], [f"ítem {one}" for one in ITEM]
    path = write(tmp_path / f"log.{suffix}", pa.table({"user": user, "item": item, "time": time}))
    types = {"user": "text", "item": "text", "time": "timestamp"}
    found = read_histories(path, Columns(time="time", types=types))
    of_users = found.told("user", found.users).to_pylist()
    of_items = found.told("item", found.items).to_pylist()
    events = np.split(of_items, found.offsets[1:-1])
    assert {user: list(own) for user, own in zip(of_users, events)} == {
        "user 4": ["ítem 2", "ítem 5"],
        "user 9": ["ítem 3", "ítem 1", "ítem 4"],
    }
    first = 1704067200  # 2024-01-01
    seconds = [0, 86400] if times == "dates" else [1, 2, 86403]
    assert sorted({*found.times.tolist()}) == [first + second for second in seconds]
    assert (found.users == fingerprints(of_users)).all()
    assert (found.items == fingerprints(of_items)).all()


def fingerprints(texts):
    """By TensorFlow."""
    return tf.fingerprint(texts).numpy().view(np.int64)[:, 0]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_times_may_be_floats_which_sort_as_they_are(suffix, tmp_path):
    times = [1593878903.9, 1593878903.25, 1593878902.5, -0.5]
    table = pa.table({"user": [1] * 4, "item": ITEM[:4], "time": times})
    path = write(tmp_path / f"log.{suffix}", table)
    found = read_histories(path, Columns(time="time", types={"time": "float"}))
    assert found.items.tolist() == [ITEM[place] for place in np.argsort(times)]
    assert found.times.tolist() == np.floor(np.sort(times)).tolist()


def test_a_split_may_be_at_a_date(tmp_path):
    days = ["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-03"]
    path = write(tmp_path / "log.csv", pa.table({"user": [1] * 4, "item": ITEM[:4], "time": days}))
    histories = read_histories(path, Columns(time="time", types={"time": "timestamp"}))
    at = SplitAt("2024-01-02", "2024-01-03T00:00:00")
    assert split(histories, at).train.ends.tolist() == [2]
    with pytest.raises(UsageError, match="the split is at 'spring', expected a number, or a time"):
        split(histories, SplitAt("spring", "2024-01-03"))


def test_a_line_may_be_longer_than_what_is_read_at_a_time(tmp_path):
    items = np.arange(1_200_000) + 10**6
    path = tmp_path / "long.txt"
    path.write_text("1 5 6 7\n2 " + " ".join(map(str, items)) + "\n3 8 9\n")
    histories = read_histories(path, Columns(form="lines"))
    assert histories.lengths.tolist() == [3, len(items), 2]
    assert (histories.items[3:-2] == items).all()


@pytest.mark.parametrize(
    "given, columns, message",
    [
        ({"user": [1], "item": [[2, 3]], "time": [[1]]}, Columns(time="time"), "user 1 has 2 .* 1"),
        ({"user": [1], "item": [[]]}, Columns(), "hold no event"),
        ({"user": [1], "item": [2]}, Columns(time="when"), "when"),
        ({"user": [None, 1], "item": [2, 3]}, Columns(), "user.* in row 1"),
        ({"user": [1], "item": [2], "time": [0.5]}, Columns(time="time"), "time.* in row 1"),
        (
            {"user": ["a"], "item": [2]},
            Columns(),
            "user.* in row 1 is 'a'; int64 is expected, unless types",
        ),
        (
            {"user": [1], "item": [2], "time": ["noon"]},
            Columns(time="time", types={"time": "timestamp"}),
            "time.* in row 1 is 'noon'; timestamp",
        ),
        ({"user": [1], "item": [[None]]}, Columns(types={"item": "text"}), "item.* in row 1"),
        (
            {"user": [1], "item": [2], "time": [float("inf")]},
            Columns(time="time", types={"time": "float"}),
            "'time' holds a time that int64 cannot",
        ),
        (
            {"user": [1], "item": [2]},
            Columns(types={"item": "text"}),
            "item.* holds int64, but the model takes text; leave its type out of types",
        ),
        (
            {"user": [1, 1], "item": [2, 3], "click": [1.0, 0.5]},
            Columns(labels=["click"]),
            "click.* in row 2 is 0.5, expected 0 or 1",
        ),
    ],
)
def test_what_is_no_history_is_refused(given, columns, message, tmp_path):
    pq.write_table(pa.table(given), tmp_path / "rows.parquet")
    with pytest.raises(BadInput, match=message):
        read_histories(tmp_path / "rows.parquet", columns)


@pytest.mark.parametrize("text, message", [("1 2\n7\n", r"\[7\]"), ("1 a 3\n", "a")])
def test_a_line_that_is_no_history_is_refused(text, message, tmp_path):
    (tmp_path / "lines.txt").write_text(text)
    with pytest.raises(BadInput, match=message):
        read_histories(tmp_path / "lines.txt", Columns(form="lines"))


def test_the_last_events_or_those_from_a_time_on_are_left_out(tmp_path):
    lists = {"user": [1, 2, 3], "item": [[1, 2, 3, 4], [5, 6], [7, 8, 9]]}
    lists["time"] = [[1, 2, 3, 4], [1, 9], [2, 2, 3]]
    pq.write_table(pa.table(lists), tmp_path / "lists.parquet")
    histories = read_histories(tmp_path / "lists.parquet", Columns(time="time"))
    found = split(histories._replace(times=None), SplitAt())
    assert [part.tolist() for part in found.train[:2]] == [[0, 1], [2, 2]]
    assert [part.tolist() for part in found.asked["validation"][:3]] == [[0, 2], [2, 1], [3, 2]]
    assert [part.tolist() for part in found.asked["test"][:3]] == [[0, 2], [3, 2], [4, 3]]
    found = split(histories, SplitAt(validation=3, test=4))
    assert [part.tolist() for part in found.train[:2]] == [[0, 2], [2, 2]]
    assert [part.tolist() for part in found.asked["validation"][:3]] == [[0, 2], [2, 2], [3, 3]]
    assert [part.tolist() for part in found.asked["test"][:3]] == [[0, 1], [3, 1], [4, 2]]
    with pytest.raises(UsageError, match="the test's later"):
        split(histories, SplitAt(validation=4, test=3))
