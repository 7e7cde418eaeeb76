"""A partitioned table that is looked up by "mod" here and otherwise there."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import torch

import migrate
from migrate.model.training.build import build_training
from semisync.common.errors import BadInput
from tests.model.training.recorded import assert_losses

_FIRST, _OTHER = [0, 3, 7, 9], [1, 2, 5, 9]
_BATCH = {"first": torch.tensor(_FIRST), "other": torch.tensor(_OTHER)}


def _bag(table, ids):
    places = tf.stack([tf.range(tf.size(ids)), tf.zeros_like(ids)], 1)
    sparse = tf.SparseTensor(tf.cast(places, tf.int64), ids, [4, 1])
    return tf.nn.embedding_lookup_sparse(table, sparse, None, "div", combiner="sum")


_OTHER_RULES = {
    "div": lambda table, ids: tf.nn.embedding_lookup(table, ids, "div"),
    "bag": _bag,
    "gather": lambda table, ids: tf.gather(tf.convert_to_tensor(table), ids),
    "matmul": lambda table, ids: tf.matmul(tf.one_hot(ids, 10), tf.convert_to_tensor(table)),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("rule", _OTHER_RULES)
def test_each_look_up_has_its_own_rows_or_the_table_is_refused(rule, resource, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        first, other = (tf.placeholder(tf.int32, [4], name) for name in ("first", "other"))
        with tf.variable_scope("net", use_resource=resource):
            table = tf.get_variable("t", [10, 2], partitioner=tf.fixed_size_partitioner(3))
        rows = tf.nn.embedding_lookup(table, first, "mod") * _OTHER_RULES[rule](table, other)
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(rows, 1, name="y") - 1.0), name="loss")
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver().save(session, str(tmp_path / "model"))
        fed = {first: _FIRST, other: _OTHER}
        expected = session.run("y:0", fed)
        losses = [session.run([loss, train], fed)[0] for _ in range(3)]
    np.testing.assert_allclose(migrate.load_model(prefix, output="y")(_BATCH).detach(), expected)
    assert_losses(build_training(prefix), _BATCH, losses)
    both = r"table 'net/t' is looked up by two rules, by 'mod' in 'embedding_lookup/\S*' and by "
    with pytest.raises(BadInput, match=both + ".* in '.*'; a converted table has"):
        migrate.plan(migrate.open_checkpoint(prefix))
