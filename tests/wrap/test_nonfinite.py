"""A batch with a NaN or an infinity in a gradient is refused whole, and its worker named."""

import numpy as np
import pytest

import semisync
from semisync import audit
from semisync.chief import thread
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError, UsageError
from tests.wrap.one_process import (
    PATIENCE,
    STEPS,
    Model,
    assert_close,
    in_batches,
    inputs,
    on_unions,
)

BROKEN = 1  # the step that has one more batch, which is broken


def minimize(make):
    return lambda model, wrap: wrap(make()).minimize(model.loss(), global_step=model.step)


def broken(pair, value=np.nan):
    """A batch with one bad target."""
    ids, targets = pair[0], pair[1].copy()
    targets[0] = value
    return ids, targets


def one_more(step):
    """The batches of a step, with one among them that is broken."""
    first, *others = inputs(step)
    return [first, broken(first), *others] if step == BROKEN else [first, *others]


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
}


@pytest.mark.parametrize(
    ("name", "resource"), [("sgd", False), ("adagrad", False), ("adagrad", True), ("adam", True)]
)
@pytest.mark.long
def test_the_others_train_what_they_train_without_it(name, resource):
    build = minimize(OPTIMIZERS[name])
    before, after = in_batches(build, resource, batches=one_more)
    assert_close(after, on_unions(build, before, resource))
    assert after["global_step"] == STEPS


@pytest.mark.parametrize(
    ("value", "options"),
    [(np.inf, {"staleness": semisync.Threshold(4)}), (-np.inf, {"on_stale": "drop"})],
)
@pytest.mark.long
def test_an_infinity_is_refused_too_whatever_the_staleness_policy(value, options):
    def batches(step):
        return [broken(inputs(step)[0], value), *inputs(step)]

    build = minimize(OPTIMIZERS["adam"])
    before, after = in_batches(build, batches=batches, **options)
    assert_close(after, on_unions(build, before))


@pytest.mark.long
def test_a_variable_that_is_trained_at_once_is_left_alone_too():
    build = minimize(OPTIMIZERS["sgd"])
    policy = [("bias", "async")]
    _, after = in_batches(build, batches=one_more, policy=policy)
    _, expected = in_batches(build, policy=policy)
    assert_close(after, expected)


def test_kept_it_makes_the_model_nan_as_tensorflow_does():
    build = minimize(OPTIMIZERS["sgd"])
    _, after = in_batches(build, batches=one_more, on_nonfinite="keep")
    assert np.isnan(after["kernel"]).all()


def train(path, batches, **options):
    """Trains in one process; returns the hook, and the fates of the batches that were broken."""
    fates = []
    with tf.Graph().as_default():
        model = Model()
        optimizer = semisync.GlobalBatchOptimizer(OPTIMIZERS["sgd"](), 2, paced=True, **options)
        train_op = optimizer.minimize(model.loss(), global_step=model.step)
        hook = optimizer.make_session_run_hook(True, patience=PATIENCE, audit=path)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            for pair in batches:
                session.run(train_op, model.feed(pair))
                if np.isnan(pair[1]).any() and not fates:
                    fate = (semisync.PENDING, -1)
                    while fate == (semisync.PENDING, -1):
                        fate = tuple(session.run(optimizer.fate).tolist())
                    fates.append(fate)
    return hook, fates


def test_its_fate_is_known_and_audited(tmp_path):
    first, second, third = inputs(0)
    path = str(tmp_path / "audit")
    batches = [first, second, broken(first), third, first]
    hook, fates = train(path, batches)
    assert fates == [(semisync.NONFINITE, -1)]
    assert hook.ledger.fates["nonfinite"] == audit.check(path)["nonfinite"] == 1
    assert hook.ledger.balance()
    (event,) = [event for event in audit.read(path) if event["event"] == "nonfinite"]
    assert "/job:" in event["member"] or "/ " in event["member"]


def test_stop_ends_the_training_at_the_first_and_names_the_worker():
    first = inputs(0)[0]
    with pytest.raises(SemisyncError, match="a batch has a NaN or an infinity .* that of /"):
        train(None, [first, broken(first), first, first, first], on_nonfinite="stop")


@pytest.mark.long
def test_batches_that_are_all_broken_do_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(thread, "ENDURED", 6)
    first = inputs(0)[0]
    with pytest.raises(SemisyncError, match="the last 7 batches have a NaN or an infinity"):
        train(None, [first] + 50 * [broken(first)])


def test_another_setting_is_refused():
    with pytest.raises(UsageError, match="on_nonfinite"):
        semisync.GlobalBatchOptimizer(OPTIMIZERS["sgd"](), 2, on_nonfinite="skip")
