"""What a rewritten graph has behind the train op reads the variables after the step.

On a parameter server of its own: within one process a reference variable's value is its memory, and
so always the newest.
"""

import numpy as np
import pytest

import graph_rewrite
import semisync
from semisync.cluster.launch.port import HeldPort
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.wrap.one_process import PATIENCE

M, STEPS = 3, 6


@pytest.fixture
def target():
    """Of a worker whose parameter server is another one, in this process."""
    held = [HeldPort() for _ in range(2)]
    ps, worker = ["127.0.0.1:{}".format(port.number) for port in held]
    cluster = {"ps": [ps], "worker": [worker]}
    servers = [tf.train.Server(cluster, job_name=job, task_index=0) for job in cluster]
    yield servers[1].target


def batch(number):
    rng = np.random.RandomState(number)
    return rng.randn(4, 3).astype(np.float32)


def build(behind, resource=False):
    """The name of the train op; `behind`: (weight, copy) -> op, which waits for the training."""
    inputs = tf.placeholder(tf.float32, [None, 3], name="inputs")
    start = np.float32([[0.2], [0.1], [-0.2]])
    weight = tf.get_variable("weight", initializer=start, use_resource=resource)
    copy = tf.get_variable("copy", initializer=0 * start, trainable=False, use_resource=resource)
    loss = tf.reduce_mean(tf.square(inputs @ weight - 3.0))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.05).minimize(loss, step)
    with tf.control_dependencies([train_op]):
        return tf.group(behind(weight, copy), name="end").name


def clip(weight, copy):
    return weight.assign(tf.clip_by_value(weight, -0.3, 0.3))


def average(weight, copy):
    return tf.train.ExponentialMovingAverage(0.5).apply([weight])


def copies(weight, copy):
    return copy.assign(weight * 1.0)


def rewritten(target, behind):
    """Every variable after STEPS global steps of M batches each."""
    with tf.Graph().as_default():
        end = build(behind)
        meta = tf.train.export_meta_graph(saver_def=tf.train.Saver().as_saver_def())
    meta, _ = graph_rewrite.semi_synchronize(meta, M, paced=True, ps=1)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        hook = semisync.restore_hook(True, PATIENCE, worker_device="/job:worker/task:0")
        found = {}

        class AtTheEnd(tf.train.SessionRunHook):
            def end(self, session):
                variables = {v.op.name: v for v in tf.global_variables()}
                found.update(session.run(variables))

        with tf.train.MonitoredTrainingSession(target, hooks=[hook, AtTheEnd()]) as session:
            for number in range(M * STEPS):
                session.run(end, {"inputs:0": batch(number)})
    assert hook.ledger.fates["admitted"] == M * STEPS
    return found


def plain(behind):
    """The same of the plain job on the unions, with resource variables."""
    with tf.Graph().as_default(), tf.Session() as session:
        end = build(behind, resource=True)
        session.run(tf.variables_initializer(tf.trainable_variables()))
        session.run(tf.global_variables_initializer())
        for step in range(STEPS):
            union = [batch(number) for number in range(M * step, M * (step + 1))]
            session.run(end, {"inputs:0": np.concatenate(union)})
        return session.run({v.op.name: v for v in tf.global_variables()})


@pytest.mark.few(1)
@pytest.mark.parametrize("behind", [clip, average, copies])
def test_it_is_that_of_the_plain_job_on_the_unions(behind, target):
    found, expected = rewritten(target, behind), plain(behind)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6, err_msg=name)
    assert np.abs(found["weight"] - [[0.2], [0.1], [-0.2]]).max() > 0.05


def test_what_may_be_of_before_the_step_is_refused_by_name():
    with tf.Graph().as_default():
        inputs = tf.placeholder(tf.float32, [None, 3])
        weight = tf.get_variable("weight", initializer=np.ones((3, 1), np.float32))
        length = tf.norm(weight, name="length")
        loss = tf.reduce_mean(tf.square(inputs @ weight))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        with tf.control_dependencies([train_op]):
            tf.group(weight.assign(tf.divide(weight, length, name="normal")))
        meta = tf.train.export_meta_graph(saver_def=tf.train.Saver().as_saver_def())
    with pytest.raises(BadInput, match="normal waits for the training, and takes length.*weight"):
        graph_rewrite.semi_synchronize(meta, M)
