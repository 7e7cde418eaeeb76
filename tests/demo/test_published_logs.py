"""The readers on published logs, against the csv module's view of the same bytes."""

import csv
import datetime
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from semisync.demo.data.click_log import split
from tests.demo.logs import column, ids, quietly
from tests.support.require import shared


def dict_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_criteo_in_three_tab_separated_parts():
    folder = shared("data", "criteo_avazu_lapis_hong", "criteo")
    rows = []
    for part in ("train", "dev", "test"):
        with open(folder / f"{part}.csv", newline="") as file:
            rows += list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    log = quietly(folder)
    assert log.rows == len(rows) == 8000 and log.numeric == 13 and len(log.fields) == 39
    assert log.labels.tolist() == [float(row[0]) for row in rows]
    for i in range(1, 27):
        expected = ids(f"C{i}", [row[13 + i] for row in rows])
        np.testing.assert_array_equal(column(log, f"C{i}"), expected)
    for i in range(1, 14):
        counts = [int(row[i]) if row[i] else None for row in rows]
        buckets = [
            "" if v is None else str(int(math.log(v) ** 2)) if v > 2 else f"SP{v}" for v in counts
        ]
        np.testing.assert_array_equal(column(log, f"I{i}"), ids(f"I{i}", buckets))
    train, test = split(log)
    assert (train.rows, test.rows) == (6400, 1600)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["bts_men", "bts_women", "random_men", "random_women"])
def test_open_bandit_by_file(name):
    path = shared("data", "open_bandit", f"{name}.csv")
    log, rows = quietly(path), dict_rows(path)
    moments = [datetime.datetime.fromisoformat(row["timestamp"]) for row in rows]
    order = sorted(range(len(rows)), key=moments.__getitem__)
    assert log.labels.tolist() == [float(rows[i]["click"]) for i in order]
    first = min(moments).date()
    assert log.days.tolist() == [(moments[i].date() - first).days for i in order]
    assert set(log.days.tolist()) == set(range(7))
    for field in ("item_id", "position", "user_feature_0", "user_feature_3"):
        np.testing.assert_array_equal(
            column(log, field), ids(field, [rows[i][field] for i in order])
        )
    hours = ids("hour_of_day", [moments[i].hour for i in order])
    np.testing.assert_array_equal(column(log, "hour_of_day"), hours)
    assert not {"", "timestamp", "propensity_score"} & set(log.fields)
    assert all(name.startswith("user-item_affinity") for name in log.fields[-log.numeric :])


def test_open_bandit_by_folder():
    folder = shared("data", "open_bandit")
    log = quietly(folder)
    assert log.rows == 40_000 and int(log.labels.sum()) == 69 + 46 + 46 + 46
    assert len(set(column(log, "file").tolist())) == 4
    _, test = split(log)
    assert set(test.days.tolist()) == {6}


def test_avazu_with_a_header_in_the_first_part_alone():
    log = quietly(shared("data", "criteo_avazu_lapis_hong", "avazu"))
    assert log.rows == 8087 + 480 + 432 and int(log.labels.sum()) == 1397 + 86 + 80
    assert len(log.fields) == 21 and not {"id", "hour"} & set(log.fields)


@pytest.mark.parametrize(
    "parts, rows, clicks, fields, numeric",
    [
        (("deepctr_samples", "criteo_sample.txt"), 200, 49, 39, 13),
        (("deepctr_samples", "avazu_sample.txt"), 100, 20, 21, 0),
        (("criteo_tiny_3idiots", "train.tiny.csv"), 1999, 418, 39, 13),
        (("sparrow_test_samples", "testSamples.csv"), 22440, 12584, 25, 5),
    ],
)
def test_other_logs_with_a_header(parts, rows, clicks, fields, numeric):
    log = quietly(shared("data", *parts))
    assert (log.rows, int(log.labels.sum())) == (rows, clicks)
    assert (len(log.fields), log.numeric) == (fields, numeric)
    assert "rating" not in log.fields, "it is the label in another form"
    split(log)


def test_assistments_in_parquet():
    path = shared("data", "assist2017_pid", "interactions.parquet")
    log, table = quietly(path), pq.read_table(path)
    assert log.fields == ("user", "seq", "problem", "skill") and log.rows == table.num_rows
    np.testing.assert_array_equal(log.days, table["day"].to_numpy())
    np.testing.assert_array_equal(log.labels, table["label"].to_numpy())
    users, codes = np.unique(table["user"].to_numpy(), return_inverse=True)
    np.testing.assert_array_equal(column(log, "user"), ids("user", users)[codes])
    assert set(split(log)[1].days.tolist()) == set(range(24, 30))
