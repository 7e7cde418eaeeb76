"""What a job feeds to an optimizer, in a rewritten graph."""

import collections

import numpy as np
import pytest

import graph_rewrite
import semisync
from semisync import cli
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError
from tests.support.variables import load
from tests.wrap.one_process import PATIENCE, M, Model, Remember, assert_close, inputs, union

pytestmark = pytest.mark.one_tensorflow

STEPS = 3
Exported = collections.namedtuple("Exported", "meta train ids targets rate")
OPTIMIZERS = {
    "sgd": tf.train.GradientDescentOptimizer,
    "adagrad": tf.train.AdagradOptimizer,
    "adam": tf.train.AdamOptimizer,
    "ftrl": tf.train.FtrlOptimizer,
    "rmsprop": tf.train.RMSPropOptimizer,
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.5),
}
RATES = {
    "placeholder": lambda: tf.placeholder(tf.float32, [], name="rate"),
    "without a shape": lambda: tf.placeholder(tf.float32, name="rate"),
    "with a default": lambda: tf.placeholder_with_default(7.0, [], name="rate"),
    "constant": lambda: tf.constant(7.0, name="rate"),
}


def build(optimizer, make_rate, scaled=lambda rate, step: rate, resource=False):
    """A job whose rate is fed; returns its model, its train op and the rate."""
    model = Model(resource)
    rate = make_rate()
    tf.summary.scalar("rate", scaled(rate, model.step))
    optimizer = OPTIMIZERS[optimizer](scaled(rate, model.step))
    return model, optimizer.minimize(model.loss(), global_step=model.step), rate


def export(*args, **options):
    with tf.Graph().as_default():
        model, train, rate = build(*args, **options)
        names = [each.name for each in (train, model.ids, model.targets, rate)]
        return Exported(tf.train.export_meta_graph(), *names)


def rate_of(step):
    return 0.1 / (step + 1)


def train(exported, rates=rate_of, **options):
    """Trains M batches a step; returns the variables before and after, and each batch's summary."""
    meta, _ = graph_rewrite.semi_synchronize(exported.meta, M, paced=True, **options)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        hook = semisync.restore_hook(True, patience=PATIENCE)
        memory, summaries = Remember(), []
        with tf.train.MonitoredTrainingSession(hooks=[hook, memory]) as session:
            for step in range(STEPS):
                for ids, targets in inputs(step):
                    feed = {exported.ids: ids, exported.targets: targets}
                    if rates:
                        feed[exported.rate] = rates(step)
                    summary = session.run([exported.train, "rate_1:0"], feed)[1]
                    summaries.append(tf.Summary.FromString(summary).value[0].simple_value)
    return memory.before, memory.after, summaries


def expected(before, *args, rates=rate_of, **options):
    """What TensorFlow trains with the unions of the batches."""
    with tf.Graph().as_default(), tf.Session() as session:
        model, step_op, rate = build(*args, **options)
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        load(session, {variable: before[name] for name, variable in variables.items()})
        for step in range(STEPS):
            feed = model.feed(union(step))
            feed[rate] = rates(step)
            session.run(step_op, feed)
        return session.run(variables)


@pytest.mark.parametrize(
    "optimizer, resource",
    [("adam", False), ("ftrl", False), ("rmsprop", False), ("momentum", True), ("sgd", True)],
)
@pytest.mark.few(1)
def test_a_placeholder_goes_with_its_batch(optimizer, resource):
    args = optimizer, RATES["placeholder"]
    before, after, summaries = train(export(*args, resource=resource))
    assert_close(after, expected(before, *args, resource=resource))
    np.testing.assert_allclose(summaries, np.repeat([rate_of(s) for s in range(STEPS)], M))


@pytest.mark.long
@pytest.mark.parametrize("rate", ["constant", "with a default", "without a shape"])
@pytest.mark.few(1)
def test_every_kind_of_rate_goes_with_its_batch(rate):
    args = "adagrad", RATES[rate]
    before, after, _ = train(export(*args))
    assert_close(after, expected(before, *args))


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.few(1)
def test_what_a_schedule_makes_of_it_is_the_chiefs(optimizer):
    """The summary, which each worker computes, keeps the worker's own."""

    def halved(rate, step):
        return rate * 0.5 ** tf.cast(step, tf.float32)

    args = optimizer, RATES["placeholder"], halved
    before, after, summaries = train(export(*args))
    assert_close(after, expected(before, *args))
    np.testing.assert_allclose(summaries[:M], [rate_of(0)] * M)


def test_a_number_that_the_loss_takes_stays_the_workers():
    """Such as the share of units that dropout keeps."""

    def job():
        model = Model()
        keep = tf.placeholder(tf.float32, [], name="keep")
        optimizer = tf.train.AdagradOptimizer(0.1)
        optimizer.minimize(model.loss() * keep, global_step=model.step)

    with tf.Graph().as_default():
        job()
        meta = tf.train.export_meta_graph()
    _, report = graph_rewrite.semi_synchronize(meta, M)
    assert "keep" not in report.fed


def test_a_number_that_the_loss_and_the_rate_take_is_refused():
    with tf.Graph().as_default():
        model = Model()
        number = tf.placeholder(tf.float32, [], name="number")
        optimizer = tf.train.AdagradOptimizer(0.1 * number)
        optimizer.minimize(model.loss() * number, global_step=model.step)
        meta = tf.train.export_meta_graph()
    with pytest.raises(BadInput, match="which depends on number .Placeholder.: the chief applies"):
        graph_rewrite.semi_synchronize(meta, M)


@pytest.mark.parametrize("optimizer", ["adagrad", "sgd", "adam"])
@pytest.mark.few(1)
def test_the_report_names_what_may_be_fed(optimizer):
    """The training ops' definitions call it lr, or alpha."""
    _, report = graph_rewrite.semi_synchronize(export(optimizer, RATES["constant"]).meta, M)
    assert report.fed == ["rate"]
    assert "fed      may be, and goes with each batch: rate" in str(report)


@pytest.mark.long
def test_a_rate_that_is_set_is_fixed(tmp_path, capsys):
    exported = export("adagrad", RATES["placeholder"])
    path, out = tmp_path / "in.meta", tmp_path / "out.meta"
    path.write_bytes(exported.meta.SerializeToString())
    code = cli.main(
        ["rewrite", str(path), str(out), "--batches-per-step", str(M), "--set", "rate=0.25"]
    )
    assert code == 0
    assert "rate keeps the value 0.25" in capsys.readouterr().out
    before, after, _ = train(exported, rates=None, fixed={"rate": 0.25})
    args = "adagrad", RATES["placeholder"]
    assert_close(after, expected(before, *args, rates=lambda step: 0.25))


def test_to_feed_what_is_fixed_is_refused():
    exported = export("adagrad", RATES["placeholder"])
    with pytest.raises(UsageError, match="rate:0 is fed, and would have no effect"):
        train(exported, fixed={"rate": 0.25})


@pytest.mark.parametrize("name", ["nothing", "kernel", "Placeholder", "kernel/initial_value"])
def test_only_a_number_can_be_set(name):
    meta = export("adagrad", RATES["placeholder"]).meta
    with pytest.raises(UsageError, match="--set {}=1".format(name)):
        graph_rewrite.semi_synchronize(meta, M, fixed={name: 1.0})


@pytest.mark.parametrize("text, says", [("rate", "is not NAME=VALUE"), ("rate=x", "not a number")])
def test_what_is_set_is_a_number(text, says, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["rewrite", "in", "out", "--batches-per-step", "2", "--set", text])
    assert ended.value.code == 3
    assert says in capsys.readouterr().err
