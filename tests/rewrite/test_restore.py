"""What restore_hook finds in an imported graph, and what it makes of the worker's devices."""

import gc
import json
import weakref

import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.rewrite.exported import export, rewrite

pytestmark = pytest.mark.one_tensorflow

PS = tf.train.replica_device_setter(
    cluster=tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1"]}),
    worker_device="/job:worker/task:0",
)


def sgd(model, wrap):
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    return wrap(optimizer).minimize(model.loss(), global_step=model.step)


@pytest.fixture(scope="module")
def distributed():
    return rewrite(export(sgd, device=PS)).meta


def worker_devices(graph):
    devices = {op.device.partition("/device:")[0] for op in graph.get_operations()}
    return {device for device in devices if "/job:worker" in device}


def test_a_graph_that_was_not_rewritten_is_refused():
    with tf.Graph().as_default(), pytest.raises(UsageError, match="has 0 entries"):
        semisync.restore_hook(True)


def test_a_graph_under_a_scope_is_refused(distributed):
    with tf.Graph().as_default():
        tf.train.import_meta_graph(distributed, import_scope="inside")
        with pytest.raises(UsageError, match="without import_scope"):
            semisync.restore_hook(True)


def test_two_hooks_of_one_graph_share_what_was_restored(distributed):
    with tf.Graph().as_default():
        tf.train.import_meta_graph(distributed)
        first = semisync.restore_hook(True, worker_device="/job:worker/task:1")
        assert semisync.restore_hook(True).handles is first.handles


def test_a_graph_is_freed_when_nobody_holds_it(distributed):
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(distributed)
        semisync.restore_hook(True, worker_device="/job:worker/task:1")
    freed = weakref.ref(graph)
    del graph
    gc.collect()
    assert freed() is None


def test_the_task_comes_from_the_device_of_the_import(distributed):
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:1"):
            tf.train.import_meta_graph(distributed)
        member = semisync.restore_hook(False).handles.worker.member
        assert worker_devices(graph) == {"/job:worker/task:1"}
        assert member.startswith("/job:worker/task:1 ")


def test_the_task_comes_from_tf_config(distributed, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"task": {"type": "chief", "index": 0}}))
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(distributed)
        semisync.restore_hook(False)
        assert "/job:chief/task:0" in {op.device for op in graph.get_operations()}
        assert worker_devices(graph) == set()


def test_a_task_that_nobody_tells_is_asked_for(distributed, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(distributed)
        with pytest.raises(UsageError, match="pass restore_hook.worker_device='/job:worker/task:K"):
            semisync.restore_hook(False)


@pytest.mark.long
def test_queues_that_each_worker_would_have_for_itself_are_refused():
    """A graph without devices, imported under the devices of a cluster."""
    meta = rewrite(export(sgd)).meta
    with tf.Graph().as_default():
        with tf.device(PS):
            tf.train.import_meta_graph(meta)
        with pytest.raises(UsageError, match="exported with its devices"):
            semisync.restore_hook(True)


def test_the_devices_stay_where_asked():
    exported = export(sgd, device=PS)
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(rewrite(exported, keep_devices=True).meta)
        semisync.restore_hook(True)
        assert worker_devices(graph) == {"/job:worker/task:0"}
