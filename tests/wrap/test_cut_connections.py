"""Connections between a worker and its parameter server are cut: each batch counts once.

A parameter server, a chief and a worker are servers of this process; the worker alone reaches the
parameter server by a proxy, whose connections are cut at random moments of its runs. TensorFlow
then fails the run, and MonitoredSession makes its session again and repeats the run. Each batch
adds a number of its own to a weight.
"""

import contextlib
import random
import socket
import threading
import time

import pytest

import semisync
from semisync import audit
from semisync.common.compat import tf
from tests.support.proxy import Proxy
from tests.wrap.one_process import PATIENCE

MANY = [pytest.param({}, 200, marks=pytest.mark.long)]
MANY += [pytest.param({"paced": True}, 60, marks=pytest.mark.long)]  # paced, a cut takes longer
# What TensorFlow makes of a connection that breaks, and MonitoredSession leaves to the job.
LEFT_TO_THE_JOB = (tf.errors.UnknownError, tf.errors.InternalError, tf.errors.CancelledError)


def free_port():
    with contextlib.closing(socket.socket()) as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def at(port):
    return "localhost:{}".format(port)


class Part:
    """The chief or the worker: its server, its graph and its session."""

    def __init__(self, ps, task, workers, path=None, **options):
        cluster = tf.train.ClusterSpec({"ps": [ps], "worker": workers})
        self.server = tf.train.Server(cluster, job_name="worker", task_index=task)
        self.task, self.path = task, path
        self.graph = tf.Graph()
        place = tf.train.replica_device_setter(
            cluster=cluster, worker_device="/job:worker/task:{}".format(task)
        )
        with self.graph.as_default(), tf.device(place):
            step = tf.train.get_or_create_global_step()
            self.x = tf.placeholder(tf.float32, [])
            self.weight = tf.get_variable("w", initializer=0.0)
            self.optimizer = semisync.GlobalBatchOptimizer(
                tf.train.GradientDescentOptimizer(1.0), 1, **options
            )
            self.train_op = self.optimizer.minimize(-self.x * self.weight, step)

    @contextlib.contextmanager
    def session(self, hooks=()):
        with self.graph.as_default():
            config = semisync.worker_config(self.task)
            if self.task:
                semisync.wait_until_initialised(self.server.target, config)
            self.hook = self.optimizer.make_session_run_hook(
                not self.task, patience=PATIENCE, audit=self.path
            )
            with tf.train.MonitoredTrainingSession(
                self.server.target, not self.task, hooks=[self.hook, *hooks], config=config
            ) as session:
                yield session


class Last(tf.train.SessionRunHook):
    def __init__(self, tensor):
        self._tensor = tensor

    def end(self, session):
        self.value = session.run(self._tensor)


def train_through_cuts(cuts, path, **options):
    """Trains until so many runs met a cut; returns how many batches, and the last weight."""
    ps, *tasks = [free_port() for _ in range(3)]
    address, workers = at(ps), [at(task) for task in tasks]
    proxies = [Proxy(ps), Proxy(tasks[1])]  # of each as the other sees it
    server = tf.train.Server(
        {"ps": [address], "worker": [workers[0], proxies[1].address]}, job_name="ps"
    )
    chief = Part(address, 0, workers, path, **options)
    worker = Part(proxies[0].address, 1, workers, **options)
    done, last = threading.Event(), Last(chief.weight)

    def be_chief():
        with chief.session([last]):
            done.wait(850.0)

    thread = threading.Thread(target=be_chief)
    thread.start()
    chance, batches = random.Random(1), 0
    with worker.session() as session:
        for _ in range(cuts):
            for value in range(batches + 1, batches + 1 + chance.randrange(1, 4)):
                run(session, worker, value)
                batches = value
            for proxy in proxies:
                threading.Timer(chance.random() * 0.02, proxy.cut).start()
            run(session, worker, batches + 1)
            batches += 1
        time.sleep(0.05)  # the last cut is over
        run(session, worker, batches + 1)
        batches += 1
    done.set()
    thread.join()
    del server
    return batches, last.value, chief.hook.ledger


def run(session, worker, value):
    feed = {worker.x: float(value)}
    while True:
        try:
            session.run(worker.train_op, feed)
            return
        except LEFT_TO_THE_JOB:
            continue


@pytest.mark.long
@pytest.mark.one_tensorflow
@pytest.mark.parametrize("options, cuts", [({}, 15), *MANY])
def test_a_batch_counts_once_however_often_connections_break(options, cuts, tmp_path):
    path = str(tmp_path / "audit")
    batches, weight, ledger = train_through_cuts(cuts, path, **options)
    counts = audit.check(path)
    assert counts["admitted"] == batches
    assert weight == batches * (batches + 1) // 2
