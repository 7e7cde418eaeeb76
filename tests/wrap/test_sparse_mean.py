"""What the rows of one id become, on explicit IndexedSlices: "batches", "touches" and "sum".

SGD with a rate of 1 shows the aggregated gradient in the variable.
"""

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE, Remember

ROWS, WIDTH = 6, 2
# Of each batch the ids: repeated inside it and over the batches, and none at all.
BATCHES = [[[4, 1, 4], [4], [0, 1]], [[2, 2, 2, 5], [], [5, 2]]]
M = 3


def values(ids, batch):
    """A row for each id, and the batch's dense gradient."""
    rng = np.random.RandomState(batch)
    return rng.randint(1, 9, (len(ids), WIDTH)), rng.randint(1, 9, [WIDTH])


def train(sparse_mean, resource, steps):
    """Returns the table and the dense variable, both begun at zero."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        tf.get_variable_scope().set_use_resource(resource)
        table = tf.get_variable("table", initializer=np.zeros([ROWS, WIDTH], np.float32))
        kernel = tf.get_variable("kernel", initializer=np.zeros([WIDTH], np.float32))
        ids = tf.placeholder(tf.int32, [None])
        rows = tf.placeholder(tf.float32, [None, WIDTH])
        gradient = tf.placeholder(tf.float32, [WIDTH])
        optimizer = semisync.GlobalBatchOptimizer(
            tf.train.GradientDescentOptimizer(1.0), M, sparse_mean=sparse_mean, paced=True
        )
        op = optimizer.apply_gradients(
            [(tf.IndexedSlices(rows, ids), table), (gradient, kernel)], global_step=step
        )
        memory = Remember()
        hooks = [optimizer.make_session_run_hook(True, patience=PATIENCE), memory]
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            for batch, batch_ids in enumerate(sum(steps, [])):
                row, dense = values(batch_ids, batch)
                session.run(op, {ids: batch_ids, rows: row, gradient: dense})
    return memory.after["table"], memory.after["kernel"]


def expected(sparse_mean, steps):
    """By numpy, in float64."""
    table, kernel, batch = np.zeros([ROWS, WIDTH]), np.zeros(WIDTH), 0
    for batches in steps:
        total, touches = np.zeros([ROWS, WIDTH]), np.zeros([ROWS, 1])
        for ids in batches:
            row, dense = values(ids, batch)
            np.add.at(total, np.array(ids, int), row)
            touches[sorted(set(ids))] += 1
            kernel -= dense / len(batches)
            batch += 1
        divisor = {"batches": len(batches), "touches": np.maximum(touches, 1), "sum": 1}
        table -= total / divisor[sparse_mean]
    return table, kernel


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("sparse_mean", ["batches", "touches", "sum"])
@pytest.mark.few(1)
def test_an_id_gets_its_sum_divided_as_asked_and_dense_the_mean(sparse_mean, resource):
    table, kernel = train(sparse_mean, resource, BATCHES)
    wanted, dense = expected(sparse_mean, BATCHES)
    np.testing.assert_allclose(table, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(kernel, dense, rtol=1e-6)
    assert np.any(table[4] != 0)
    assert np.all(table[3] == 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("sparse_mean", ["batches", "touches", "sum"])
def test_a_last_smaller_global_batch_is_divided_by_its_own_number(sparse_mean):
    steps = [BATCHES[0], BATCHES[0][:2]]
    table, kernel = train(sparse_mean, False, steps)
    wanted, dense = expected(sparse_mean, steps)
    np.testing.assert_allclose(table, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(kernel, dense, rtol=1e-6)
