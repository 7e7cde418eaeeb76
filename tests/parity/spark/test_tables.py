"""`parity.compare` of a Spark DataFrame compares it where it is."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import parity
from semisync.common.errors import BadInput, UsageError
from tests.parity.spark.conftest import assert_same_figures, frame, sample

NAMES = {"label": "y", "baseline": "old", "candidate": "new"}


def test_a_spark_data_frame_is_handed_on(spark):
    df = frame(spark, sample())
    found = parity.compare(df, **NAMES, key="id", group="user", weight="w", slices=["country"])
    expected = parity.spark.compare(
        df, "y", "old", "new", key="id", clusters="user", weights="w", slices=["country"]
    )
    assert_same_figures(found.to_json(), expected.to_json())


def test_a_moments_day_is_its_day_on_spark_too(spark):
    data = sample()
    start = datetime.datetime(2024, 5, 1, 9)
    data["at"] = np.array([start + datetime.timedelta(hours=int(h) % 36) for h in data["id"]])
    found = parity.compare(frame(spark, data), **NAMES, day="at")
    assert [day.name for day in found.days.days] == ["2024-05-01", "2024-05-02"]


def logit(data, *sides):
    """The data with the scores of some sides as logits."""
    return {**data, **{side: np.log(data[side] / (1 - data[side])) for side in sides}}


@pytest.mark.parametrize("sides", [("old", "new"), ("old",), ("new",)])
def test_logits_are_ranked_as_logits_on_spark_too(spark, sides):
    data = logit(sample(), *sides)
    named = [{"old": "baseline", "new": "candidate"}[side] for side in sides]
    found = parity.compare(frame(spark, data), **NAMES, logits=named)
    expected = parity.compare(data["y"], data["old"], data["new"], logits=named)
    assert_same_figures(found.to_json(), expected.to_json())
    assert (found.score_difference.counts == expected.score_difference.counts).all()


def test_logits_beyond_what_a_probability_can_hold_keep_their_order(spark):
    data = logit(sample(), "old", "new")
    data["old"], data["new"] = 40 + data["old"], 40 + data["new"]
    found = parity.compare(frame(spark, data), **NAMES, logits=["baseline", "candidate"])
    apart = parity.compare(data["y"], data["old"], data["new"], logits=["baseline", "candidate"])
    assert found.baseline.auc == apart.baseline.auc
    assert found.logloss_difference.delta == pytest.approx(apart.logloss_difference.delta, rel=1e-9)


def test_two_frames_are_joined_by_several_columns(spark):
    data = sample(rows=1_000)
    data["shard"], data["place"] = data["id"] % 7, data["id"] // 7
    keys = ["shard", "place"]
    old, new = ({n: data[n] for n in [*keys, "y", side]} for side in ("old", "new"))
    new = {name: values[5:][::-1] for name, values in new.items()}
    frames = frame(spark, old), frame(spark, new)
    found = parity.compare(frames, **NAMES, key=keys, allow_misses=True)
    expected = parity.compare(data["y"][5:], data["old"][5:], data["new"][5:])
    assert_same_figures(found.to_json(), expected.to_json())
    for tables, more, message in (
        (frames, {"key": keys}, "5 only in the baseline's DataFrame, 0 only in the candidate's"),
        (frames, {"key": "place"}, "column 'place' is not a key: 857 rows repeat"),
        (frames[0], {"key": ["shard", "y"], "candidate": "old"}, "'shard, y' is not a key: 986"),
    ):
        with pytest.raises(BadInput, match=message):
            parity.compare(tables, **{**NAMES, **more})
    with pytest.raises(UsageError, match="^several DataFrames need a key, as rows have no place"):
        parity.compare(frames, **NAMES)


@pytest.mark.parametrize(("empty", "side"), [(0, "baseline"), (1, "candidate")])
def test_an_empty_frame_is_refused(spark, empty, side):
    frames = [frame(spark, sample(rows=100), 1) for _ in range(2)]
    frames[empty] = frames[empty].limit(0)
    with pytest.raises(BadInput, match=f"^the {side}'s DataFrame has no rows; at least one row of"):
        parity.compare(frames, **NAMES, key=["id", "user"])


def test_a_missing_value_is_filled_where_one_is_given(spark):
    data = sample(rows=1_000)
    missing = np.arange(1_000) % 3 == 0
    data["user"] = pa.array(data["user"], mask=missing)
    data["country"] = pa.array(data["country"], mask=missing)
    table = pa.table(data)
    more = {**NAMES, "group": "user", "slices": ["country"]}
    fill = {"user": "-1", "country": "none"}
    found = parity.compare(frame(spark, data), **more, fill=fill)
    expected = parity.compare(table, **more, fill=fill)
    assert_same_figures(found.to_json(), expected.to_json())
    assert "none" in [part.name for part in found.slices[0][1]]
    with pytest.raises(BadInput, match="column 'user' has no value in 334 of 1,000 rows.*--fill"):
        parity.compare(frame(spark, data), **more)
    with pytest.raises(UsageError, match="holds bigint; 'x' cannot fill what is missing"):
        parity.compare(frame(spark, data), **more, fill={**fill, "user": "x"})
