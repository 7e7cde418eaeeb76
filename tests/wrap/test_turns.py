"""Siblings, the wrapped train ops of one graph: how late their batches are said to be.

One worker, which is the chief. Whole jobs of several workers are in `tests.jobs.test_turns`.
"""

import contextlib

import pytest

import semisync
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from tests.support.waiting import until
from tests.wrap.one_process import PATIENCE


class Pair:
    """Two optimizers, "a" and "b", each of one variable; losses a * x and b * a by default.

    Attributes:
        train: {name: train op}.
        hooks: {name: hook}.
    """

    def __init__(self, losses=None, batches_per_step=2, patience=PATIENCE, **options):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.train.get_or_create_global_step()
            self.values = {name: tf.get_variable(name, initializer=1.0) for name in "ab"}
            a, b = self.values["a"] * 1.0, self.values["b"] * 1.0
            losses = losses(a, b) if losses else {"a": a * 2.0, "b": b * a}
            self.train, self.hooks = {}, {}
            for name in "ab":
                step = tf.get_variable("steps_" + name, initializer=0, trainable=False)
                optimizer = semisync.GlobalBatchOptimizer(
                    tf.train.GradientDescentOptimizer(1.0), batches_per_step, name=name, **options
                )
                self.train[name] = optimizer.minimize(
                    losses[name], global_step=step, var_list=[self.values[name]]
                )
                self.hooks[name] = optimizer.make_session_run_hook(True, patience=patience)

    @contextlib.contextmanager
    def session(self):
        """A session, and the function that waits until an optimizer's last batch is applied."""
        with self.graph.as_default(), tf.train.MonitoredTrainingSession(
            hooks=list(self.hooks.values())
        ) as session:
            yield (
                session,
                lambda name: until(
                    lambda: session.run(self.hooks[name].fate)[0] != semisync.PENDING
                ),
            )

    def staleness(self, name):
        return dict(self.hooks[name].ledger.staleness)


def test_a_siblings_step_between_makes_a_batch_late():
    pair = Pair()
    with pair.session() as (session, wait):
        session.run(pair.train["a"])
        session.run(pair.train["b"])  # computed before the step of a
        session.run(pair.train["a"])
        wait("a")
        session.run(pair.train["b"])  # and after it
    assert pair.staleness("b") == {1: 1, 0: 1}
    assert pair.staleness("a") == {0: 2}  # whose gradients do not read b


@pytest.mark.long
def test_a_step_between_two_runs_makes_no_batch_late():
    """The ticket is drawn at the end of the run before, the parameters are read in the next."""
    pair = Pair(batches_per_step=1)
    with pair.session() as (session, wait):
        for _ in range(4):
            session.run(pair.train["a"])
            wait("a")
            session.run(pair.train["b"])
            wait("b")
    assert pair.staleness("b") == {0: 4}


@pytest.mark.long
def test_siblings_that_one_run_trains_count_their_own_steps():
    pair = Pair(paced=True)
    with pair.session() as (session, _):
        for _ in range(6):
            session.run(pair.train)
    assert pair.staleness("a") == pair.staleness("b") == {0: 6}


@pytest.mark.long
def test_optimizers_that_do_not_read_what_others_train_are_no_siblings():
    """Paced, more batches per step than workers are no hindrance then."""
    pair = Pair(lambda a, b: {"a": a * 2.0, "b": b * 2.0}, paced=True)
    with pair.session() as (session, _):
        for _ in range(4):
            session.run(pair.train["a"])
            session.run(pair.train["b"])
    assert pair.staleness("a") == pair.staleness("b") == {0: 4}


@pytest.mark.parametrize(
    "paced, waits",
    [(True, True), (semisync.PacedSteps(), False), (semisync.PacedSteps(first=10), True)],
    ids=["paced", "not_paced", "paced_at_first"],
)
@pytest.mark.long
def test_paced_a_run_begins_once_the_turn_before_is_applied(paced, waits):
    pair = Pair(batches_per_step=1, paced=paced)
    held = []
    for name, hook in pair.hooks.items():
        hook.observe([], lambda step, _, name=name: held.append((name, step)))
    with pair.session() as (session, _):
        for count in range(1, 4):
            session.run(pair.train["a"])
            assert not waits or session.run(pair.values["a"]) == 1.0 - 2.0 * count
            session.run(pair.train["b"])
    if waits:
        assert [name for name, _ in held] == list("ababab")
        assert pair.staleness("b") == {0: 3}


@pytest.mark.long
def test_paced_too_few_workers_for_turns_are_named():
    pair = Pair(paced=True, patience=4.0)
    with pytest.raises(
        SemisyncError, match="1 of 2 batches.*give batches_per_step"
    ), pair.session() as (session, _):
        session.run(pair.train["a"])
        session.run(pair.train["b"])
