"""A rewritten MetaGraph in which some variables stay asynchronous, and the fate of its batches.

The loss is linear in every variable, so that no variable's gradient depends on another. The
reference is the wrapper with the same policy, whose own tests compare it with TensorFlow.
"""

import numpy as np
import pytest

import graph_rewrite
import semisync
from graph_rewrite.graph.nodes import Nodes
from semisync import cli
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError
from tests.rewrite.exported import export, rewrite, train
from tests.wrap.one_process import PATIENCE, M, assert_close, in_batches, inputs, on_unions

pytestmark = pytest.mark.one_tensorflow

POLICY = [("table|bias", "async")]
OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
}


def builder(name):
    def build(model, wrap):
        loss = model.loss(kind="linear")
        return wrap(OPTIMIZERS[name]()).minimize(loss, global_step=model.step)

    return build


@pytest.mark.parametrize(
    "name, resource",
    [("GradientDescent", True), ("Adagrad", False), ("Adam", False), ("Adam", True)],
)
@pytest.mark.long
def test_it_trains_what_the_wrapper_trains_with_the_same_policy(name, resource):
    build = builder(name)
    before, after, _ = train(rewrite(export(build, resource), paced=True, policy=POLICY))
    assert_close(after, in_batches(build, resource, policy=POLICY)[1])
    together = on_unions(build, before, resource)
    assert np.abs(after["bias"] - together["bias"]).max() > 1e-3
    np.testing.assert_allclose(after["kernel"], together["kernel"], rtol=1e-4)


@pytest.mark.long
def test_a_function_may_decide():
    def sparse_at_once(gradient, variable):
        return "async" if isinstance(gradient, tf.IndexedSlices) else "semi-sync"

    _, report = graph_rewrite.semi_synchronize(
        export(builder("Adam")).meta, M, policy=sparse_at_once
    )
    assert [trained.variable for trained in report.trained] == ["kernel"]
    assert any("4 variables are trained at once by each worker" in s for s in report.left)


def test_the_ops_of_an_async_variable_keep_their_bytes():
    exported = export(builder("Adagrad"))
    old, new = (
        {node.name: node for node in meta.graph_def.node}
        for meta in (exported.meta, rewrite(exported, policy=POLICY).meta)
    )
    at_once = [name for name in old if "update_table" in name or "update_bias" in name]
    assert at_once
    assert all(old[name] == new[name] for name in at_once)
    assert old[kernel_op(old)] != new[kernel_op(old)]


@pytest.mark.long
def test_the_chief_is_told_of_a_batch_after_what_it_trains_at_once():
    """A step of the chief changes what these ops read, such as Adam's beta powers."""
    exported = rewrite(export(builder("Adam")), policy=POLICY)
    nodes = Nodes.of(exported.meta)
    told = [
        name for name in nodes.ancestors([exported.train]) if nodes[name].op == "QueueEnqueueV2"
    ]
    before = nodes.ancestors(told)
    assert told
    for variable in ("table/part_0", "table/part_1", "table/part_2", "bias"):
        assert any("update_" + variable in name for name in before)


def kernel_op(nodes):
    return next(name for name in nodes if "update_kernel" in name and "Apply" in nodes[name].op)


def test_the_command_takes_a_policy(tmp_path, capsys):
    path = tmp_path / "in.meta"
    path.write_bytes(export(builder("Adagrad")).meta.SerializeToString())
    arguments = ["rewrite", str(path), str(tmp_path / "out.meta"), "--batches-per-step", "3"]
    policy = ["--policy", "bias", "async", "--policy", "table", "async"]
    assert cli.main(arguments + policy) == 0
    assert "4 variables are trained at once by each worker" in capsys.readouterr().out
    assert cli.main([*arguments, "--overwrite", "--policy", "bias", "sync"]) == 3
    assert "'semi-sync' or 'async', not 'sync'" in " ".join(capsys.readouterr().err.split())


def test_what_a_policy_leaves_nothing_of_is_refused():
    with pytest.raises(BadInput, match='makes every variable "async"'):
        rewrite(export(builder("Adagrad")), policy=[("", "async")])


def test_async_variables_of_a_sync_replicas_optimizer_are_refused():
    def build(model, wrap):
        optimizer = tf.train.SyncReplicasOptimizer(OPTIMIZERS["Adagrad"](), M)
        return optimizer.minimize(model.loss(), global_step=model.step)

    with pytest.raises(BadInput, match="table/part_0 is to be trained at once, and the graph has"):
        rewrite(export(build), policy=POLICY)


def test_a_policy_without_meaning_is_one_sentence():
    with pytest.raises(UsageError, match="the policy of table is"):
        rewrite(export(builder("Adagrad")), policy=[("table", "sync")])


@pytest.mark.long
def test_the_hook_tells_the_fate_of_the_last_batch():
    exported = rewrite(export(builder("Adagrad")), 1, paced=True)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(exported.meta)
        hook = semisync.restore_hook(True, patience=PATIENCE)
        ids, targets = inputs(0)[0]
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            session.run(exported.train, {exported.ids: ids, exported.targets: targets})
            # The next ticket of a paced job comes when the step is made.
            assert session.run(hook.fate).tolist() == [semisync.ADMITTED, 0]
