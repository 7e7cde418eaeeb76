"""What of a rewritten MetaGraph every batch runs, what the chief does, and what the report says."""

import numpy as np
import pytest

import graph_rewrite
from semisync.common.compat import tf
from tests.rewrite.exported import export, rewrite, train
from tests.wrap.one_process import STEPS, M, assert_close, on_unions

pytestmark = pytest.mark.one_tensorflow

both = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


def variable(name, value, resource, **options):
    return tf.get_variable(name, initializer=value, use_resource=resource, **options)


def written(exported, names):
    """The names of the variables that ops write."""
    nodes = {node.name: node for node in exported.meta.graph_def.node}
    return {nodes[name].input[0] for name in names}


@both
@pytest.mark.few(1)
def test_a_constraint_on_a_variable_is_kept_once_a_global_step(resource):
    """A resource is read again after its training op, to be clipped."""

    def build(model, wrap):
        def clip(value):
            return tf.clip_by_value(value, -0.61, 0.61)

        clipped = variable("clipped", [0.6, -0.6], resource, constraint=clip)
        loss = model.loss() - tf.reduce_mean(model.targets) * tf.reduce_sum(clipped)
        return wrap(tf.train.GradientDescentOptimizer(0.1)).minimize(loss, global_step=model.step)

    before, after, _ = train(rewrite(export(build, resource), paced=True))
    assert_close(after, on_unions(build, before, resource))
    assert np.max(np.abs(after["clipped"])) == np.float32(0.61)


def accumulating(resource):
    """A job in which each batch adds to a sum of gradients, trains with it, and empties it."""

    def build(model, wrap):
        loss = model.loss()
        (kernel,) = model.variables("kernel")
        total = variable("total", tf.zeros(kernel.shape), resource, trainable=False)
        added = tf.assign_add(total, tf.gradients(loss, kernel)[0])
        with tf.control_dependencies([added]):
            gradient = total.read_value() * 1.0
        optimizer = wrap(tf.train.AdagradOptimizer(0.1))
        trained = optimizer.apply_gradients([(gradient, kernel)], global_step=model.step)
        with tf.control_dependencies([trained]):
            return tf.group(tf.assign(total, tf.zeros(kernel.shape)))

    return build


@pytest.mark.long
@both
@pytest.mark.few(1)
def test_a_sum_of_gradients_is_reset_by_the_batch_that_made_it(resource):
    build = accumulating(resource)
    exported = export(build, resource)
    meta, report = graph_rewrite.semi_synchronize(exported.meta, M, paced=True)
    assert "total" not in written(exported, report.chiefs)
    before, after, _ = train(exported._replace(meta=meta))
    assert_close(after, on_unions(build, before, resource))
    assert np.any(after["kernel"] != before["kernel"])


@both
@pytest.mark.long
def test_a_network_that_starts_at_random_and_follows_the_trained_one(resource):
    """Such as the target of Q-learning, or a teacher: the gradients are made of it."""

    def build(model, wrap):
        loss = model.loss()
        (kernel,) = model.variables("kernel")
        start = tf.random_normal(kernel.shape)
        target = variable("target", start, resource, trainable=False)
        loss += tf.reduce_mean(model.targets) * tf.reduce_sum(tf.square(target - kernel))
        trained = wrap(tf.train.AdagradOptimizer(0.1)).minimize(loss, global_step=model.step)
        with tf.control_dependencies([trained]):
            return tf.group(
                tf.assign(target, 0.9 * target.read_value() + 0.1 * kernel.read_value())
            )

    before, after, _ = train(rewrite(export(build, resource), paced=True))
    assert_close(after, on_unions(build, before, resource))
    assert np.all(after["target"] != before["target"])


def counting(resource):
    """A job with a counter before the training, one beside it, and one of this process alone."""

    def build(model, wrap):
        before = variable("before", 0.0, resource, trainable=False)
        beside = variable("beside", 0.0, resource, trainable=False)
        local = [tf.GraphKeys.LOCAL_VARIABLES]
        own = variable("own", 0.0, resource, trainable=False, collections=local)
        sum_of_targets = tf.reduce_sum(model.targets)
        with tf.control_dependencies([tf.assign_add(v, sum_of_targets) for v in (before, own)]):
            applied = wrap(tf.train.AdamOptimizer(0.1)).minimize(
                model.loss(), global_step=model.step
            )
        return tf.group(applied, tf.assign_add(beside, 1.0))

    return build


def warned(exported, **options):
    _, report = graph_rewrite.semi_synchronize(exported.meta, M, **options)
    return [sentence for sentence in report.warnings if "every batch changes" in sentence]


@both
@pytest.mark.long
def test_the_report_names_what_every_batch_changes(resource):
    exported = export(counting(resource), resource)
    assert warned(exported) == [
        "every batch changes before at once, even one that turns out too stale: --share has them "
        "change with the batches that count"
    ]
    assert warned(exported, shared_updates=[("^before", "sum")]) == []
    assert warned(exported, policy=[("table", "async")]) == warned(exported)
    assert warned(exported, policy=[("before", "async")]) == []


@both
def test_a_sum_of_gradients_is_not_named_as_one_to_share(resource):
    """What is shared is added once a global step: each batch would train with an empty sum."""
    (sentence,) = warned(export(accumulating(resource), resource))
    assert sentence.startswith("every batch changes total at once")
    assert sentence.endswith("and its gradients are made of them")


def test_the_report_says_what_cannot_be_shared():
    def build(model, wrap):
        seen = variable("seen", [0.0, 0.0], True, trainable=False)
        rows = tf.cast(tf.shape(model.targets)[:1] % 2, tf.int64)
        with tf.control_dependencies([tf.scatter_update(seen, rows, [1.0])]):
            return wrap(tf.train.AdagradOptimizer(0.1)).minimize(
                model.loss(), global_step=model.step
            )

    (sentence,) = warned(export(build, True))
    assert sentence.startswith("every batch changes seen at once")
    assert sentence.endswith("in a way that --share does not know")


@both
@pytest.mark.few(1)
def test_the_report_names_all_that_the_chief_writes(resource):
    """Also what a group of it waits for beside the training."""
    exported = export(counting(resource), resource)
    meta, report = graph_rewrite.semi_synchronize(exported.meta, M, paced=True)
    assert "beside" in written(exported, report.chiefs)
    _, after, _ = train(exported._replace(meta=meta))
    assert after["beside"] == STEPS


@pytest.mark.few(1)
def test_the_report_lists_no_constants_among_what_trains():
    """One that was made behind the training waits for it, and trains nothing."""

    def build(model, wrap):
        seen = variable("seen", 0.0, True, trainable=False)
        optimizer = wrap(tf.train.AdagradOptimizer(0.1))
        applied = optimizer.minimize(model.loss(), global_step=model.step)
        with tf.control_dependencies([applied]):
            first = tf.reduce_sum(model.targets * tf.constant(2.0, name="two"))
            return tf.group(tf.assign_add(seen, first))

    exported = export(build, True)
    _, report = graph_rewrite.semi_synchronize(exported.meta, M)
    assert exported.train in report.stand_ins and "two" not in report.stand_ins
