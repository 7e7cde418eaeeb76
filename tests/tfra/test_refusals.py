"""What cannot be right is refused in one sentence when the train op is built."""

import pytest
from tensorflow_recommenders_addons import dynamic_embedding as de

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.tfra.model import M

SGD = tf.train.GradientDescentOptimizer


def minimize(optimizer=None, ids=None, look_up=None, policy=None, **more):
    """Builds a train op over a table; fails as a job would."""
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None]) if ids is None else ids()
        table = de.get_variable("table", dim=2, **more)
        vectors = (look_up or de.embedding_lookup)(table, ids)
        inner = optimizer() if optimizer else de.DynamicEmbeddingOptimizer(SGD(0.1))
        wrapper = semisync.GlobalBatchOptimizer(inner, M, policy=policy)
        loss = tf.reduce_sum(tf.cast(vectors, tf.float32))
        wrapper.minimize(loss, global_step=tf.train.get_or_create_global_step())


@pytest.mark.parametrize(
    "given, says",
    [
        ({"optimizer": lambda: SGD(0.1)}, "wrap that with tfra.dynamic_embedding.Dynamic"),
        (
            {"optimizer": lambda: de.DynamicEmbeddingOptimizer(SGD(0.1), synchronous=True)},
            "aggregates by horovod already",
        ),
        (
            {"ids": lambda: tf.placeholder(tf.string, [None]), "key_dtype": tf.string},
            "has keys of type string",
        ),
        ({"value_dtype": tf.float64}, "has values of type float64"),
        (
            {"policy": [("1of2", "async")], "devices": ["/CPU:0"] * 2},
            'makes some shards of the table table "async", such as table/table_mht_1of2',
        ),
        (
            {"look_up": lambda t, ids: de.embedding_lookup(t, ids, max_norm=1.0)},
            "is looked up with max_norm",
        ),
    ],
)
def test_one_sentence_says_what_to_do(given, says):
    with pytest.raises(UsageError, match=says) as refusal:
        minimize(**given)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("devices", [["/job:worker/task:1/CPU:0"], None])
def test_a_table_that_every_worker_has_for_itself(devices):
    with tf.Graph().as_default(), tf.device("/job:worker/task:1"):
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
        table = de.get_variable("table", dim=2, devices=devices)
        loss = tf.reduce_sum(de.embedding_lookup(table, tf.placeholder(tf.int64, [None])))
        optimizer = semisync.GlobalBatchOptimizer(de.DynamicEmbeddingOptimizer(SGD(0.1)), M)
        with pytest.raises(UsageError, match="table/table_mht_1of1 is on '/.*', this worker's own"):
            optimizer.minimize(loss, global_step=step)


def test_a_job_without_any_of_these_is_taken():
    minimize()
