"""Rows of sorted pieces, fetched in another order."""

import numpy as np
import pytest
import torch

from migrate.manifest.transforms import filler
from migrate.stream.columns import FREE, Column
from semisync.encoding.dtypes import BFLOAT16


@pytest.fixture
def column(tmp_path):
    """20,000 rows of 3 numbers: row i is i, i, i."""
    rows = np.repeat(np.arange(20_000, dtype=np.float32), 3)
    rows.tofile(tmp_path / "values")
    column = Column(str(tmp_path / "values"), "float32", [3])
    yield column
    column.close()


def test_rows_far_apart_are_fetched_without_what_lies_between(column):
    fetched, places = column.fetch(np.array([19_999, FREE, 7, 5, FREE, 0]), fill=0.5)
    assert fetched[places].tolist() == [[one] * 3 for one in (19_999, 0.5, 7, 5, 0.5, 0)]
    assert len(fetched) < 20


def test_nothing_but_free_rows_is_fetched_without_reading(column):
    fetched, places = column.fetch(np.full(4, FREE), fill=0.5)
    assert fetched[places].tolist() == [[0.5] * 3] * 4
    assert column.take(np.empty(0, np.int64)).shape == (0, 3)


@pytest.mark.parametrize("value", [0.1, -0.3, 1.0, 3.3e38])
def test_a_fill_is_rounded_to_bfloat16_as_torch_rounds(value):
    expected = torch.tensor(value).to(torch.bfloat16).view(torch.int16).item()
    assert filler(value, BFLOAT16).view(np.int16) == expected
