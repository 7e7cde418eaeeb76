"""Updates of variables that are not a statistic of a BatchNorm: find_updates."""

import pytest

from graph_rewrite import find_updates
from semisync.common.compat import tf
from tests.rewrite import zoo


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_counters_averages_and_assignments(resource):
    with zoo.graph(resource=resource) as graph:
        step = tf.train.get_or_create_global_step()
        kernel, features, limit = (zoo.variable(n) for n in ("kernel", "features", "limit"))
        tf.assign_add(step, 1)
        tf.train.ExponentialMovingAverage(0.99).apply([kernel])
        tf.assign_sub(features, (features - tf.reduce_mean(zoo.rows(), 0)) * 0.1)
        tf.assign(limit, tf.ones([4]))
        tf.assign_sub(kernel, tf.ones([4]))
        tf.scatter_add(kernel, [1], [2.0])
        saver = tf.train.Saver()
        assert saver
    found = {(u.variable, u.kind, u.rate) for u in find_updates(graph)}
    assert found == {
        ("global_step", "add", None),
        ("kernel/ExponentialMovingAverage", "average", 0.01),
        ("features", "average", 0.1),
        ("limit", "assign", None),
        ("kernel", "subtract", None),
        ("kernel", "scatter", None),
    }


def test_the_source_of_an_average_is_what_the_variable_moves_towards():
    with zoo.graph() as graph:
        features = zoo.variable("features")
        mean = tf.reduce_mean(zoo.rows(), 0, name="mean")
        moved = tf.assign_sub(features, (features - mean) * 0.1, name="moved")
        tf.group(moved, name="train")
    (update,) = find_updates(graph)
    assert (update.source, update.op, update.dependents) == ("mean", "moved", ("train",))
    assert update.in_branch is False


@pytest.mark.parametrize("control_flow", [1, 2])
def test_an_update_in_a_branch_is_told(control_flow):
    with zoo.graph(control_flow) as graph:
        step = tf.train.get_or_create_global_step()
        tf.cond(zoo.predicate(), lambda: tf.assign_add(step, 1), lambda: step + 0)
    (update,) = find_updates(graph)
    assert (update.variable, update.kind, update.in_branch) == ("global_step", "add", True)


def test_an_optimizers_own_assignments_are_told_and_its_apply_ops_are_not():
    with zoo.graph() as graph:
        kernel = zoo.variable("kernel")
        step = tf.train.get_or_create_global_step()
        tf.train.AdamOptimizer().minimize(tf.reduce_sum(kernel), step)
    assert sorted(u.variable for u in find_updates(graph)) == [
        "beta1_power",
        "beta2_power",
        "global_step",
    ]
