"""Invariant 1 by raw id: M batches equal one batch of their union, in values and slots."""

import pytest
from tensorflow_recommenders_addons import dynamic_embedding as de

import semisync
from semisync.common.compat import tf
from tests.tfra.model import (
    ALL,
    OPTIMIZERS,
    ROWS,
    M,
    assert_same,
    each_once,
    in_batches,
    on_unions,
    one_by_one,
    wrapped,
)


def as_given(table, ids):
    """With every repetition, of which TFRA alone keeps one."""
    return de.embedding_lookup(table, ids, name="given")


def in_two(table, ids):
    """Two look-ups of one table, of which TFRA alone keeps one's update of an id."""
    count = tf.size(ids) // 2
    first = de.embedding_lookup(table, ids[:count], name="first")
    rest = de.embedding_lookup_unique(table, ids[count:], name="rest")
    return tf.concat([first, rest], 0)


def _sparse(ids):
    count = tf.size(ids, out_type=tf.int64)
    places = tf.stack([tf.range(count), tf.zeros_like(ids)], 1)
    return tf.SparseTensor(places, ids, tf.stack([count, 1]))


def pooled(table, ids):
    vectors = de.embedding_lookup_sparse(table, _sparse(ids), None, name="pooled", combiner="mean")
    return tf.reshape(vectors, [-1, 2])


def safely_pooled(table, ids):
    vectors = de.safe_embedding_lookup_sparse(table, _sparse(ids), name="safe", combiner="sum")
    return tf.reshape(vectors, [-1, 2])


def in_a_matrix(table, ids):
    """Ids of rank 2, in one shard, as TFRA takes them."""
    vectors = de.embedding_lookup(table, tf.reshape(ids, [ROWS // 2, 2]), name="matrix")
    return tf.reshape(vectors, [-1, 2])


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.few(2)
def test_batches_equal_one_batch_of_their_union(name):
    make = OPTIMIZERS[name]
    assert_same(in_batches(make, as_given), on_unions(make))


@pytest.mark.parametrize("look_up", [in_two, pooled, safely_pooled])
@pytest.mark.few(2)
def test_whatever_look_ups_the_table_has(look_up):
    make = OPTIMIZERS["Adagrad"]
    assert_same(in_batches(make, look_up), on_unions(make))


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.few(1)
def test_whatever_shards_the_table_has(shards):
    make, devices = OPTIMIZERS["Adam"], ["/CPU:0"] * shards
    look_up = in_a_matrix if shards == 1 else as_given
    found = in_batches(make, look_up, devices=devices)
    assert_same(found, on_unions(make, devices=devices))


def test_inside_too():
    """GlobalBatchOptimizer given to DynamicEmbeddingOptimizer rather than the other way round."""

    def wrap(optimizer):
        return de.DynamicEmbeddingOptimizer(semisync.GlobalBatchOptimizer(optimizer, M, paced=True))

    make = OPTIMIZERS["Ftrl"]
    assert_same(in_batches(make, as_given, wrap=wrap), on_unions(make))


def test_rows_that_are_put_back_as_differences_too():
    """TFRA's bp_v2, by which a row's change is added rather than the row written."""

    def wrap(optimizer):
        tfras = de.DynamicEmbeddingOptimizer(optimizer, bp_v2=True)
        return semisync.GlobalBatchOptimizer(tfras, M, paced=True)

    make = OPTIMIZERS["Adagrad"]
    assert_same(in_batches(make, as_given, wrap=wrap, bp_v2=True), on_unions(make))


@pytest.mark.parametrize("name", ["Adagrad", "Momentum"])
@pytest.mark.parametrize("mode", ["async", "hybrid"])
@pytest.mark.few(2)
def test_at_once_it_is_what_tfra_does_with_each_batch(mode, name):
    """The table alone is trained: in the hybrid mode the kernel would wait for the global batch."""

    def wrap(optimizer):
        return semisync.wrap(de.DynamicEmbeddingOptimizer(optimizer), mode, M, 1)

    make = OPTIMIZERS[name]
    found = in_batches(make, each_once, wrap=wrap, table_alone=True)
    expected = one_by_one(make)
    assert found.pop("global_step") * M == expected.pop("global_step")
    assert_same(found, expected)


def test_a_table_waits_for_the_global_batch_beside_a_variable_that_does_not():
    def wrap(optimizer):
        return wrapped(optimizer, policy=[("kernel", "async")])

    make = OPTIMIZERS["Adagrad"]
    found, expected = (
        in_batches(make, as_given, wrap=each, batches=ALL[:M]) for each in (wrap, wrapped)
    )
    # In the first global step each batch but the first sees another kernel.
    assert sorted(found["table"]) == sorted(expected["table"])
    assert sorted(found) == sorted(expected)
