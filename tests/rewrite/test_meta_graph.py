"""A rewritten MetaGraph trains as a job whose optimizer was wrapped, and keeps what it had."""

import json

import numpy as np
import pytest

import graph_rewrite
import semisync
from semisync.common.compat import tf
from tests.rewrite.exported import export, rewrite, train
from tests.wrap.one_process import STEPS, M, assert_close, in_batches, on_unions

OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.1),
    "Adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "ProximalGradientDescent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
}


def builder(name):
    """The job of one optimizer."""

    def build(model, wrap):
        return wrap(OPTIMIZERS[name]()).minimize(model.loss(), global_step=model.step)

    return build


@pytest.mark.parametrize(
    "name, resource",
    [
        pytest.param(name, False, marks=[pytest.mark.one_tensorflow, pytest.mark.long])
        for name in sorted(OPTIMIZERS)
    ]
    + [("Adadelta", True), ("Adam", True), ("Momentum", True)],
)
@pytest.mark.few(1)
def test_m_batches_train_what_the_plain_job_trains_on_their_union(name, resource):
    build = builder(name)
    before, after, ledger = train(rewrite(export(build, resource), paced=True))
    assert_close(after, on_unions(build, before, resource))
    assert after["global_step"] == STEPS
    assert np.any(after["kernel"] != before["kernel"])
    assert ledger.fates["admitted"] == M * STEPS


@pytest.mark.long
def test_it_trains_what_the_wrapped_job_trains():
    build = builder("Adam")
    _, after, _ = train(rewrite(export(build), paced=True))
    assert_close(after, in_batches(build)[1])


@pytest.mark.long
@pytest.mark.one_tensorflow
def test_it_is_paced_at_the_same_global_steps_as_the_wrapped_job():
    build = builder("Adam")
    _, after, ledger = train(rewrite(export(build), paced=semisync.PacedSteps(first=100)))
    assert_close(after, in_batches(build)[1])
    assert set(ledger.staleness) == {0}


def nodes(meta):
    return {node.name: node.SerializeToString(deterministic=True) for node in meta.graph_def.node}


def test_what_nothing_asked_to_change_keeps_its_bytes_and_its_order():
    exported = export(builder("Adam"))
    old, new = nodes(exported.meta), nodes(rewrite(exported).meta)
    changed = {name for name in old if old[name] != new[name]}
    written = {"update_kernel/ApplyAdam", "update_bias", "update_table"}
    others = {name for name in changed if not any(part in name for part in written)}
    assert others == {"Adam"}
    names = [node.name for node in rewrite(exported).meta.graph_def.node]
    assert [name for name in names if name in old] == list(old)


def test_the_input_is_not_changed():
    exported = export(builder("Adagrad"))
    before = exported.meta.SerializeToString(deterministic=True)
    rewrite(exported)
    assert exported.meta.SerializeToString(deterministic=True) == before


def test_collections_saver_and_versions_are_kept():
    exported = export(builder("Adagrad"))
    old, new = exported.meta, rewrite(exported).meta
    assert new.saver_def == old.saver_def
    assert new.graph_def.versions == old.graph_def.versions
    for name, collection in old.collection_def.items():
        if name != tf.GraphKeys.SUMMARIES:
            assert new.collection_def[name] == collection, name
    added = set(new.collection_def) - set(old.collection_def)
    assert added == {tf.GraphKeys.SUMMARIES, "semisync", "semisync/plain_step"}


@pytest.mark.long
def test_update_ops_run_with_every_batch_and_averages_with_every_step():
    """As jobs with BatchNorm do, and those that evaluate averaged weights."""

    def build(model, wrap):
        loss = model.loss()
        seen = tf.get_variable("seen", initializer=0.0, trainable=False)
        mean = tf.reduce_mean(model.targets)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(seen, 0 * mean + 1))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            applied = wrap(OPTIMIZERS["Adagrad"]()).minimize(loss, global_step=model.step)
        averages = tf.train.ExponentialMovingAverage(0.5)
        with tf.control_dependencies([applied]):
            return averages.apply(model.variables("kernel"))

    before, after, _ = train(rewrite(export(build, resource=True), paced=True))
    assert after.pop("seen") == M * STEPS
    expected = on_unions(build, before, resource=True)
    assert expected.pop("seen") == STEPS
    assert_close(after, expected)


@pytest.mark.long
def test_what_is_fetched_for_the_updates_behind_the_training_still_trains():
    """The updates are the chief's from now on; what they waited for is not lost with them."""

    def build(model, wrap):
        applied = wrap(OPTIMIZERS["Adagrad"]()).minimize(model.loss(), global_step=model.step)
        x = tf.stack([model.targets, 2 * model.targets], 1)
        statistics = tf.nn.moments(x, [0])
        tf.nn.batch_normalization(x, *statistics, None, None, 1e-3)
        with tf.control_dependencies([applied]):
            moving = [tf.get_variable(n, [2], trainable=False) for n in ("mean", "variance")]
            moved = [tf.assign(v, v * 0.9 + s * 0.1) for v, s in zip(moving, statistics)]
            return tf.group(*moved, name="moved")

    exported = rewrite(export(build), paced=True, batch_norm="aggregate-once")
    before, after, _ = train(exported)
    assert_close(after, on_unions(build, before))


@pytest.mark.long
def test_a_counter_before_the_gradients_counts_every_batch_once():
    def build(model, wrap):
        seen = tf.get_variable("seen", initializer=0.0, trainable=False)
        with tf.control_dependencies([tf.assign_add(seen, 1.0)]):
            optimizer = wrap(tf.train.AdamOptimizer(0.1))
            return optimizer.minimize(model.loss() * 1.0, global_step=model.step)

    before, after, _ = train(rewrite(export(build, resource=True), paced=True))
    assert after.pop("seen") == M * STEPS
    expected = on_unions(build, before, resource=True)
    assert expected.pop("seen") == STEPS
    assert_close(after, expected)


@pytest.mark.long
def test_the_loss_behind_the_training_stays_each_workers():
    """As slim and Estimator do: the train op is the loss."""

    def build(model, wrap):
        loss = model.loss()
        applied = wrap(OPTIMIZERS["Adagrad"]()).minimize(loss, global_step=model.step)
        with tf.control_dependencies([applied]):
            return tf.identity(loss, name="loss_after")

    before, after, _ = train(rewrite(export(build), paced=True))
    assert_close(after, on_unions(build, before))


@pytest.mark.few(1)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_a_global_step_that_is_known_by_its_name_alone(resource):
    """As code that makes its own variable has it; TensorFlow's hooks must find it afterwards."""
    with tf.Graph().as_default():
        step = tf.Variable(0, name="global_step", trainable=False, use_resource=resource)
        loss = tf.square(tf.get_variable("v", initializer=1.0))
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        meta = tf.train.export_meta_graph()
    meta, _ = graph_rewrite.semi_synchronize(meta, M)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        assert tf.train.get_global_step().op.name == "global_step"


@pytest.mark.long
def test_a_rate_that_decays_with_the_global_step_is_the_chiefs():
    def build(model, wrap):
        rate = tf.train.exponential_decay(0.5, model.step, 1, 0.5)
        return wrap(tf.train.AdagradOptimizer(rate)).minimize(model.loss(), global_step=model.step)

    before, after, _ = train(rewrite(export(build), paced=True))
    assert_close(after, on_unions(build, before))


def test_two_optimizers_of_one_train_op_make_one_step():
    """As wide-and-deep models do."""

    def build(model, wrap):
        loss = model.loss()
        wide, deep = model.variables("bias", "table"), model.variables("kernel")
        with tf.control_dependencies(
            [
                wrap(tf.train.FtrlOptimizer(0.1)).minimize(loss, var_list=wide),
                wrap(tf.train.AdagradOptimizer(0.1)).minimize(loss, var_list=deep),
            ]
        ):
            return tf.assign_add(model.step, 1).op

    # With reference variables the plain job itself may read what it has just updated.
    before, after, _ = train(rewrite(export(build, resource=True), paced=True))
    assert_close(after, on_unions(build, before, resource=True))


def test_sync_replicas_gives_way():
    def build(model, wrap):
        inner = OPTIMIZERS["Adam"]()
        optimizer = tf.train.SyncReplicasOptimizer(inner, M) if wrap is not plain else inner
        return optimizer.minimize(model.loss(), global_step=model.step)

    def plain(optimizer):
        return optimizer

    meta, report = graph_rewrite.semi_synchronize(export(build).meta, M, paced=True)
    before, after, _ = train(export(build)._replace(meta=meta))
    assert_close(after, on_unions(lambda model, _: build(model, plain), before))
    assert any("SyncReplicasOptimizer of 3 gradients" in change for change in report.changes)


@pytest.mark.long
def test_a_graph_that_was_exported_by_a_session_needs_no_more_than_it_initialises():
    """A session adds its own ops to the graph: what initialises local variables among them."""

    def build(model, wrap):
        train_op = builder("Adagrad")(model, wrap)
        tf.add_to_collection(tf.GraphKeys.LOCAL_INIT_OP, tf.train.Scaffold.default_local_init_op())
        return train_op

    meta, _ = graph_rewrite.semi_synchronize(export(build).meta, M, paced=True)
    before, after, _ = train(export(build)._replace(meta=meta))
    assert_close(after, on_unions(builder("Adagrad"), before))


@pytest.mark.long
@pytest.mark.one_tensorflow
@pytest.mark.parametrize(
    "options",
    [
        {"staleness": semisync.Threshold(4)},
        {"staleness": semisync.Threshold(0), "on_stale": "drop"},
        {"staleness": semisync.Polynomial(0.5), "in_flight": 2},
        {"in_flight": semisync.MeanStaleness(0.5)},
        {"sparse_mean": "touches"},
    ],
    ids=str,
)
@pytest.mark.few(1)
def test_every_option_of_the_optimizer_can_be_asked_for(options):
    before, after, ledger = train(rewrite(export(builder("Adagrad")), **options))
    assert ledger.balance()
    assert np.any(after["kernel"] != before["kernel"])


def test_the_report_is_json_and_names_what_was_found():
    _, report = graph_rewrite.semi_synchronize(export(builder("Adagrad")).meta, M)
    found = json.loads(json.dumps(report.to_dict()))
    assert found["schema"] == "semisync.rewrite/1"
    kinds = {trained["variable"]: trained["kind"] for trained in found["trained"]}
    assert kinds["kernel"] == "dense" and kinds["bias"] == "sparse"
    assert any("unused" in sentence for sentence in found["left"])
    assert "4 sparse variables, trained by SparseApplyAdagrad" in str(report)


def test_every_process_has_a_name_of_its_own():
    meta = rewrite(export(builder("Adagrad"))).meta
    members = set()
    for _ in range(2):
        with tf.Graph().as_default() as graph:
            tf.train.import_meta_graph(meta)
            member = semisync.restore_hook(False).handles.worker.member
            consts = {
                tf.compat.as_str(node.attr["value"].tensor.string_val[0])
                for node in graph.as_graph_def().node
                if node.op == "Const" and node.attr["value"].tensor.string_val
            }
            assert member in consts
            assert len([text for text in consts if len(text.split()) == 3]) == 1
            members.add(member)
    assert len(members) == 2
