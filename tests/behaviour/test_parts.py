"""The parts of a comparison: distances, and batches of one size."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from migrate.behaviour.difference import apart
from migrate.behaviour.rows import read_full, read_rows
from migrate.behaviour.setting import Setting
from migrate.scoring.model import Input
from migrate.scoring.run import Reading
from semisync.common.errors import BadInput


@pytest.mark.parametrize(
    ("theirs", "ours", "beyond"),
    [
        ([0.0, 1.0, 100.0], [1e-6, 1.000011, 100.001], [False, False, False]),
        ([0.0, 1.0, 100.0], [3e-6, 1.00002, 100.002], [True, True, True]),
        ([np.nan, np.inf, -np.inf], [np.nan, np.inf, -np.inf], [False, False, False]),
        ([np.nan, 1.0, np.inf], [0.0, np.nan, -np.inf], [True, True, True]),
        ([2**53 + 1, 7], [2**53, 7], [True, False]),
        ([b"a", b"b"], [b"a", b"c"], [False, True]),
    ],
)
def test_values_are_apart_by_the_stated_tolerance(theirs, ours, beyond):
    kind = object if isinstance(theirs[0], bytes) else None
    found = apart(np.array(theirs, kind), np.array(ours, kind))
    assert found.beyond.tolist() == beyond
    assert not np.isnan(found.absolute).any()


def test_on_the_way_a_value_near_zero_is_measured_by_its_tensor():
    theirs, ours = np.array([0.0, 1000.0]), np.array([1e-3, 1000.0])
    assert apart(theirs, ours).beyond.any()
    assert not apart(theirs, ours, on_the_way=True).beyond.any()


@pytest.fixture
def data(tmp_path):
    """Two files of 5 and 2 rows."""
    for name, first, count in (("a", 0, 5), ("b", 5, 2)):
        numbers = list(range(first, first + count))
        table = {"n": numbers, "list": [[n] * (n % 3) for n in numbers]}
        table["text"] = [[f"{n}"] * 2 for n in numbers]
        pyarrow.parquet.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    return str(tmp_path)


INPUTS = [
    Input("n", "n", "int64", False),
    Input("list", "list", "int64", True),
    Input("text", "text", "bytes", False),
]
SETTING = Setting(reading=Reading(size=3))


def test_batches_are_full_and_begin_again_after_the_last_row(data):
    batches = list(itertools.islice(read_full(data, INPUTS, SETTING, None), 5))
    numbers = [batch[0].values.tolist() for batch in batches]
    assert numbers == [[0, 1, 2], [3, 4, 5], [6, 0, 1], [2, 3, 4], [5, 6, 0]]
    for one, (_, lists, text) in zip(numbers, batches):
        assert lists.lengths.tolist() == [n % 3 for n in one]
        assert lists.values.tolist() == [n for n in one for _ in range(n % 3)]
        assert text.numpy().tolist() == [[b"%d" % n] * 2 for n in one]


def test_a_graph_of_fixed_batches_gets_the_last_row_again(data):
    found = list(read_rows(data, INPUTS, Setting(), 4))
    assert [(batch.rows, batch.size) for batch in found] == [(4, 4), (1, 4), (2, 4)]
    assert found[1].features[0].values.tolist() == [4, 4, 4, 4]
    assert found[0].part(0, 2).features[0].values.tolist() == [0, 1, 1, 1]


def test_lists_of_several_lengths_are_no_dense_input(tmp_path):
    for name, width in (("a", 2), ("b", 3)):
        table = pa.table({"wide": [[1] * width]})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    inputs = [Input("wide", "wide", "int64", False)]
    with pytest.raises(BadInput, match="'wide' has lists of several lengths"):
        next(read_full(str(tmp_path), inputs, Setting(reading=Reading(size=2)), None))
