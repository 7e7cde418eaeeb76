"""Which variable a rewritten graph counts its global steps with, and who counts."""

import numpy as np
import pytest

import graph_rewrite
import semisync
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError
from tests.rewrite.exported import export, rewrite, train
from tests.wrap.one_process import PATIENCE, STEPS, M, assert_close, on_unions

pytestmark = pytest.mark.one_tensorflow

RATE = 0.1


def uncounted(model, wrap):
    """The graph has a global step, which its training does not count."""
    return wrap(tf.train.AdagradOptimizer(RATE)).minimize(model.loss())


def counted(model, wrap):
    return wrap(tf.train.AdagradOptimizer(RATE)).minimize(model.loss(), global_step=model.step)


def own_step(count, names=("batches",), resource=False):
    """The MetaGraphDef of a job without a global step.

    Args:
        count: function (loss, [variable]) -> train op.
        names: of its variables of one whole number.
    """
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=resource):
        steps = [tf.Variable(0, name=name, trainable=False) for name in names]
        loss = tf.square(tf.get_variable("v", initializer=1.0) - tf.placeholder(tf.float32, []))
        count(loss, steps)
        saver = tf.train.Saver()
        return tf.train.export_meta_graph(saver_def=saver.as_saver_def())


def minimize(loss, steps):
    optimizer = tf.train.GradientDescentOptimizer(RATE)
    trained = optimizer.minimize(loss, steps[0] if steps else None)
    with tf.control_dependencies([trained]):
        return tf.group(*[tf.assign_add(step, 1) for step in steps[1:]])


def step_of(meta):
    """The name of the variable that a session's hooks find."""
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        return tf.train.get_global_step().op.name


@pytest.mark.long
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_the_only_number_that_training_counts_is_the_global_step(resource):
    meta, report = graph_rewrite.semi_synchronize(own_step(minimize, resource=resource), M)
    assert step_of(meta) == "batches"
    (said,) = [change for change in report.changes if "global step" in change]
    assert "the global step is batches, since training counts it" in said
    assert "--global-step" in said


def test_of_several_numbers_that_training_counts_one_must_be_named():
    meta = own_step(minimize, ["one", "two"])
    with pytest.raises(BadInput, match="training counts one and two: name one .* --global-step"):
        graph_rewrite.semi_synchronize(meta, M)
    out, report = graph_rewrite.semi_synchronize(meta, M, global_step="two")
    assert step_of(out) == "two"
    assert not any("global step" in change for change in report.changes)


@pytest.mark.parametrize("name", ["v", "nowhere", "Assign"])
def test_only_a_whole_number_can_be_named(name):
    with pytest.raises(UsageError, match="one whole number, which '{}' is not".format(name)):
        graph_rewrite.semi_synchronize(own_step(minimize), M, global_step=name)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.few(1)
def test_the_chief_counts_a_global_step_that_training_does_not_count(resource):
    exported = export(uncounted, resource)
    meta, report = graph_rewrite.semi_synchronize(exported.meta, M, paced=True)
    assert "the chief counts the global step global_step, now" in report.changes
    before, after, _ = train(exported._replace(meta=meta))
    assert after["global_step"] == STEPS
    assert_close(after, on_unions(counted, before, resource))


def test_a_global_step_that_is_counted_beside_training_is_warned_of():
    def build(model, wrap):
        train_op = uncounted(model, wrap)
        tf.assign_add(model.step, 1)
        return train_op

    _, report = graph_rewrite.semi_synchronize(export(build).meta, M, ps=1)
    (warning,) = report.warnings
    assert "counts the global step global_step too, which the chief counts now" in warning


def test_a_global_step_that_every_batch_counts_before_it_trains_is_refused():
    def build(model, wrap):
        with tf.control_dependencies([tf.assign_add(model.step, 1)]):
            loss = tf.identity(model.loss())
        return wrap(tf.train.AdagradOptimizer(RATE)).minimize(loss)

    with pytest.raises(BadInput, match="every batch counts the global step global_step by "):
        rewrite(export(build))


def session_of(meta, folder, run):
    """What `run` gives of the session of a rewritten job's chief, and the global step after it."""
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta)
        hook = semisync.restore_hook(True, patience=PATIENCE)
        v, step = graph.get_tensor_by_name("v:0"), tf.train.get_global_step()
        seen = Values({"v": tf.global_variables()[0], "step": step})
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=[hook, seen], save_summaries_steps=None
        ) as session:
            run(session)
    assert v.op.name == "v"
    return seen.before, seen.after


class Values(tf.train.SessionRunHook):
    """The values of some variables at the beginning and at the end."""

    def __init__(self, variables):
        self._variables = variables

    def after_create_session(self, session, coord):
        self.before = session.run(self._variables)

    def end(self, session):
        self.after = session.run(self._variables)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.long
def test_a_job_without_a_global_step_gets_one_that_counts_from_0_in_every_run(resource, tmp_path):
    meta = own_step(minimize, [], resource)
    folder = str(tmp_path)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(meta)
        session.run(tf.global_variables_initializer())
        tf.global_variables()[0].load(5.0, session)
        saver.save(session, folder + "/model.ckpt", 7)  # as the old job did, without a step
    out, report = graph_rewrite.semi_synchronize(meta, M, paced=True)
    assert any(
        "the global step global_step is new: the chief counts it, from 0 in every run" in change
        for change in report.changes
    )

    def run(session):
        for _ in range(M * STEPS):
            session.run("GradientDescent", {"Placeholder:0": 0.0})

    before, after = session_of(out, folder, run)
    assert before == {"v": 5.0, "step": 0}
    assert after["step"] == STEPS
    np.testing.assert_allclose(after["v"], 5.0 * (1 - 2 * RATE) ** STEPS, rtol=1e-5)
    again, _ = session_of(out, folder, run)
    assert again == {"v": after["v"], "step": 0}


def test_a_new_global_step_takes_no_name_that_the_graph_has():
    with tf.Graph().as_default():
        tf.constant(0, name="global_step")
        loss = tf.square(tf.get_variable("v", initializer=1.0) - tf.placeholder(tf.float32, []))
        tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        meta = tf.train.export_meta_graph()
    out, report = graph_rewrite.semi_synchronize(meta, M)
    assert step_of(out) == "global_step_1"
    assert any("which no earlier checkpoint has" in change for change in report.changes)


def test_a_graph_that_was_exported_by_a_session_initialises_its_new_global_step():
    with tf.Graph().as_default():
        loss = tf.square(tf.get_variable("v", initializer=1.0) - tf.placeholder(tf.float32, []))
        tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        tf.train.Scaffold().finalize()
        meta = tf.train.export_meta_graph()
    out, _ = graph_rewrite.semi_synchronize(meta, M)
    before, _ = session_of(out, None, lambda session: None)
    assert before == {"v": 1.0, "step": 0}
