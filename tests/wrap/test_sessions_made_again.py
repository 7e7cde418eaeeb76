"""MonitoredSession makes a session again after an error that may pass, and repeats its run.

A chief and a worker, each in a thread with a session of its own, share a server.
"""

import threading

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE, Job

BATCHES = 6  # of each of the two


class Fail(tf.train.SessionRunHook):
    """Fails once, as a connection does that breaks: before a run has begun, or once it is over."""

    def __init__(self, before_run, at):
        self._at_beginning, self._runs_to_go = before_run, at

    def _count(self):
        self._runs_to_go -= 1
        if self._runs_to_go == 0:
            raise tf.errors.AbortedError(None, None, "the connection broke")

    def before_run(self, run_context):
        if self._at_beginning:
            self._count()

    def after_run(self, run_context, run_values):
        if not self._at_beginning:
            self._count()


def train(job, server, is_chief, hooks, both_there, feeds=True):
    with job.graph.as_default():
        if not is_chief:
            semisync.wait_until_initialised(server.target, None)
        job.hook = job.optimizer.make_session_run_hook(is_chief, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(
            server.target, is_chief=is_chief, hooks=[job.hook, *hooks]
        ) as session:
            both_there.wait()  # else the chief may have trained and ended before the worker came
            for value in 2.0 ** np.arange(BATCHES):
                session.run(job.train_op, {job.x: value} if feeds else None)


def train_both(make, fail, feeds=True):
    """Trains; the worker's session fails. Returns the chief's ledger and the last weight."""
    server = tf.train.Server.create_local_server()
    chief, worker = make(), make()
    weight = []
    both_there = threading.Barrier(2, timeout=PATIENCE)

    class Read(tf.train.SessionRunHook):
        def end(self, session):
            weight.append(session.run(chief.weight))

    thread = threading.Thread(target=train, args=(chief, server, True, [Read()], both_there, feeds))
    thread.start()
    train(worker, server, False, [fail], both_there, feeds)
    thread.join()
    assert chief.hook.ledger.balance()
    return chief.hook.ledger, weight[0]


MODES = [{"paced": True}, {}, {"in_flight": 2}]


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize("before_run", [True, False])
@pytest.mark.few(1)
def test_a_batch_that_is_repeated_counts_once_and_nobody_waits(options, before_run):
    ledger, weight = train_both(lambda: Job(1, **options), Fail(before_run, at=3))
    assert weight == -2.0 * np.sum(2.0 ** np.arange(BATCHES))
    assert ledger.fates["admitted"] == 2 * BATCHES
    assert ledger.fates["lost"] == 0
    assert ledger.fates["repeated"] == (0 if before_run else 1)


@pytest.mark.long
def test_exact_global_batches_go_on_at_once():
    """Two batches a step, one of each: the ticket of the session that failed is the step's last."""
    ledger, _ = train_both(lambda: Job(2, paced=True), Fail(True, at=3))
    assert ledger.staleness == {0: 2 * BATCHES}
    assert ledger.fates["lost"] == 0


@pytest.mark.long
def test_a_run_that_reads_its_rows_itself_reads_others_and_counts():
    ledger, _ = train_both(lambda: Job(1), Fail(False, at=3), feeds=False)
    assert ledger.fates["admitted"] == 2 * BATCHES + 1
    assert ledger.fates["repeated"] == 0
