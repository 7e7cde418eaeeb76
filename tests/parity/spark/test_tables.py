"""`parity.compare` of a Spark DataFrame compares it where it is."""

import datetime

import numpy as np
import pytest

import parity
from semisync.common.errors import UsageError
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


def test_what_spark_does_not_have_is_refused(spark):
    df = frame(spark, sample(rows=200))
    for tables, more in (((df, df), {}), (df, {"key": ["id", "user"]}), (df, {"fill": {"a": "b"}})):
        with pytest.raises(UsageError, match="^Spark compares one DataFrame: "):
            parity.compare(tables, **NAMES, **more)
