"""Where the library's own ops run in a job that puts its model on a GPU."""

import types

import pytest

import semisync
from semisync.common.compat import tf
from semisync.transport.graph_ops import on_cpu
from semisync.worker.hook import warn_of_missing_filters


def test_no_string_is_on_a_gpu():
    with tf.Graph().as_default() as graph, tf.device("/job:worker/task:1/device:GPU:0"):
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            weight = tf.get_variable("w", initializer=1.0)
        opt = semisync.GlobalBatchOptimizer(
            tf.train.AdagradOptimizer(0.1), 2, staleness=semisync.Threshold(1)
        )
        before = {op.name for op in graph.get_operations()}
        opt.minimize(tf.square(weight), global_step=step)
        opt.make_session_run_hook(True)
    with_strings = [
        op
        for op in graph.get_operations()
        if op.name not in before
        and any(t.dtype == tf.string for t in list(op.inputs) + list(op.outputs))
    ]
    assert len(with_strings) > 5
    places = {"/job:worker/task:1/device:CPU:0", "/job:ps/task:0/device:CPU:0"}
    assert {op.device for op in with_strings} <= places


def test_payloads_are_staged_on_the_cpu_of_their_parameter_server():
    with tf.Graph().as_default() as graph:
        variables = []
        for task in (0, 1):
            with tf.device("/job:ps/task:{}".format(task)):
                variables.append(tf.get_variable("w{}".format(task), initializer=1.0))
        step = tf.train.get_or_create_global_step()
        with tf.device("/job:worker/task:1"):
            opt = semisync.GlobalBatchOptimizer(tf.train.AdagradOptimizer(0.1), 2)
            opt.minimize(variables[0] * variables[1], global_step=step)
    staging = {op.device for op in graph.get_operations() if op.type.startswith("OrderedMap")}
    assert staging == {"/job:ps/task:{}/device:CPU:0".format(task) for task in (0, 1)}


def test_the_cpu_is_that_of_the_same_process():
    assert on_cpu("/job:worker/task:3/device:GPU:1") == "/job:worker/task:3/device:CPU:0"
    assert on_cpu("/job:ps/replica:0/task:0/cpu:0") == "/job:ps/replica:0/task:0/device:CPU:0"
    assert on_cpu("/gpu:0") == on_cpu("") == "/device:CPU:0"


def test_a_workers_session_may_place_softly():
    config = semisync.worker_config(2)
    assert config.allow_soft_placement
    assert list(config.device_filters) == ["/job:ps", "/job:worker/task:2"]


def test_the_session_of_a_chief_that_is_no_worker_sees_its_own_process():
    config = semisync.worker_config(0, "chief")
    assert list(config.device_filters) == ["/job:ps", "/job:chief/task:0"]


@pytest.mark.parametrize("filters", [[], ["/job:ps", "/job:chief/task:0"]])
def test_a_chief_without_device_filters_is_told_its_own(filters, monkeypatch):
    said = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *args: said.append(text % args))
    config = tf.ConfigProto(device_filters=filters)
    session = types.SimpleNamespace(sess_str=b"grpc://127.0.0.1:1", _config=config)
    warn_of_missing_filters(session, "/job:chief/task:0 host:1 abc")
    assert bool(said) == (not filters)
    assert all("device_filters=['/job:ps', '/job:chief/task:0']" in line for line in said)
