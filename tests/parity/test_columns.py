"""What files, frames and arrays may hold alike: decimals, text, moments, missing values."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import parity
from parity.io.blocks import blocks
from parity.io.readers import ColumnNames, read_one
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput
from tests.parity.kinds import columns

LABELS, OLD, NEW = columns(rows=240)
START = datetime.datetime(2024, 5, 1)
MOMENTS = [START + datetime.timedelta(hours=2 * row, minutes=7) for row in range(240)]
DAYS = [str(START + datetime.timedelta(days=day))[:10] for day in range(20)]


@pytest.mark.parametrize(
    "written",
    [
        np.array([Decimal(str(score)) for score in OLD], object),
        np.array([str(score) for score in OLD]),
        pd.Series([str(score) for score in OLD]),
        pa.array([Decimal(str(score)) for score in OLD]),
        pa.chunked_array([[str(score) for score in OLD]]),
    ],
)
def test_arrays_of_decimals_and_text_are_numbers(written):
    expected = parity.compare(LABELS, OLD, NEW)
    found = parity.compare(LABELS, written, NEW)
    assert found.delta == pytest.approx(expected.delta)
    assert found.baseline.auc == pytest.approx(expected.baseline.auc)


@pytest.mark.parametrize(
    "labels",
    [
        np.where(LABELS, "true", "False"),
        np.where(LABELS, "1", "0"),
        pd.Series(np.where(LABELS, "1.0", "-1")),
        pd.array(LABELS, dtype="boolean"),
        [Decimal(int(label)) for label in LABELS],
    ],
)
def test_labels_may_be_text(labels):
    assert parity.auc(labels, OLD) == parity.auc(LABELS, OLD)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_value_is_named_by_column_and_row(missing):
    scores = OLD.astype(object)
    scores[7] = missing
    with pytest.raises(BadInput, match=r"^candidate\[7\] is (missing|nan)"):
        parity.compare(LABELS, OLD, scores)
    users = np.array(["u"] * 240, object)
    users[9] = missing
    with pytest.raises(BadInput, match=r"^clusters\[9\] is missing"):
        parity.compare(LABELS, OLD, NEW, clusters=users)


def test_what_is_no_number_is_named():
    words = [str(score) for score in OLD]
    words[3] = "high"
    with pytest.raises(BadInput, match=r"^candidate\[3\] is .*'high'.*; a number is expected"):
        parity.compare(LABELS, OLD, words)


@pytest.mark.parametrize(
    "days",
    [
        np.array(MOMENTS, "datetime64[us]"),
        np.array(MOMENTS, object),
        pd.Series(MOMENTS),
        pd.Series(MOMENTS).dt.tz_localize("America/New_York"),
        pa.array(MOMENTS),
        [str(moment) for moment in MOMENTS],
        [moment.isoformat() + "+05:00" for moment in MOMENTS],
    ],
)
def test_a_moments_day_is_its_day(days):
    found = parity.compare_days(LABELS, OLD, NEW, days)
    assert [day.name for day in found.days] == DAYS
    assert {day.rows for day in found.days} == {12}


@pytest.mark.parametrize(
    "moments",
    [
        pa.array(MOMENTS, pa.timestamp("ms")),
        pa.array([str(moment) for moment in MOMENTS]),
        pa.array(pd.Series(MOMENTS).dt.tz_localize("Asia/Tokyo")),
        pa.array(pd.Series(MOMENTS).dt.tz_localize("America/New_York")),
    ],
)
def test_a_moments_day_is_its_day_in_files_too(tmp_path, moments):
    path = str(tmp_path / "scores.parquet")
    pyarrow.parquet.write_table(pa.table({"y": LABELS, "a": OLD, "b": NEW, "at": moments}), path)
    names = ColumnNames("y", "a", "b", parts=("at",), day="at")
    assert sorted(set(read_one(path, names).parts["at"])) == DAYS
    (block,) = blocks(path, names)
    assert sorted(set(block.names["at"].to_pylist())) == DAYS
    assert len(set(read_one(path, names._replace(day=None)).parts["at"])) == 240, "of a slice not"


def semicolons(tmp_path, bad=None):
    path = tmp_path / "scores.csv"
    rows = [f"{int(y)};{a:.6f};{b:.6f}".replace(".", ",") for y, a, b in zip(LABELS, OLD, NEW)]
    if bad is not None:
        rows[bad] = "1;0,5;high"
    path.write_text("\n".join(["y;a;b", *rows, ""]))
    return str(path)


def test_decimal_commas_are_named_and_read(tmp_path):
    path, names = semicolons(tmp_path), ColumnNames("y", "a", "b")
    with pytest.raises(BadInput) as refused:
        read_one(path, names)
    option = '{"separator": ";", "decimal": ","}'
    assert f"--text '{option}' (text= in Python) reads it" in str(refused.value)
    text = TextFormat(separator=";", decimal=",").checked()
    assert np.allclose(read_one(path, names._replace(text=text)).baseline, OLD, atol=1e-6)
    with pytest.raises(BadInput, match="""is '0,.*'; a number .*; --text '{"decimal": ","}'"""):
        read_one(path, names._replace(text=TextFormat(separator=";")))
    with pytest.raises(BadInput, match="column 'b' in row 12 is 'high'; a number is expected$"):
        read_one(semicolons(tmp_path, bad=11), names._replace(text=text))
