"""BatchNorm's moving statistics share the fate of their batch (invariant 9).

The reference is TensorFlow's own BatchNorm, trained on the union of the batches.
"""

import contextlib

import numpy as np
import pytest
from tensorflow.python.training import moving_averages

import graph_rewrite
import semisync
from semisync.common.compat import tf
from tests.rewrite.zoo import layers
from tests.wrap.one_process import PATIENCE, late

MOMENTUM = 0.9
WIDTH = 3


def batches(*sizes):
    """Batches of these sizes, each of another mean and spread, far from zero."""
    random = np.random.RandomState(0)
    return [
        (random.randn(size, WIDTH) * (1 + number) + 100 * number).astype(np.float32)
        for number, size in enumerate(sizes)
    ]


def layer(fused):
    """tf.layers' BatchNorm over the last axis, of 2 or, fused, of 4 dimensions."""

    def build(x, training):
        x = tf.reshape(x, [-1, 1, 1, WIDTH]) if fused else x
        y = layers.batch_normalization(x, momentum=MOMENTUM, training=training, name="bn")
        return tf.reshape(y, [-1, WIDTH])

    return build


def by_hand(x, training):
    """As old code does it: moments, tf.assign, and the updates before the train op."""
    mean, variance = tf.nn.moments(x, [0])
    for name, start, now in (("moving_mean", 0.0, mean), ("moving_variance", 1.0, variance)):
        moving = tf.get_variable(
            "bn/" + name, [WIDTH], initializer=tf.constant_initializer(start), trainable=False
        )
        update = tf.assign(moving, moving * MOMENTUM + now * (1 - MOMENTUM))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    scale = tf.get_variable("bn/gamma", initializer=tf.ones([WIDTH]))
    return tf.nn.batch_normalization(x, mean, variance, None, scale, 1e-3)


def zero_debiased(x, training):
    """By hand, with TensorFlow's averages that are corrected for their start at zero."""
    statistics = tf.nn.moments(x, [0])
    for name, now in zip(("moving_mean", "moving_variance"), statistics):
        moving = tf.get_variable("bn/" + name, [WIDTH], trainable=False)
        update = moving_averages.assign_moving_average(moving, now, MOMENTUM)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    scale = tf.get_variable("bn/gamma", initializer=tf.ones([WIDTH]))
    return tf.nn.batch_normalization(x, *statistics, None, scale, 1e-3)


PLAIN = {"unfused": layer(False), "fused": layer(True), "by hand": by_hand}
KINDS = {**PLAIN, "zero-debiased": zero_debiased}


def on_two_devices(x, training):
    """By hand, the mean on one device and the variance on another, as two PS have them in turn."""

    def place(op):
        return "/cpu:1" if op.name.startswith("bn/moving_variance") else "/cpu:0"

    with tf.device(place):
        return by_hand(x, training)


class Job:
    """A small job: BatchNorm, then a dense layer.

    Args:
        build: (x, training) -> normalized.
        wrap: optimizer -> optimizer.
        updates: how the job runs UPDATE_OPS: "before" its train op, in one "group" with it, or "by
            name".
    """

    def __init__(self, build, wrap, updates="before", resource=False, training=True):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.get_variable_scope().set_use_resource(resource)
            self.x = tf.placeholder(tf.float32, [None, WIDTH])
            self.training = tf.placeholder(tf.bool, []) if training is None else training
            step = tf.train.get_or_create_global_step()
            kernel = tf.get_variable("kernel", [WIDTH, 1])
            loss = tf.reduce_mean(tf.square(tf.matmul(build(self.x, self.training), kernel)))
            self.optimizer = wrap(tf.train.GradientDescentOptimizer(0.01))
            operations = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            before = operations if updates == "before" else []
            with tf.control_dependencies(before):
                self.train_op = self.optimizer.minimize(loss, global_step=step)
            if updates == "group":
                self.train_op = tf.group(self.train_op, *operations)
            self.moving = [v for v in tf.global_variables() if v.op.name.startswith("bn/moving_")]

    def feed(self, x, training=True):
        feed = {self.x: x}
        if isinstance(self.training, tf.Tensor):
            feed[self.training] = training
        return feed

    @contextlib.contextmanager
    def session(self):
        with self.graph.as_default():
            hook = self.optimizer.make_session_run_hook(True, patience=PATIENCE)
            config = tf.ConfigProto(device_count={"CPU": 2})
            with tf.train.MonitoredTrainingSession(hooks=[hook], config=config) as session:
                yield session


def plain(optimizer):
    return optimizer


def wrapped(batches_per_step, **options):
    return lambda optimizer: semisync.GlobalBatchOptimizer(
        optimizer, batches_per_step, paced=True, **options
    )


def trained(job, feeds):
    """The moving mean and variance after these batches."""
    with job.session() as session:
        for feed in feeds:
            session.run(job.train_op, feed)
        return session.run(job.moving)


def trained_by_tensorflow(build, feeds, **options):
    job = Job(build, plain, **options)
    with job.graph.as_default(), tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for feed in feeds(job):
            session.run(job.train_op, feed)
        return session.run(job.moving)


@pytest.mark.parametrize(
    "kind, updates, resource",
    [
        ("unfused", "before", False),
        ("unfused", "group", True),
        ("fused", "before", True),
        ("fused", "group", False),
        ("by hand", "before", False),
        ("by hand", "group", True),
        ("zero-debiased", "before", True),
        ("zero-debiased", "group", False),
    ],
)
@pytest.mark.few(1)
def test_zero_staleness_gives_the_statistics_of_one_big_batch(kind, updates, resource):
    parts = batches(4, 7, 2, 5, 5, 5)
    job = Job(KINDS[kind], wrapped(3, batch_norm="aggregate-once"), updates, resource)
    found = trained(job, [job.feed(part) for part in parts])
    unions = [np.concatenate(parts[:3]), np.concatenate(parts[3:])]
    expected = trained_by_tensorflow(
        KINDS[kind], lambda job: [job.feed(union) for union in unions], resource=resource
    )
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.long
def test_a_parameter_server_may_keep_means_alone_and_another_variances():
    parts = batches(4, 7, 2)
    job = Job(on_two_devices, wrapped(3, batch_norm="aggregate-once"))
    assert [variable.device[-5:].lower() for variable in job.moving] == ["cpu:0", "cpu:1"]
    found = trained(job, [job.feed(part) for part in parts])
    expected = trained_by_tensorflow(by_hand, lambda job: [job.feed(np.concatenate(parts))])
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.few(1)
def test_by_default_they_decay_as_with_m_local_updates(kind):
    parts = batches(6, 6, 6)
    job = Job(KINDS[kind], wrapped(3))
    mean, variance = trained(job, [job.feed(part) for part in parts])
    union = np.concatenate(parts).astype(np.float64)
    keep = MOMENTUM**3
    correction = len(union) / (len(union) - 1) if kind == "fused" else 1
    np.testing.assert_allclose(mean, union.mean(0) * (1 - keep), rtol=1e-6)
    expected = keep + union.var(0) * correction * (1 - keep)
    np.testing.assert_allclose(variance, expected, rtol=1e-6)


@pytest.mark.long
@pytest.mark.few(1)
def test_an_average_that_is_corrected_for_its_start_takes_the_steps_of_m_local_updates():
    parts = batches(6, 6, 6, 4, 4, 4)
    job = Job(zero_debiased, wrapped(3))
    with job.session() as session:
        before = session.run(job.moving)
        for part in parts:
            session.run(job.train_op, job.feed(part))
        found = dict(zip([v.op.name for v in job.moving], session.run(job.moving)))
    unions = [np.concatenate(parts[:3]), np.concatenate(parts[3:])]
    keep = MOMENTUM**3
    for name, statistic in (("bn/moving_mean", np.mean), ("bn/moving_variance", np.var)):
        first, second = (statistic(union.astype(np.float64), 0) for union in unions)
        biased = (first * keep + second) * (1 - keep)
        assert found[name + "/local_step"] == 6
        np.testing.assert_allclose(found[name + "/biased"], biased, rtol=1e-5)
        np.testing.assert_allclose(found[name], biased / (1 - MOMENTUM**6), rtol=1e-5)
    assert len(before) == len(found) == 6


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fused", "zero-debiased"])
def test_a_step_of_which_no_batch_counts_leaves_the_statistics_as_they_start(kind):
    (stale,) = batches(5)
    job = Job(KINDS[kind], wrapped(1, staleness=semisync.Threshold(0)))
    with job.graph.as_default():
        old_token = late(job.optimizer, -1)
    with job.session() as session:
        before = session.run(job.moving)
        session.run(old_token)
        session.run(job.train_op, job.feed(stale))
        for now, then in zip(session.run(job.moving), before):
            np.testing.assert_array_equal(now, then)


def test_async_leaves_each_batchs_update_alone():
    parts = batches(4, 4)
    job = Job(KINDS["unfused"], wrapped(2, batch_norm="async"))
    found = trained(job, [job.feed(part) for part in parts])
    expected = trained_by_tensorflow(
        KINDS["unfused"], lambda job: [job.feed(part) for part in parts]
    )
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_stale_batch_leaves_no_trace_in_the_statistics():
    x, stale = batches(5, 5)
    options = {"staleness": semisync.Threshold(0), "batch_norm": "aggregate-once"}
    job = Job(KINDS["fused"], wrapped(1, **options))
    with job.graph.as_default():
        old_token = late(job.optimizer, 0)
    with job.session() as session:
        session.run(job.train_op, job.feed(x))
        before = session.run(job.moving)
        session.run(old_token)
        session.run(job.train_op, job.feed(stale))
        for now, then in zip(session.run(job.moving), before):
            np.testing.assert_array_equal(now, then)


def test_a_decayed_batch_counts_by_its_weight_in_the_statistics_and_in_how_far_they_move():
    x, y = batches(4, 6)
    job = Job(KINDS["by hand"], wrapped(2, staleness=semisync.Inverse(), batch_norm="aggregate"))
    with job.graph.as_default():
        old_token = late(job.optimizer, 0)
    with job.session() as session:
        for _ in range(4):
            session.run(job.train_op, job.feed(y))
        before = session.run(job.moving)
        session.run(old_token)  # two steps late, it counts half
        session.run(job.train_op, job.feed(x))
        session.run(job.train_op, job.feed(y))
        found = session.run(job.moving)
    parts, portions = (x, y), (0.5 * 4 / 8, 6 / 8)
    mean = sum(part.mean(0) * portion for part, portion in zip(parts, portions))
    variance = sum(
        (part.var(0) + (part.mean(0) - mean) ** 2) * portion
        for part, portion in zip(parts, portions)
    )
    keep = MOMENTUM ** (0.5 + 1)
    for now, then, statistic in zip(found, before, (mean, variance)):
        np.testing.assert_allclose(now, then * keep + statistic * (1 - keep), rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fused", "unfused"])
@pytest.mark.few(1)
def test_a_batch_with_training_false_counts_for_nothing(kind):
    x, other = batches(5, 5)
    options = {"training": None, "resource": True}
    kept = {"batch_norm": "aggregate-once", "on_nonfinite": "keep"}  # what is fed is not finite
    job = Job(KINDS[kind], wrapped(2, **kept), **options)
    (batch_norm,) = graph_rewrite.find_batch_norms(job.graph)
    not_trained = job.feed(other, training=False)
    for unset in (batch_norm.mean, batch_norm.variance):  # as TensorFlow 1.15 may leave them
        not_trained[unset + ":0"] = np.full(WIDTH, np.nan)
    found = trained(job, [job.feed(x), not_trained])
    expected = trained_by_tensorflow(KINDS[kind], lambda job: [job.feed(x)], **options)
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize(
    "kind, resource",
    [
        ("unfused", True),
        ("fused", False),
        ("by hand", False),
        ("by hand", True),
        ("zero-debiased", False),
        ("zero-debiased", True),
    ],
)
@pytest.mark.long
def test_a_rewritten_meta_graph_shares_them_too(kind, resource):
    parts = batches(4, 7, 2, 5, 5, 5)
    job = Job(KINDS[kind], plain, resource=resource)
    with job.graph.as_default():
        meta = tf.train.export_meta_graph()
    meta, report = graph_rewrite.semi_synchronize(meta, 3, paced=True, batch_norm="aggregate-once")
    assert any("share the fate of their batch: bn" in sentence for sentence in report.changes)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        hook = semisync.restore_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            for part in parts:
                session.run(job.train_op.name, {job.x.name: part})
            found = session.run(
                [v for v in tf.global_variables() if v.op.name.startswith("bn/moving_")]
            )
    unions = [np.concatenate(parts[:3]), np.concatenate(parts[3:])]
    expected = trained_by_tensorflow(
        KINDS[kind], lambda job: [job.feed(union) for union in unions], resource=resource
    )
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
