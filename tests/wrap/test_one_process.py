"""What a user can do right and wrong, in one process with a local session: fast, no cluster."""

import contextlib
import gc
import threading
import time
import weakref

import numpy as np
import pytest

import semisync
from semisync import audit
from semisync.chief import thread
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from semisync.transport import mailbox
from semisync.transport.messages import JOINED
from tests.support.waiting import until
from tests.wrap.one_process import PATIENCE, Job, late

pytestmark = pytest.mark.again


def test_paced_training_never_shows_staleness_even_with_a_policy_that_ignores_it():
    job = Job(paced=True)
    with job.session() as session:
        job.train(session, *np.ones(400))
    assert job.hook.ledger.staleness == {0: 400}


def test_a_job_is_paced_from_the_step_on_that_it_asks_for(tmp_path, monkeypatch):
    monkeypatch.setattr(thread, "WAKE_EVERY", 1e6)  # the chief notices without being woken
    log = str(tmp_path / "audit")
    job = Job(batches_per_step=1, paced=semisync.PacedSteps(since=5))
    with job.session(audit=log) as session:
        job.train(session, *np.ones(30))
    out, waiting = 0, []  # tickets that are not applied; how many there are as a step begins
    for event in audit.read(log):
        out += len(event.get("tickets", []))
        if event["event"] == "step":
            waiting.append(out)
            out -= 1
    assert min(waiting[1:5]) > 1
    assert set(waiting[8:]) == {1}  # M


def test_a_session_and_its_graph_are_freed_when_nobody_holds_them():
    def trained():
        job = Job()
        with job.session() as session:
            job.train(session, 1, 2)
            own = session.run_step_fn(lambda step_context: weakref.ref(step_context.session))
        return own, weakref.ref(job.graph)

    def are_freed():
        gc.collect()
        return [one() for one in freed] == [None, None]

    freed = trained()
    until(are_freed, 30.0)  # a thread of the chief looks once more


def test_the_last_partial_global_batch_is_the_mean_of_its_own():
    job = Job(batches_per_step=4, paced=True)
    weights = []

    class ReadAtEnd(tf.train.SessionRunHook):
        def end(self, session):
            weights.append(session.run(job.weight))

    with job.graph.as_default():
        hook = job.optimizer.make_session_run_hook(True)
        with tf.train.MonitoredTrainingSession(hooks=[hook, ReadAtEnd()]) as session:
            job.train(session, 1, 2, 3, 6, 10)
    assert weights == [-3.0 - 10.0]


def test_batches_that_are_left_make_whole_global_batches_while_there_are_enough():
    """The chief finds three of them and the worker's leave at once, having been held up."""
    job, go_on, steps = Job(batches_per_step=1, in_flight=5), threading.Event(), []

    def hold_up(step, _):
        steps.append(step)
        go_on.wait(60)

    with job.session(observe=[([], hold_up)]) as session:
        job.train(session, 1, 2, 3, 4)
        threading.Timer(1.0, go_on.set).start()  # once the session below has said that it ends
    assert steps == [0, 1, 2, 3]
    assert job.after["w"] == -1 - 2 - 3 - 4


def test_a_batch_that_fails_costs_nothing_and_gives_its_ticket_back():
    job = Job(paced=True)
    with job.session(patience=60.0) as session:
        job.train(session, 1, 1, 1)
        with pytest.raises(tf.errors.InvalidArgumentError):
            job.train(session, float("nan"))
        job.train(session, 1)
    fates = job.hook.ledger.fates
    assert (fates["admitted"], fates["lost"], fates["repeated"]) == (4, 0, 0)
    assert job.hook.ledger.balance()


def test_a_failure_of_the_chiefs_thread_ends_the_job(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    job = Job()
    with pytest.raises(OSError, match="audit"), job.session(
        audit=str(folder / "audit"), patience=60.0
    ) as session:
        folder.rename(tmp_path / "gone")
        job.train(session, *np.ones(1000))


@pytest.mark.parametrize("options", [{}, {"paced": True}])
@pytest.mark.few(1)
def test_a_worker_that_waits_for_input_for_longer_than_patience_loses_nothing(options):
    job = Job(**options)
    with job.session(patience=4.0) as session:
        job.train(session, 1)
        job.hook.ledger.patience = 2.5
        time.sleep(6.0)
        job.train(session, 1, 1)
    fates = job.hook.ledger.fates
    assert (fates["admitted"], fates["lost"]) == (3, 0)


def test_the_chief_ends_without_a_member_that_fell_silent():
    job = Job()
    with job.graph.as_default():
        ghost = mailbox.Mailbox("GlobalBatch", "/device:CPU:0").send(
            "ghost", tf.constant([JOINED, 0, 0, 0, 0], tf.int64)
        )
    with job.session() as session:
        session.run(ghost)
        job.train(session, 1, 1)
        job.hook.ledger.patience = 1.0
    assert job.hook.ledger.members == {}
    assert job.hook.ledger.fates["admitted"] == 2


def test_a_token_ahead_of_the_step_counts_as_the_oldest():
    job = Job(batches_per_step=1, staleness=semisync.Threshold(2), paced=True)
    with job.graph.as_default():
        rewound = late(job.optimizer, 10**6)
    with job.session() as session:
        job.train(session, 1, 1, 1, 1)
        session.run(rewound)
        job.train(session, 1)
    assert job.hook.ledger.staleness == {0: 4, 4: 1}
    assert job.hook.ledger.fates["stale"] == 1


@pytest.mark.parametrize(
    "scope",
    [
        lambda: tf.variable_scope("m", partitioner=tf.fixed_size_partitioner(2)),
        lambda: tf.variable_scope("m", regularizer=tf.nn.l2_loss),
        lambda: tf.variable_scope("m", reuse=tf.AUTO_REUSE),
        lambda: tf.name_scope("tower"),
        lambda: tf.device("/cpu:0"),
    ],
)
@pytest.mark.few(2)
def test_the_scope_around_minimize_does_not_matter(scope):
    job = Job(scope=scope)
    with job.session() as session:
        job.train(session, 1, 1)
    assert job.hook.ledger.fates["admitted"] == 2


def test_variables_and_slots_keep_the_names_of_the_plain_optimizer():
    def names(wrap):
        with tf.Graph().as_default(), tf.variable_scope("model"), tf.name_scope("tower"):
            loss = tf.square(tf.get_variable("w", initializer=1.0))
            optimizer = wrap(tf.train.AdamOptimizer())
            optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
            return sorted(variable.name for variable in tf.global_variables())

    assert names(lambda plain: semisync.GlobalBatchOptimizer(plain, 2)) == names(
        lambda plain: plain
    )


@contextlib.contextmanager
def session_of_two(*sizes):
    """(session, variables, train ops, hooks) of two optimizers, with so many batches per step."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        variables = [tf.get_variable(name, initializer=0.0) for name in "ab"]
        hooks, train = [], []
        for variable, size in zip(variables, sizes):
            optimizer = semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(1.0), size)
            train.append(optimizer.minimize(variable, global_step=step))
            hooks.append(optimizer.make_session_run_hook(True))
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            yield session, variables, train, hooks


def test_two_optimizers_in_one_graph_keep_apart():
    with session_of_two(1, 2) as (session, _, train, hooks):
        for _ in range(4):
            session.run(train)
    assert [hook.ledger.fates["admitted"] for hook in hooks] == [4, 4]


def test_the_chief_of_one_optimizer_waits_while_that_of_another_applies(monkeypatch):
    monkeypatch.setattr(thread, "WAKE_EVERY", 1e6)  # nothing but its batches wakes a chief
    with session_of_two(1, 1) as (session, variables, train, _):
        for variable, train_op in zip(variables, train):
            session.run(train_op)
            until(lambda variable=variable: session.run(variable) == -1.0)


def draws_of_two(run, **options):
    """Names of the optimizers for which `run`, a function (session, train ops), draws tickets."""
    drawn = []
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        weight, hooks, train = tf.get_variable("w", initializer=0.0), [], []
        for name in ("first", "second"):
            optimizer = semisync.GlobalBatchOptimizer(sgd(), 1, name=name, **options)
            train.append(optimizer.minimize(weight, global_step=step))
            hook = optimizer.make_session_run_hook(True, patience=PATIENCE)

            def draw(session, name=name, draw=hook._draw):
                drawn.append(name)
                draw(session)

            hook._draw = draw
            hooks.append(hook)
        with tf.train.MonitoredTrainingSession(hooks=hooks[::-1]) as session:
            run(session, train)
    return drawn


def test_first_tickets_are_drawn_in_the_order_of_building_not_of_the_hooks():
    """Else of two workers each may hold the ticket that the other waits for."""
    drawn = draws_of_two(lambda session, train: session.run(train), in_flight=1)
    assert drawn[:2] == ["first", "second"]


def test_further_tickets_are_drawn_within_the_run_of_the_first_optimizer_alone():
    """Those of the second wait for the end of the run, in which the first drew its own."""

    def run(session, train):
        for _ in range(3):
            session.run(train)

    drawn = draws_of_two(run, in_flight=1)
    assert (drawn.count("first"), drawn.count("second")) == (1, 3)


def test_paced_a_run_draws_a_ticket_for_what_it_trains_alone():
    """As of a GAN: else one worker may hold a ticket that another needs before it goes on."""

    def run(session, train):
        session.run({"critic": [train[0].name]})
        session.run(train[0])
        session.run(tf.train.get_global_step())
        session.run(train[1])
        session.run(train)

    drawn = draws_of_two(run, paced=True)
    assert drawn == ["first", "first", "second", "first", "second"]


def test_the_folder_of_the_audit_log_is_made(tmp_path):
    log = tmp_path / "checkpoints" / "audit.jsonl"
    job = Job()
    with job.session(audit=str(log)) as session:
        job.train(session, 1, 1)
    assert audit.check(str(log))["admitted"] == 2


def test_the_log_has_a_step_before_it_is_applied(tmp_path, monkeypatch):
    job, raw, found, write = Job(batches_per_step=1), [], [], audit.AuditLog.write

    def watched(log, events):
        steps = [event["step"] for event in events if event["event"] == "step"]
        found.extend((step, raw[0].run(job.step)) for step in steps)
        write(log, events)

    monkeypatch.setattr(audit.AuditLog, "write", watched)
    with job.session(audit=str(tmp_path / "audit")) as session:
        raw.append(session.run_step_fn(lambda step_context: step_context.session))
        job.train(session, *np.ones(5))
    assert found == [(step, step) for step in range(5)]


def test_a_forgotten_hook_is_named():
    job = Job()
    with pytest.raises(tf.errors.InvalidArgumentError, match="make_session_run_hook"), job.session(
        hook=False
    ) as session:
        job.train(session, 1)


def test_a_scaffold_that_initialises_other_things_does_not_matter():
    job = Job(batches_per_step=1)
    with job.graph.as_default():
        hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
        scaffold = tf.train.Scaffold(local_init_op=tf.no_op())
        with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=[hook]) as session:
            job.train(session, 1.0)
    assert hook.ledger.fates["admitted"] == 1


def test_a_missing_chief_is_named():
    job = Job()
    with job.graph.as_default():
        hook = job.optimizer.make_session_run_hook(False, patience=4.0)
        hook.LOG_EVERY = 0.2
        with pytest.raises(
            SemisyncError, match=r"is_chief=True\), is not running"
        ), tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            job.train(session, 1)


def sgd():
    return tf.train.GradientDescentOptimizer(0.1)


def test_whole_numbers_of_numpy_are_whole_numbers():
    with tf.Graph().as_default():
        assert semisync.GlobalBatchOptimizer(sgd(), np.int64(4)).batches_per_step == 4
        assert semisync.Threshold(np.int32(2)).bound == 2
