"""The contracts of TensorFlow's own wrappers, restated: their tests, of this optimizer.

TensorFlow 1.15 tests SyncReplicasOptimizer in sync_replicas_optimizer_test.py and contrib's
DropStaleGradientOptimizer in drop_stale_gradient_optimizer_test.py. The set-up is theirs: several
workers, each with a graph and a session of its own, in one process, and servers that talk gRPC.
docs/wrap/peers.md lists the differences that stay.
"""

import contextlib
import threading
import time

import numpy as np
import pytest

import semisync
from semisync.cluster.local import LocalCluster
from semisync.common.compat import tf
from semisync.common.errors import UsageError

PS, WORKERS, RATE = 2, 3, 2.0
PATIENCE, DEADLINE = 900.0, 300.0  # seconds


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    """The addresses of the workers' servers; two PS are beside them."""
    with LocalCluster("", "", PS, WORKERS, tmp_path_factory.mktemp("logs")) as ports:
        cluster = tf.train.ClusterSpec(ports.addresses)
        servers = [
            tf.train.Server(cluster, job_name=job, task_index=task)
            for job, count in (("ps", PS), ("worker", WORKERS))
            for task in range(count)
        ]
        yield [server.target for server in servers[PS:]]


class Workers:
    """Workers 0 to n - 1 of one job, of which 0 is the chief.

    Args:
        targets: see the fixture.
        name: of the job, which keeps its variables apart from other jobs'.
        wrap: function of an optimizer -> the `GlobalBatchOptimizer`.
        count: n.
        observer: of the chief's global steps, see `GlobalBatchHook.observe`.
    """

    def __init__(self, targets, name, wrap, count, observer=None):
        self._targets, self._name, self._wrap = targets, name, wrap
        self._observer = observer
        self.sessions, self._ops = [], []
        for task in range(count):
            self.start(task)

    def start(self, task):
        graph = tf.Graph()
        with graph.as_default(), graph.container(self._name):
            with tf.device("/job:ps/task:0"):
                step = tf.train.get_or_create_global_step()
                v0 = tf.Variable(0.0, name="v0")
            with tf.device("/job:ps/task:1"):
                v1 = tf.Variable(1.0, name="v1")
                sparse = tf.Variable([[3.0], [4.0]], name="v_sparse")
            with tf.device("/job:worker/task:%d" % task):
                own = task * 0.2
                gradients = [
                    tf.constant(0.1 + own),
                    tf.constant(0.9 + own),
                    tf.IndexedSlices(
                        tf.constant([[0.1 + own]]), tf.constant([1]), tf.constant([2, 1])
                    ),
                ]
                optimizer = self._wrap(tf.train.GradientDescentOptimizer(RATE))
                train = optimizer.apply_gradients(zip(gradients, [v0, v1, sparse]), step)
            hook = optimizer.make_session_run_hook(task == 0, patience=PATIENCE)
            self._ops.append({"train": train, "step": step, "values": [v0, v1, sparse]})
            if task == 0:
                self.hook = hook
                if self._observer:
                    hook.observe([], self._observer)
            session = tf.train.MonitoredTrainingSession(
                master=self._targets[task],
                is_chief=task == 0,
                hooks=[hook],
                config=semisync.worker_config(task),
            )
            self.sessions.append(session)

    def run(self, *tasks):
        """Runs a batch of each worker, all at once; waits for them, with a deadline."""
        threads = [
            threading.Thread(
                target=self.sessions[t].run, args=(self._ops[t]["train"],), daemon=True
            )
            for t in tasks
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        assert not any(thread.is_alive() for thread in threads), "a worker waits for a ticket"

    def read(self, what):
        return self.sessions[0]._tf_sess().run(self._ops[0][what])

    def wait_for_step(self, step):
        deadline = time.monotonic() + DEADLINE
        while self.read("step") < step:
            assert time.monotonic() < deadline, "the global step did not come"
            time.sleep(0.01)

    def close(self):
        """The chief last: it waits for the others."""
        for session in self.sessions[::-1]:
            session.close()


@contextlib.contextmanager
def workers(*args):
    """`Workers` that are closed at the end."""
    job = Workers(*args)
    yield job
    job.close()


def mean(*tasks):
    """What one step with the mean of these workers' gradients subtracts."""
    return RATE * np.mean([0.1 + 0.2 * task for task in tasks])


def check(job, moved):
    """The values after steps that subtract `moved` of v0, and that and 0.8 a step of v1."""
    v0, _, sparse = job.read("values")
    np.testing.assert_allclose(v0, -moved, rtol=1e-5)
    np.testing.assert_allclose(sparse, [[3.0], [4.0 - moved]], rtol=1e-5)


@pytest.mark.long
def test_two_workers_one_after_the_other_and_then_at_once(targets):
    """test2Workers: the runs of the first steps are sequential."""

    def wrap(optimizer):
        return semisync.GlobalBatchOptimizer(optimizer, 2, paced=True)

    with workers(targets, "two", wrap, 2) as job:
        check(job, 0.0)
        for step in (1, 2):
            job.run(0)
            job.run(1)
            job.wait_for_step(step)
            check(job, step * mean(0, 1))
        job.run(0, 1)
        job.wait_for_step(3)
        check(job, 3 * mean(0, 1))
        np.testing.assert_allclose(job.read("values")[1], 1.0 - 3 * RATE * 1.0, rtol=1e-5)
    assert job.hook.ledger.staleness == {0: 6}


@pytest.mark.long
def test_three_workers_of_which_one_is_a_backup(targets):
    """test3Workers1Backup: the step is taken without the third, whose late batch is dropped."""

    def wrap(optimizer):
        return semisync.GlobalBatchOptimizer(
            optimizer, 2, staleness=semisync.Threshold(0), on_stale="drop"
        )

    with workers(targets, "backup", wrap, 3) as job:
        job.run(2)  # and draws the ticket of its next batch
        job.run(0)
        job.wait_for_step(1)
        check(job, mean(0, 2))
        job.run(2)  # computed from what was read before the first step
        job.run(1)  # one fresh batch is not two
        check(job, mean(0, 2))
        while job.read("step") < 2:  # the first that it runs may have been read too early, too
            job.run(0)
        check(job, mean(0, 2) + mean(0, 1))
    assert job.hook.ledger.fates["stale"] >= 1
    assert job.hook.ledger.balance()


@pytest.mark.long
def test_the_hook_can_be_made_before_minimize():
    """testCanCreatedBeforeMinimizeCalled."""
    with tf.Graph().as_default():
        optimizer = semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(1.0), 1)
        hook = optimizer.make_session_run_hook(True)
        variable = tf.Variable([0.0])
        step = tf.Variable(0, name="global_step", trainable=False)
        train = optimizer.minimize(variable, global_step=step)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            session.run(train)
    assert hook.ledger.fates["admitted"] == 1


def test_the_hook_without_minimize_is_an_error():
    """testErrorIfUsedBeforeMinimizeCalled."""
    with tf.Graph().as_default():
        optimizer = semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(1.0), 1)
        hook = optimizer.make_session_run_hook(True)
        with pytest.raises(UsageError, match="call minimize or apply_gradients before"):
            tf.train.MonitoredTrainingSession(hooks=[hook])


def test_the_variables_are_those_of_the_wrapped_optimizer():
    """testFetchVariableList."""
    with tf.Graph().as_default():
        adam = tf.train.AdamOptimizer(0.01)
        optimizer = semisync.GlobalBatchOptimizer(adam, 1)
        variable = tf.get_variable("v", initializer=[0.0])
        step = tf.train.get_or_create_global_step()
        optimizer.minimize(variable, global_step=step)
        names = [each.name for each in optimizer.variables()]
        assert names == [each.name for each in adam.variables()]
        assert {each.name for each in adam._get_beta_accumulators()} <= set(names)
        slot = optimizer.get_slot(variable, optimizer.get_slot_names()[0])
        assert slot.name in names


def drop_stale(bound, paced=False):
    return lambda optimizer: semisync.GlobalBatchOptimizer(
        optimizer, 1, staleness=bound, on_stale="drop", paced=paced
    )


def test_one_paced_worker_is_never_stale(targets):
    """test1Worker of DropStaleGradientOptimizer.

    Unpaced, a worker goes on before the chief has applied its batch, and may be late by one step.
    """
    wrap = drop_stale(semisync.Threshold(0), paced=True)
    with workers(targets, "drop-one", wrap, 1) as job:
        for step in (1, 2, 3):
            job.run(0)
            job.wait_for_step(step)
            check(job, step * mean(0))
    assert job.hook.ledger.fates["admitted"] == 3


@pytest.mark.long
def test_a_bound_that_no_batch_meets_drops_every_batch(targets):
    """test1WorkerNegativeStaleness."""
    with workers(targets, "drop-all", drop_stale(lambda staleness: 0.0 * staleness), 1) as job:
        for _ in range(3):
            job.run(0)
        check(job, 0.0)
        assert job.read("step") == 0
    assert job.hook.ledger.fates["admitted"] == 0
    assert job.hook.ledger.fates["stale"] == 3


@pytest.mark.parametrize("bound, stale", [(0, 1), (100, 0)])
@pytest.mark.few(1)
def test_of_two_workers_the_late_one_is_dropped_beyond_the_bound(targets, bound, stale):
    """test2WorkersStaleness0 and test2WorkersStaleness1."""
    name = "drop-two-%d" % bound
    with workers(targets, name, drop_stale(semisync.Threshold(bound)), 2) as job:
        job.run(1)  # and draws the ticket of its next batch
        job.wait_for_step(1)
        job.run(0)
        job.wait_for_step(2)
        job.run(1)
    assert job.hook.ledger.fates["stale"] == stale
    assert job.hook.ledger.fates["admitted"] == 3 - stale


@pytest.mark.long
def test_a_worker_that_comes_while_the_chief_ends_trains_with_it(targets):
    """The chief has heard that every worker left, and is still at the last global step."""
    reached, go_on = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]

    def hold_up(step, _):
        if step < 2:
            reached[step].set()
            go_on[step].wait(DEADLINE)

    def wrap(optimizer):
        return semisync.GlobalBatchOptimizer(optimizer, 1, in_flight=5)

    job = Workers(targets, "late", wrap, 1, hold_up)
    job.run(0)
    assert reached[0].wait(DEADLINE)
    job.run(0)
    ending = threading.Thread(target=job.sessions[0].close, daemon=True)
    ending.start()
    threading.Timer(1.0, go_on[0].set).start()  # the chief has said that it leaves
    assert reached[1].wait(DEADLINE)
    job.start(1)
    job.run(1)
    go_on[1].set()
    job.run(1)
    job.sessions[1].close()
    ending.join(DEADLINE)
    assert not ending.is_alive()
    assert job.hook.ledger.fates["admitted"] == 4
    assert job.hook.ledger.fates["lost"] == 0
    assert job.hook.ledger.balance()
