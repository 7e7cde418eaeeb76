"""A Spark of two executor processes on this machine, one for all tests of the session."""

import importlib.util
import os
import shutil

import numpy as np
import pyarrow as pa
import pytest

from tests.support.require import skip_without


@pytest.fixture(scope="session")
def spark():
    """Real executors: each a process of its own, with a core and a GiB."""
    if importlib.util.find_spec("pyspark") is None:
        skip_without("spark", "pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        skip_without("spark", "there is no java")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from parity.spark.session import start

    short_lived = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what compiles less starts faster
    session = start(
        "local-cluster[2,1,1024]",
        sql_shuffle_partitions="2",
        sql_adaptive_enabled="false",  # it plans large jobs, and makes three of each small one
        ui_enabled="false",
        driver_extraJavaOptions=short_lived,
        executor_extraJavaOptions=short_lived,
    )
    yield session
    session.stop()


def sample(rows=3_000, seed=0, ties=False, logits=False):
    """Rows of users with two models' scores, which differ by noise; days, countries, weights."""
    rng = np.random.default_rng(seed)
    users = rng.integers(0, rows // 10, rows)
    labels = rng.random(rows) < 0.1
    level = rng.normal(size=rows) + labels + rng.normal(size=rows // 10)[users] - 2
    old, new = level + 0.1 * rng.normal(size=(2, rows))
    if not logits:
        old, new = (1 / (1 + np.exp(-scores)) for scores in (old, new))
    if ties:
        old, new = (scores.round(2) + 0.001 for scores in (old, new))
    return {
        "id": np.arange(rows),
        "y": labels,
        "old": old,
        "new": new,
        "user": users,
        "w": rng.choice([0, 1, 2.5, 7], rows),
        "day": np.array([f"2024-01-0{i}" for i in rng.integers(1, 6, rows)]),
        "country": rng.choice(["de", "fr", "nl"], rows, p=[0.7, 0.299, 0.001]),
    }


def frame(session, columns, partitions=3):
    """The columns as a DataFrame in several partitions, in another order."""
    return session.createDataFrame(pa.table(columns)).repartition(partitions)


def figures(value, path=""):
    """Every figure of a report's JSON by its place."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return {path: value}
    found = {}
    for name, item in items:
        found.update(figures(item, f"{path}/{name}"))
    return found


def assert_same_figures(found, expected):
    """Two reports' JSON: floats within 1e-12, everything else the same."""
    ours, theirs = figures(found), figures(expected)
    assert ours.keys() == theirs.keys()
    for place, value in theirs.items():
        if isinstance(value, float):
            assert ours[place] == pytest.approx(value, rel=1e-12, abs=1e-12), place
        else:
            assert ours[place] == value, place
