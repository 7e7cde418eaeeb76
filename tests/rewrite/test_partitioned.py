"""Moving statistics that a partitioner has cut in parts, such as that of a scope with tables."""

import numpy as np
import pytest

import graph_rewrite
import semisync
from graph_rewrite import find_batch_norms
from semisync.common.compat import tf
from tests.rewrite import zoo
from tests.wrap.one_process import PATIENCE

pytestmark = pytest.mark.one_tensorflow

WIDTH, RATE = 5, 0.1


def whole(moving, now):
    """The variable's own methods: they split what is computed for the whole."""
    return moving.assign(tf.multiply(moving, 1 - RATE) + now * RATE)


def less(moving, now):
    return moving.assign_sub((moving - now) * RATE)


def by_part(moving, now):
    sizes = [part.shape.num_elements() for part in moving]
    return [
        tf.assign_sub(part, (part - piece) * RATE)
        for part, piece in zip(list(moving), tf.split(now, sizes))
    ]


def first_part(moving, now):
    part = list(moving)[0]
    return tf.assign_sub(part, (part - tf.split(now, [3, 2])[0]) * RATE)


def build(x, update, parts):
    """The updates of a BatchNorm by hand whose statistics have so many parts."""
    mean, variance = tf.nn.moments(x, [0])
    with tf.variable_scope("bn", partitioner=tf.fixed_size_partitioner(parts)):
        moving = [
            tf.get_variable(name, [WIDTH], initializer=tf.constant_initializer(start))
            for name, start in (("moving_mean", 0.0), ("moving_variance", 1.0))
        ]
    for variable in sum(map(list, moving), []):
        tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES).remove(variable)
    updates = [update(*pair) for pair in zip(moving, (mean, variance))]
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3), updates


def trained(update, parts, batches, resource, rewrite):
    """Every part after these batches; rewritten they are one global batch."""
    with zoo.graph(resource=resource):
        x = zoo.rows(WIDTH)
        y, updates = build(x, update, parts)
        loss = tf.reduce_mean(tf.square(y * tf.get_variable("w", initializer=1.0)))
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies(tf.nest.flatten(updates)):
            train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        meta = tf.train.export_meta_graph()
    if rewrite:
        options = {"batch_norm": "aggregate-once", "paced": True}
        meta, _ = graph_rewrite.semi_synchronize(meta, len(batches), **options)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        hooks = [semisync.restore_hook(True, patience=PATIENCE)] if rewrite else []
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            for batch in batches:
                session.run(train_op.name, {x.name: batch})
            return session.run([v for v in tf.global_variables() if "moving" in v.name])


@pytest.mark.parametrize(
    "update, parts, resource", [(whole, 2, False), (less, 3, True), (by_part, 2, False)]
)
@pytest.mark.few(1)
def test_the_parts_share_the_fate_of_their_batch(update, parts, resource):
    random = np.random.RandomState(0)
    batches = [random.randn(size, WIDTH) * size + size for size in (4, 7, 3)]
    expected = trained(update, parts, [np.concatenate(batches)], resource, rewrite=False)
    found = trained(update, parts, batches, resource, rewrite=True)
    assert len(found) == 2 * parts
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("update", [whole, less, by_part])
@pytest.mark.parametrize("parts", [1, 3])
def test_it_is_one_batch_norm(update, parts):
    with zoo.graph() as graph:
        build(zoo.rows(WIDTH), update, parts)
    (bn,) = find_batch_norms(graph)
    assert bn.moving_mean == "bn/moving_mean" + ("/part_0" if parts == 1 else "")
    assert (bn.momentum, bn.mean, len(bn.updates)) == (0.9, "moments/Squeeze", 2 * parts)
    assert bn.left_alone == bn.finding == ""


def test_its_parts_may_be_read_after_another_op():
    def after(moving, now):
        parts, axis = [part.read_value() for part in moving], tf.constant(0)
        with tf.control_dependencies([tf.no_op()]):
            joined = tf.concat(parts, axis)
        assert len(joined.op.control_inputs) == 1
        return moving.assign(joined * (1 - RATE) + now * RATE)

    with zoo.graph() as graph:
        build(zoo.rows(WIDTH), after, 2)
    (bn,) = find_batch_norms(graph)
    assert (bn.moving_mean, len(bn.updates)) == ("bn/moving_mean", 4)
    assert bn.left_alone == bn.finding == ""


@pytest.mark.parametrize(
    "update, says",
    [
        (first_part, "only 'bn/moving_mean/part_0' is updated of"),
        (lambda moving, now: less(moving, now) and less(moving, now), "its mean is kept 4 times"),
    ],
)
def test_parts_that_do_not_move_once_each_are_left_alone(update, says):
    with zoo.graph() as graph:
        build(zoo.rows(WIDTH), update, 2)
    (bn,) = find_batch_norms(graph)
    assert bn.left_alone.startswith(says)


def test_parts_that_take_each_others_statistics_are_no_batch_norm():
    def crossed(moving, now):
        pairs = zip(list(moving)[::-1], tf.split(now, [2, 3]))
        return [tf.assign_sub(part, (part - piece) * RATE) for part, piece in pairs]

    with zoo.graph() as graph:
        build(zoo.rows(WIDTH), crossed, 2)
    assert [bn.updates for bn in find_batch_norms(graph)] == [[]]
