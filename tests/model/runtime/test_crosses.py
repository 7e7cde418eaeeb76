"""Crosses are TensorFlow's: their order, their hash from the key on, their text."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from migrate.runtime import Strings
from semisync.common.errors import BadInput, UsageError
from tests.model.runtime.same import QUICK, TEXTS, assert_same, objects

INT64 = strategies.integers(-(2**63), 2**63 - 1)


@strategies.composite
def columns(draw):
    """A SparseTensor of words, a matrix of integers, one of words; any number of rows, even 0."""
    rows = draw(strategies.integers(0, 4))
    counts = draw(strategies.lists(strategies.integers(0, 3), min_size=rows, max_size=rows))
    indices = [(row, place) for row, count in enumerate(counts) for place in range(count)]
    widths = [draw(strategies.integers(0, 2)) for _ in range(2)]

    def values(of, count):
        return draw(strategies.lists(of, min_size=count, max_size=count))

    return {
        "indices": np.array(indices, np.int64).reshape(-1, 2),
        "values": objects(values(TEXTS, len(indices))),
        "shape": np.array([rows, 3]),
        "integers": np.array(values(INT64, rows * widths[0]), np.int64).reshape(rows, widths[0]),
        "words": objects(values(TEXTS, rows * widths[1]), (rows, widths[1])),
    }


def crossed(given, *how):
    return runtime.sparse_cross(
        [torch.from_numpy(given["indices"])],
        [Strings.of(given["values"])],
        [torch.from_numpy(given["shape"])],
        [torch.from_numpy(given["integers"]), Strings.of(given["words"])],
        *how,
    )


@QUICK
@given(
    given=columns(),
    hashed=strategies.booleans(),
    buckets=strategies.sampled_from([0, 1, 1000, 2**62 + 1]),
    key=strategies.sampled_from([0xDECAFCAFFE, 0, 17, -1]),
)
def test_crosses_are_those_of_tensorflow(peer, given, hashed, buckets, key):
    attributes = {"attr_hashed": hashed, "attr_buckets": buckets, "attr_hash_key": key}
    assert_same(crossed(given, hashed, buckets, key), peer.ask("cross", **given, **attributes))


def test_indices_out_of_order_end_a_column_as_in_tensorflow(peer):
    given = {
        "indices": np.array([[0, 0], [2, 0], [1, 0], [2, 1]]),
        "values": objects([b"a", b"b", b"c", b"d"]),
        "shape": np.array([3, 2]),
        "integers": np.array([[1], [2], [3]]),
        "words": objects([b"x", b"y", b"z"], (3, 1)),
    }
    attributes = {"attr_hashed": False, "attr_buckets": 0, "attr_hash_key": 1}
    assert_same(crossed(given), peer.ask("cross", **given, **attributes))


def test_the_last_column_changes_fastest():
    _, values, shape = runtime.sparse_cross(
        [], [], [], [Strings.of([["a", "b"]]), torch.tensor([[1, 2]])]
    )
    assert values.numpy().tolist() == [b"a_X_1", b"a_X_2", b"b_X_1", b"b_X_2"]
    assert shape.tolist() == [1, 4]


def test_columns_that_do_not_fit_together_are_refused():
    word, number = Strings.of([["a"]]), torch.tensor([[1], [2]])
    with pytest.raises(BadInput, match="1, 2 rows"):
        runtime.sparse_cross([], [], [], [word, number], True)
    with pytest.raises(BadInput, match="is a matrix"):
        runtime.sparse_cross([], [], [], [word.squeeze()], True)
    with pytest.raises(UsageError, match="strings or int64"):
        runtime.sparse_cross([], [], [], [number.to(torch.int32)], True)
    with pytest.raises(UsageError, match="needs"):
        runtime.sparse_cross([], [], [], [], True)
    indices, shape = torch.zeros(2, 2, dtype=torch.int64), torch.tensor([1, 1])
    with pytest.raises(BadInput, match="more or fewer values than indices"):
        runtime.sparse_cross([indices], [Strings.of(["a"])], [shape], [], True)
