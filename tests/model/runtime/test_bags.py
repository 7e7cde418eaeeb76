"""Sparse ids in bags give what TensorFlow's safe_embedding_lookup_sparse gives."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, PoolingType

from migrate import runtime
from semisync.common.errors import BadInput
from tests.model.runtime.same import QUICK

ROWS, DIM = 7, 3
TABLE = np.random.RandomState(0).rand(ROWS, DIM).astype(np.float32)
COMBINERS = ("sum", "mean", "sqrtn")


@strategies.composite
def sparse_ids(draw):
    """A SparseTensor of ids with one or two axes of rows, its indices in any order; any may be
    negative, and any row empty."""
    shape = draw(strategies.lists(strategies.integers(1, 3), min_size=2, max_size=3))
    places = strategies.tuples(*(strategies.integers(0, size - 1) for size in shape))
    indices = draw(strategies.lists(places, unique=True, max_size=8))
    ids = draw(strategies.lists(strategies.integers(-2, ROWS - 1), min_size=8, max_size=8))
    found = np.array(indices, np.int64).reshape(-1, len(shape))
    return found, np.array(ids[: len(found)], np.int64), np.array(shape, np.int64)


@pytest.fixture(scope="module")
def looked_up():
    """TensorFlow's look-ups of a SparseTensor, by combiner."""
    tf = pytest.importorskip("tensorflow").compat.v1
    with tf.Graph().as_default(), tf.Session() as session:
        sparse = tf.sparse_placeholder(tf.int64)
        found = {
            combiner: tf.nn.safe_embedding_lookup_sparse(
                tf.constant(TABLE), sparse, combiner=combiner
            )
            for combiner in COMBINERS
        }
        yield lambda *given: session.run(found, {sparse: given})


def collection():
    """Tables for sums and for means of the same rows."""
    kinds = {"sum": PoolingType.SUM, "mean": PoolingType.MEAN}
    made = EmbeddingBagCollection(
        tables=[
            EmbeddingBagConfig(
                name=name,
                num_embeddings=ROWS,
                embedding_dim=DIM,
                feature_names=[name],
                pooling=pooling,
            )
            for name, pooling in kinds.items()
        ]
    )
    for name in kinds:
        made.embedding_bags[name].weight.data.copy_(torch.from_numpy(TABLE))
    return made


@QUICK
@given(given=sparse_ids())
def test_bags_of_sparse_ids_are_tensorflows_rows(looked_up, given):
    expected = looked_up(*given)
    bags = runtime.sparse_bags(*map(torch.from_numpy, given))
    found = runtime.look_up_bags(collection(), {"sum": bags, "mean": bags})
    found["sqrtn"] = found["sum"] / bags.sizes().sqrt()
    for combiner in COMBINERS:
        ours = found[combiner].detach().numpy().reshape(expected[combiner].shape)
        np.testing.assert_allclose(ours, expected[combiner], atol=1e-6)


def test_an_index_outside_of_the_shape_is_refused():
    with pytest.raises(BadInput, match=r"outside of its shape \[2, 1\]"):
        runtime.sparse_bags(torch.tensor([[2, 0]]), torch.tensor([1]), (2, 1))


def test_an_empty_bag_looks_row_0_up_and_gives_it_no_gradient():
    bags = runtime.sparse_bags(torch.tensor([[1, 0]]), torch.tensor([4]), (3, 1))
    assert bags.ids.tolist() == [0, 4, 0] and bags.empty.tolist() == [True, False, True]
    tables = collection()
    runtime.look_up_bags(tables, {"sum": bags, "mean": bags})["sum"].sum().backward()
    gradient = tables.embedding_bags["sum"].weight.grad
    assert gradient[4].tolist() == [1.0] * DIM and not gradient[0].any()
