"""A graph without devices gets those that tf.train.replica_device_setter would have given it."""

import collections

import pytest

import graph_rewrite
from graph_rewrite.metagraph import placement
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.rewrite import models
from tests.rewrite.training import export

pytestmark = pytest.mark.one_tensorflow

PS = 3
MODELS = [models.AdamSquare, models.SwitchedResNet, models.WideAndDeep]


def with_the_setter(kind, resource):
    """The MetaGraphDef of a job that was built under the setter."""
    cluster = tf.train.ClusterSpec({"ps": ["a:1"] * PS, "worker": ["b:1"]})
    setter = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")
    return export(kind, resource, device=setter).meta


def placed(meta):
    """{op: device} as TensorFlow places them: by a resource, else as asked for, else colocated.

    Without those of the saver, which copies a variable's value on its server first where it knows
    this to be another one.
    """
    found = {}
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta)
        for op in graph.get_operations():
            resources = [tensor.op.name for tensor in op.inputs if tensor.dtype == tf.resource]
            beside = [tf.compat.as_str(each)[len("loc:@") :] for each in op.colocation_groups()]
            if resources:
                found[op.name] = found[resources[0]]
            else:
                found[op.name] = op.device or graph.get_operation_by_name(beside[0]).device
    return {name: device for name, device in found.items() if not name.startswith("save/")}


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
@pytest.mark.long
def test_every_op_lies_where_the_setter_puts_it(kind, resource):
    meta = export(kind, resource).meta
    placement.place(meta, PS)
    expected = placed(with_the_setter(kind, resource))
    found = placed(meta)
    # Some ops TensorFlow builds otherwise where it knows of several devices, such as groups.
    both = expected.keys() & found.keys()
    assert len(both) > 0.9 * len(found)
    assert {name: found[name] for name in both} == {name: expected[name] for name in both}
    assert len({device for device in found.values() if "/job:ps" in device}) == PS


@pytest.mark.few(1)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_gradients_are_computed_on_the_workers_and_applied_on_the_servers(resource):
    meta, report = graph_rewrite.semi_synchronize(
        export(models.AdamSquare, resource).meta, 2, ps=PS
    )
    devices = collections.defaultdict(set)
    for node in meta.graph_def.node:
        devices[node.op].add(node.device)
    assert devices["MatMul"] == {"/job:worker"}
    servers = {trained.device for trained in report.trained}
    assert servers == {"/job:ps/task:{}".format(task) for task in range(PS)}
    assert any("on the parameter servers in turn (3 on /job:ps/task:0" in c for c in report.changes)
    assert not report.warnings


def test_what_names_a_device_but_no_job_keeps_it():
    meta = export(models.Square, device="/device:CPU:0").meta
    placement.place(meta, PS)
    devices = {node.name: node.device for node in meta.graph_def.node}
    assert devices["kernel"] == "/job:ps/task:2/device:CPU:0"
    assert devices["MatMul"] == "/job:worker/task:0/device:CPU:0"


def test_a_graph_without_devices_is_warned_of():
    _, report = graph_rewrite.semi_synchronize(export(models.Square).meta, 2)
    (warning,) = report.warnings
    assert "/job:ps/task:0" in warning and "--ps N" in warning
    assert "warning  " + warning in str(report).splitlines()


def test_a_graph_with_devices_is_not_placed_again():
    meta = with_the_setter(models.Square, False)
    with pytest.raises(UsageError, match="every variable of the graph has a device"):
        graph_rewrite.semi_synchronize(meta, 2, ps=PS)
    assert not graph_rewrite.semi_synchronize(meta, 2)[1].warnings
    with pytest.raises(UsageError, match="ps is the number of parameter servers"):
        graph_rewrite.semi_synchronize(export(models.Square).meta, 2, ps=0)
