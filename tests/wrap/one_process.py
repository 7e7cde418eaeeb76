"""Training in one process with a local session, where this worker is the chief.

The reference of most tests is TensorFlow itself. `in_batches` trains M x STEPS batches through
GlobalBatchOptimizer; `on_unions` trains the plain optimizers, from the same values, on one batch
for the union of every M. Both take `build`, a function (model, wrap) -> train op, in which `wrap`
stands for semisync.GlobalBatchOptimizer in the first case and for nothing in the second.

`Job` is the smallest job there is, for tests of one number.
"""

import contextlib

import numpy as np

import semisync
from semisync.common.compat import tf
from semisync.worker.state import DUE, TOKEN
from tests.support.variables import load
from tests.wrap.job import batch, build_loss

M, STEPS = 3, 4
PATIENCE = 900.0  # seconds; a machine that does many things at once loses no batch


def inputs(step):
    """The M batches of a global step, each (ids, targets)."""
    return [batch(0, step * M + number) for number in range(M)]


def union(step):
    """The same as one batch."""
    ids, targets = zip(*inputs(step))
    return np.concatenate(ids), np.concatenate(targets)


class Model:
    """The cluster tests' model in the default graph; every variable starts at the same value."""

    def __init__(self, resource=False):
        self._resource = resource
        self._built = False
        self.ids = tf.placeholder(tf.int64, [None, 4])
        self.targets = tf.placeholder(tf.float32, [None])
        self.step = tf.train.get_or_create_global_step()

    def loss(self, ids=None, targets=None, kind="square"):
        """Of the batch that is fed, or of a part of it; see `job.build_loss` for the kind."""
        ids, targets = (self.ids, self.targets) if ids is None else (ids, targets)
        with tf.variable_scope(tf.get_variable_scope(), reuse=self._built):
            self._built = True
            return build_loss(kind, ids, targets, self._resource)

    def variables(self, *names):
        """The trainable variables of these names, partitions apart."""
        found = tf.trainable_variables()
        return [v for v in found if v.op.name.partition("/")[0] in names]

    def feed(self, pair):
        return {self.ids: pair[0], self.targets: pair[1]}


def late(optimizer, token):
    """The op after which this worker's next batch counts as one that took long, from `token` on."""
    return tf.scatter_update(optimizer.handles.worker.state, [TOKEN, DUE], [token, 0])


class Remember(tf.train.SessionRunHook):
    """Every variable before the first and after the last global step.

    It stands after the optimizers' hooks, whose `end` applies the last global batch.
    """

    def __init__(self):
        self._variables = {variable.op.name: variable for variable in tf.global_variables()}

    def after_create_session(self, session, coord):
        self.before = session.run(self._variables)

    def end(self, session):
        self.after = session.run(self._variables)


def in_batches(build, resource=False, batches=inputs, steps=STEPS, observe=None, **options):
    """Trains M batches per global step, paced; returns the variables before and after.

    Args:
        build: function (model, wrap) -> train op.
        batches: function of the step -> its M batches.
        observe: function of the list of optimizers and their hooks, before the session is made.
        options: of GlobalBatchOptimizer.
    """
    wrapped = []

    def wrap(optimizer):
        wrapped.append(semisync.GlobalBatchOptimizer(optimizer, M, paced=True, **options))
        return wrapped[-1]

    with tf.Graph().as_default():
        model = Model(resource)
        train = build(model, wrap)
        hooks = [optimizer.make_session_run_hook(True, patience=PATIENCE) for optimizer in wrapped]
        if observe:
            observe(wrapped, hooks)
        memory = Remember()
        with tf.train.MonitoredTrainingSession(hooks=hooks + [memory]) as session:
            for step in range(steps):
                for pair in batches(step):
                    session.run(train, model.feed(pair))
    assert [hook.ledger.fates["lost"] for hook in hooks] == [0] * len(hooks)
    return memory.before, memory.after


def on_unions(build, before, resource=False, unions=union, steps=STEPS, fetch=None):
    """Trains the plain optimizers on one batch per step, from `before`; returns the variables.

    Args:
        fetch: None, or function model -> fetches; then also returns their values before each step.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        model = Model(resource)
        train = build(model, lambda optimizer: optimizer)
        fetches = fetch(model) if fetch else []
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        assert set(variables) == set(before)
        load(session, {variable: before[name] for name, variable in variables.items()})
        fetched = []
        for step in range(steps):
            feed = model.feed(unions(step))
            fetched.append(session.run(fetches, feed))
            session.run(train, feed)
        after = session.run(variables)
    return (after, fetched) if fetch else after


def assert_close(found, expected):
    """Every variable and slot, by name."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=2e-5, err_msg=name)


def assert_equals_the_union(build, resource=False, **options):
    """M batches per step train what the plain optimizers train on the union; returns the values."""
    before, after = in_batches(build, resource, **options)
    assert_close(after, on_unions(build, before, resource))
    moved = [name for name in ("kernel", "bias") if np.any(after[name] != before[name])]
    assert moved == ["kernel", "bias"]
    return before, after


class Job:
    """A small paced or unpaced job: loss = w * x + b, one worker that is the chief.

    x is 1 unless it is fed.

    Attributes:
        after: w after the last global step, once the session is closed.
    """

    def __init__(self, batches_per_step=2, optimizer=None, scope=None, extras=None, **options):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step = tf.train.get_or_create_global_step()
            self.x = tf.placeholder_with_default(1.0, [])
            weight = tf.get_variable("w", initializer=0.0)
            other = tf.get_variable("b", initializer=0.0)
            loss = other + weight * tf.check_numerics(self.x, "the input")
            self.weight = weight
            self.optimizer = semisync.GlobalBatchOptimizer(
                optimizer() if optimizer else tf.train.GradientDescentOptimizer(1.0),
                batches_per_step,
                **options,
            )
            if extras:
                extras(self)
            with scope() if scope else contextlib.nullcontext():
                self.train_op = self.optimizer.minimize(loss, global_step=self.step)
            self.new_token = tf.placeholder(tf.int64, [])
            self.set_token = late(self.optimizer, self.new_token)
            self.hook = None
            self.after = None

    @contextlib.contextmanager
    def session(self, hook=True, observe=(), patience=PATIENCE, **options):
        """A MonitoredTrainingSession with the optimizer's hook."""
        with self.graph.as_default():
            if hook:
                self.hook = self.optimizer.make_session_run_hook(True, patience=patience, **options)
                for fetches, observer in observe:
                    self.hook.observe(fetches, observer)
            memory = Remember()
            hooks = [self.hook, memory] if hook else []
            with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
                yield session
            if hook:
                self.after = memory.after

    def train(self, session, *inputs):
        for value in inputs:
            session.run(self.train_op, {self.x: value})

    def train_late(self, session, value, token):
        """Trains a batch as if its parameters had been read at the global step `token`."""
        session.run(self.set_token, {self.new_token: token})
        self.train(session, value)

    def fate(self, session):
        """(fate, staleness) of the last batch."""
        return tuple(session.run(self.optimizer.fate).tolist())
