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
    negative, and any row empty. With it a weight per id, which may be 0, less, or NaN."""
    shape = draw(strategies.lists(strategies.integers(1, 3), min_size=2, max_size=3))
    places = strategies.tuples(*(strategies.integers(0, size - 1) for size in shape))
    indices = draw(strategies.lists(places, unique=True, max_size=8))
    ids = draw(strategies.lists(strategies.integers(-2, ROWS - 1), min_size=8, max_size=8))
    weight = strategies.sampled_from([0.5, 1.0, 2.0, 3.25, 0.0, -1.0, np.nan])
    weights = draw(strategies.lists(weight, min_size=8, max_size=8))
    found = np.array(indices, np.int64).reshape(-1, len(shape))
    given = found, np.array(ids[: len(found)], np.int64), np.array(shape, np.int64)
    return given, np.array(weights[: len(found)], np.float32)


@pytest.fixture(scope="module")
def looked_up():
    """TensorFlow's look-ups of a SparseTensor, by combiner: plain, weighted, with a default id."""
    tf = pytest.importorskip("tensorflow").compat.v1
    with tf.Graph().as_default(), tf.Session() as session:
        ids, weights = tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.float32)
        kinds = {
            "plain": {},
            "weighted": {"sparse_weights": weights},
            "default": {"default_id": 3},
            "normed": {"sparse_weights": weights, "max_norm": 0.75},
        }
        found = {
            (kind, combiner): tf.nn.safe_embedding_lookup_sparse(
                tf.constant(TABLE), ids, combiner=combiner, **more
            )
            for kind, more in kinds.items()
            for combiner in COMBINERS
        }

        def run(given, values):
            indices, _, shape = given
            return session.run(found, {ids: given, weights: (indices, values, shape)})

        yield run


def collection(is_weighted=False):
    """Tables for sums and for means, which cannot be weighted, of the same rows."""
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
            if not (is_weighted and name == "mean")
        ],
        is_weighted=is_weighted,
    )
    for name in made.embedding_bags:
        made.embedding_bags[name].weight.data.copy_(torch.from_numpy(TABLE))
    return made


def looked_up_here(given, weights):
    """The same by bags."""
    given, weights = [*map(torch.from_numpy, given)], torch.from_numpy(weights)
    kinds = {
        "plain": lambda combiner: runtime.sparse_bags(*given),
        "weighted": lambda combiner: runtime.sparse_bags(
            *given, weights, positive=combiner != "sum"
        ),
        "default": lambda combiner: runtime.sparse_bags(*given, default=3),
    }
    kinds["normed"] = lambda combiner: kinds["weighted"](combiner).distinct()
    found = {}
    for kind, bags_of in kinds.items():
        for combiner in COMBINERS:
            bags = bags_of(combiner)
            if kind == "normed":
                rows = torch.from_numpy(TABLE)[bags.ids]
                total = bags.pooled(runtime.clip_by_norm(rows, 0.75, [1]))
            else:
                tables = collection(is_weighted=bags.weights is not None)
                pooled = runtime.look_up_bags(tables, dict.fromkeys(tables.embedding_bags, bags))
                total = pooled["sum"]
                if "mean" in pooled:
                    torch.testing.assert_close(pooled["mean"], total / bags.sizes())
            divisor = {"sum": 1, "mean": bags.sizes(), "sqrtn": bags.norms()}[combiner]
            found[kind, combiner] = (total / divisor).detach().numpy()
    return found


@QUICK
@given(given=sparse_ids())
def test_bags_of_sparse_ids_are_tensorflows_rows(looked_up, given):
    expected, found = looked_up(*given), looked_up_here(*given)
    for key, rows in expected.items():
        np.testing.assert_allclose(found[key].reshape(rows.shape), rows, atol=1e-6, err_msg=key)


def test_ids_of_a_dense_feature_are_bags_of_its_rows():
    there = torch.tensor([[True, False], [False, False], [True, True]])
    bags = runtime.present_bags(torch.tensor([4, 5, 6]), there)
    assert bags.ids.tolist() == [4, 0, 5, 6] and bags.lengths().tolist() == [1, 1, 2]
    assert bags.empty.tolist() == [False, True, False]
    whole = runtime.present_bags(torch.tensor([[1, 2], [3, 4]]))
    assert whole.ids.tolist() == [1, 2, 3, 4] and whole.lengths().tolist() == [2, 2]


def test_weights_of_another_number_than_the_ids_are_refused():
    with pytest.raises(BadInput, match="2 ids has 1 weights"):
        runtime.sparse_bags(torch.zeros(2, 2), torch.tensor([1, 2]), (1, 2), torch.ones(1))


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
