"""`sum_by_id` sums rows by id as numpy does, by either of its two methods."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semisync.common.compat import tf
from semisync.transport.sparse_sum import DENSITY, sum_by_id

ROWS = (1, 5, 160, 100000)  # few: ids are marked; many: ids are hashed; 160: either, by their count


class Summing:
    """`sum_by_id` with ids and values to feed."""

    def __init__(self, dtype, rank, rows):
        with tf.Graph().as_default():
            self._values = tf.placeholder(tf.float32, [None, 2, 3][:rank])
            self._ids = tf.placeholder(dtype, [None])
            shape = tf.constant([rows, 2, 3][:rank], dtype)
            self._found = sum_by_id([self._values], [self._ids], shape)
            self.shapes = [tensor.shape for tensor in self._found]
            self._session = tf.Session()

    def __call__(self, values, ids):
        return self._session.run(self._found, {self._values: values, self._ids: ids})


summing = functools.lru_cache(maxsize=None)(Summing)


@settings(deadline=None)
@given(st.data(), st.sampled_from(ROWS), st.integers(1, 3), st.sampled_from(["int32", "int64"]))
def test_each_id_gets_the_sum_of_its_rows_and_their_number(data, rows, rank, dtype):
    largest = data.draw(st.sampled_from(sorted({rows - 1, min(rows - 1, 3)})))
    ids = np.array(data.draw(st.lists(st.integers(0, largest), max_size=40)), dtype)
    # Whole numbers, so that the order of a sum does not matter.
    values = np.random.RandomState(len(ids)).randint(-99, 99, (len(ids),) + (2, 3)[: rank - 1])
    sums, each, counts = summing(dtype, rank, rows)(values, ids)
    expected, places, times = np.unique(ids, return_inverse=True, return_counts=True)
    totals = np.zeros(expected.shape + values.shape[1:])
    np.add.at(totals, places, values)
    order = np.argsort(each)
    assert each.dtype == dtype
    np.testing.assert_array_equal(each[order], expected)
    np.testing.assert_array_equal(sums[order], totals)
    np.testing.assert_array_equal(counts[order], times)


@pytest.mark.parametrize("count", [159 // DENSITY, 160 // DENSITY], ids=["hashed", "marked"])
def test_marking_yields_ascending_ids_and_hashing_their_order_of_arrival(count):
    ids = np.arange(count)[::-1]
    _, each, _ = summing("int64", 1, 160)(np.ones(count), ids)
    marked = count * DENSITY >= 160
    np.testing.assert_array_equal(each, sorted(ids) if marked else ids)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_shape_of_a_row_is_known_before_anything_is_run(rank):
    sums, each, _ = summing("int64", rank, 5).shapes
    assert sums.as_list() == [None, 2, 3][:rank]
    assert each.as_list() == [None]
