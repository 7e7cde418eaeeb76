"""Bad arguments end in BadInput, whose sentence names the argument and the first value at fault."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

import parity
from semisync.common.errors import BadInput


class Unreadable:
    """What numpy cannot read, as torch's tensors of bfloat16."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("got bfloat16")


GOOD = {"labels": [0, 1, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4]}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"scores": [0.1, float("nan"), 0.3, 0.4]}, r"^scores\[1\] is nan; .* finite$"),
        ({"scores": [0.1, 0.2, 0.3, float("-inf")]}, r"^scores\[3\] is -inf; .* finite$"),
        ({"scores": [0.1, 0.2]}, "^scores has 2 rows, but there are 4 labels$"),
        ({"scores": ["a", "b", "c", "d"]}, r"^scores\[0\] is 'a'; a number is expected$"),
        ({"scores": [1j, 0, 0, 0]}, "^scores holds complex128 values, not numbers$"),
        ({"scores": [[0.1], [0.2], [0.3], [0.4]]}, r"^scores has shape \(4, 1\); .*ravel"),
        (
            {"labels": [0, 1, 2, 1]},
            r"^labels\[2\] is 2; a label must be 0 or 1, or all be -1 or 1$",
        ),
        (
            {"labels": [0, 1, 0.5, 1]},
            r"^labels\[2\] is 0.5; a label must be 0 or 1, or all be -1 or 1$",
        ),
        (
            {"labels": [0, 1, float("nan"), 1]},
            r"^labels\[2\] is nan; a label must be 0 or 1, or all be -1 or 1$",
        ),
        ({"labels": [-1, 1, 0, 1]}, r"^labels\[0\] is -1; a label must be 0 or 1, or all be -1 or"),
        ({"labels": [1, 1, 1, 1]}, "^labels: all 4 labels are 1; .*both classes$"),
        ({"labels": [False] * 4}, "^labels: all 4 labels are 0; .*both classes$"),
        ({"labels": [], "scores": []}, "^labels has no rows"),
        ({"weights": [1, -1, 1, 1]}, r"^weights\[1\] is -1.0; .* negative$"),
        ({"weights": [1, 1, 1, np.inf]}, r"^weights\[3\] is inf; a weight must be finite$"),
        ({"weights": [1, 1, 1]}, "^weights has 3 rows, but there are 4 labels$"),
        ({"scores": np.ma.masked_greater([1, 2, 3, 4], 3)}, r"^scores\[3\] is masked"),
        ({"scores": Unreadable()}, "^scores is not an array of one value per row: got bfloat16"),
        ({"scores": [[1], [1, 2], [3], [4]]}, "^scores is not an array of one value per row"),
        ({"weights": [1, 1e-320, 1, 1]}, r"^weights\[1\] is 1e-320; a weight must be 0 or between"),
        ({"weights": [1, 1, 1, 1e101]}, r"^weights\[3\] is 1e\+101; a weight must be 0 or between"),
        ({"weights": [1, 0, 1, 0]}, "^weights: every row with label 1 has weight 0$"),
    ],
)
def test_auc_names_what_is_wrong(changed, sentence):
    with pytest.raises(BadInput, match=sentence):
        parity.auc(**{**GOOD, **changed})


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"baseline": [0.1, 0.2, 0.3]}, "^baseline has 3 rows, but there are 4 labels$"),
        ({"candidate": [1, 2, -1e301, 4]}, r"^candidate\[2\] is -1e\+301; .* \+-1e\+300$"),
        ({"candidate": [0.1, 0.2, np.nan, 0.3]}, r"^candidate\[2\] is nan"),
        ({"clusters": [1, 1, 2]}, "^clusters has 3 rows, but there are 4 labels$"),
        ({"clusters": [1.0, 1.0, np.inf, 2.0]}, r"^clusters\[2\] is inf; .* finite$"),
        (
            {"clusters": ["a", None, "b", "b"]},
            r"^clusters\[1\] is missing; every row needs a value",
        ),
        ({"clusters": [5, 5, 5, 5]}, "^all rows are in one cluster; .*two clusters or more$"),
        ({"labels": [0, 1, 0, 0]}, "^one class has a single row with weight; "),
        ({"weights": [1, 1, 1, 0]}, "^one class has a single row with weight; "),
    ],
)
def test_compare_names_what_is_wrong(changed, sentence):
    good = {"labels": [0, 1, 0, 1], "baseline": [1, 2, 3, 4], "candidate": [1, 2, 4, 3]}
    with pytest.raises(BadInput, match=sentence):
        parity.compare(**{**good, **changed})


@pytest.mark.parametrize("name", ["baseline", "candidate", "clusters", "weights"])
def test_a_series_in_another_order_is_refused(name):
    pandas = pytest.importorskip("pandas")
    columns = {"labels": [0, 1, 0, 1], "baseline": [1, 2, 3, 4], "candidate": [1, 2, 4, 3]}
    columns.update(clusters=[1, 1, 2, 3], weights=[1, 2, 1, 1])
    series = {one: pandas.Series(values) for one, values in columns.items()}
    shuffled = {**series, name: series[name].iloc[[2, 0, 3, 1]]}
    with pytest.raises(BadInput, match=f"^{name} has the labels' index in another order"):
        parity.compare(**shuffled)
    with pytest.raises(BadInput, match="^slices has the labels' index in another order"):
        parity.compare_slices(*list(series.values())[:3], series["clusters"][::-1])
    with pytest.raises(BadInput, match="^candidates.1. has the labels' index in another order"):
        runs = [series["candidate"], series["candidate"][::-1]]
        parity.compare_runs(series["labels"], [series["baseline"]], runs)
    part = {one: values.set_axis([7, 3, 9, 4]) for one, values in series.items() if one != name}
    assert parity.compare(**{**series, **part}).delta == parity.compare(**columns).delta


@pytest.mark.parametrize("dtype", [np.int8, np.int16, ">i2", np.uint8, np.int64, np.uint64])
def test_clusters_are_told_apart_in_any_width(dtype):
    rng = np.random.default_rng(0)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    names = [low, low + 1, low + 2] if np.dtype(dtype).itemsize == 8 else [low, high // 2, high]
    code = rng.integers(0, 3, 40_000)
    labels, old = rng.random(40_000) < 0.3, rng.random(40_000)
    columns = (labels, old, old + rng.normal(0, 0.1, 40_000))
    found = parity.compare(*columns, clusters=np.array(names, dtype)[code])
    expected = parity.compare(*columns, clusters=np.array(list("abc"))[code])
    assert found.clusters == 3
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-12)
    assert found.baseline.gauc == pytest.approx(expected.baseline.gauc, rel=1e-12)


MISSING = {
    "floats": np.array([1.0, 2.0, np.nan, 1.0]),
    "objects": np.array([1.0, 2.0, np.nan, 1.0], object),
    "times": np.array(["2024-01-01", "2024-01-02", "NaT", "2024-01-01"], "M8[ns]"),
    "timestamps": pd.Series(pd.to_datetime(["2024-01-01", None, None, None])).astype(object)[::-1],
    "timestamps that begin": pd.to_datetime(["2024-01-01", "2024-01-02", None, None], utc=True),
    "datetimes": [datetime.datetime(2024, 1, 1)] * 2 + [None] * 2,
    "text": ["a", "b", np.nan, "a"],
    "text in objects": np.array(["a", "b", None, "a"], object),
    "whole numbers": pd.Series([1, 2, None, 1], dtype="Int64"),
    "strings": pd.Series(["a", "b", None, "a"], dtype="string"),
}


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("argument", ["clusters", "slices", "days", "parts"])
def test_a_missing_name_of_a_part_of_the_rows_is_refused(argument, kind):
    columns, names = [[0, 1, 0, 1], [1.0, 2, 3, 4], [1.0, 2, 4, 3]], MISSING[kind]
    compare = {
        "clusters": lambda: parity.compare(*columns, clusters=names),
        "slices": lambda: parity.compare_slices(*columns, names),
        "days": lambda: parity.compare_days(*columns, names),
        "parts": lambda: parity.diagnose(
            parity.compare(*columns), *columns, parts={"parts": names}
        ),
    }
    with pytest.raises(BadInput, match=rf"^{argument}\[[02]\] is missing; every row needs a value"):
        compare[argument]()


@pytest.mark.parametrize("names", [["a", 1, "b", "b"], [np.zeros(2), "a", "b", np.zeros(2)]])
def test_slices_of_several_kinds_are_refused(names):
    names = np.array([*names, None], object)[:-1]
    with pytest.raises(BadInput, match="^slices mixes kinds of values"):
        parity.compare_slices([0, 1, 0, 1], [1, 2, 3, 4], [1, 2, 4, 3], names)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_the_most_extreme_weights_change_nothing(factor):
    rng = np.random.default_rng(0)
    labels, old, new = rng.random(200) < 0.3, rng.random(200), rng.random(200)
    place = np.arange(200)
    more = {"margin": 0.1, "clusters": place // 2}
    found = parity.compare(labels, old, new, weights=np.full(200, factor), **more)
    plain = parity.compare(labels, old, new, weights=np.ones(200), **more)
    assert found.delta == pytest.approx(plain.delta)
    assert found.standard_error == pytest.approx(plain.standard_error)
    assert found.baseline.gauc == pytest.approx(plain.baseline.gauc)
    assert found.logloss_difference[:2] == pytest.approx(plain.logloss_difference[:2])
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.filterwarnings("error")
def test_the_largest_scores_give_finite_figures():
    scores = np.array([-1e300, 1e300, 2.0, 1e300])
    found = parity.compare([0, 1, 0, 1], scores, -scores)
    assert found.score_difference.max == 2e300
    json.dumps(found.to_json(), allow_nan=False)
