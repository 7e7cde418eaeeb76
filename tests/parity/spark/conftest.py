"""Rows to compare on Spark, and whether two reports have the same figures."""

import numpy as np
import pyarrow as pa
import pytest

from tests.support.spark import spark  # noqa: F401 (a fixture)


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
