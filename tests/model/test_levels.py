"""Look-ups of what was looked up, which are made on a second level."""

import fnmatch

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import torch

import migrate
from migrate.model.training.build import build_training
from tests.model.training.recorded import assert_losses

_IDS = [0, 3, 7, 9]


def _bags(table, ids):
    places = tf.stack([tf.range(tf.size(ids)), tf.zeros_like(ids)], 1)
    sparse = tf.SparseTensor(tf.cast(places, tf.int64), ids, [4, 1])
    return tf.nn.embedding_lookup_sparse(table, sparse, None, combiner="sum")


@pytest.mark.few(4)
@pytest.mark.parametrize("look_up", [tf.nn.embedding_lookup, _bags], ids=["rows", "bags"])
@pytest.mark.parametrize(
    ("tables", "attributes"),
    [
        # Where both levels take turns, each has one collection all the same.
        ("tuvw", ["*.t.weight", "*.v.weight", "*_1.*.u.weight", "*_1.*.w.weight"]),
        # A collection makes its look-ups at once: a table of both levels is in none.
        ("tttt", ["t"]),
        ("tuvu", ["*.t.weight", "*.v.weight", "*_1.*.u.weight"]),
        ("tuuv", ["*.t.weight", "*_1.*.v.weight", "u"]),
    ],
)
def test_each_level_has_its_rows_and_trains_them(look_up, tables, attributes, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int32, [4], "ids")
        of = {name: tf.get_variable(name, [10, 2]) for name in sorted(set(tables))}
        found = [look_up(of[tables[0]], ids)]
        following = tf.cast(tf.abs(found[0][:, 0]) * 1e3, tf.int32) % 10
        for table, given in zip(tables[1:], (following, ids, following)):
            found.append(look_up(of[table], given))
        output = tf.reduce_sum(tf.add_n(found), 1, name="y")
        loss = tf.reduce_mean(tf.square(output - 1.0), name="loss")
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver().save(session, str(tmp_path / "model"))
        expected = session.run(output, {ids: _IDS})
        losses = [session.run([loss, train], {ids: _IDS})[0] for _ in range(3)]
    batch = {"ids": torch.tensor(_IDS)}
    module = migrate.load_model(prefix, output="y")
    names = sorted(module.state_dict())
    assert len(names) == len(attributes)
    assert all(fnmatch.fnmatch(one, like) for one, like in zip(names, attributes)), names
    np.testing.assert_allclose(module(batch).detach(), expected, 1e-6)
    assert_losses(build_training(prefix), batch, losses)
