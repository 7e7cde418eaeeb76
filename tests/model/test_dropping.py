"""Dropout is one expression, and a graph that drops values whenever it runs is said to do so."""

import numpy as np
import pytest
import torch

from migrate import load_model
from semisync import cli
from tests.model.features import outputs_of
from tests.support.control_flow import control_flow

tf = pytest.importorskip("tensorflow").compat.v1

NOTE = "the graph drops values at random whenever it runs, in 'dropout/"


def saved(folder, trains, version):
    with control_flow(version), tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        hidden = tf.nn.dropout(x, rate=0.5, name="dropout") if trains else x
        if trains is None:
            training = tf.placeholder(tf.bool, [], name="training")
            hidden = tf.cond(training, lambda: tf.nn.dropout(x, rate=0.5), lambda: x)
        kernel = tf.get_variable("kernel", [4, 1])
        tf.identity(tf.matmul(hidden, kernel), name="logits")
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / "model"))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("trains, said", [(True, True), (False, False), (None, False)])
def test_inspect_and_convert_say_so(trains, said, version, tmp_path, capsys):
    prefix = saved(tmp_path, trains, version)
    assert cli.main(["inspect", prefix, "--graph"]) == 0
    assert (NOTE in capsys.readouterr().out) == said
    converting = ["convert", prefix, str(tmp_path / "out"), "--model", "--output", "logits"]
    assert cli.main(converting) == 0
    assert (NOTE in capsys.readouterr().out) == said


def of_2(x, keep):
    return tf.nn.dropout(x, rate=1 - keep)


def of_1_15(x, keep):
    rate = 1 - keep
    kept = tf.cast(tf.random.uniform(tf.shape(x)) >= rate, tf.float32)
    return x * (1.0 / (1 - rate)) * kept


def before(x, keep):
    return tf.realdiv(x, keep) * tf.floor(keep + tf.random.uniform(tf.shape(x)))


def loaded(folder, build):
    """The module of a graph that drops of x, [None, 4], as `build` does."""
    prefix = str(folder / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        keep = tf.placeholder(tf.float32, name="keep_prob")
        tf.identity(build(x, keep) + tf.get_variable("bias", [4]) * 0.0, name="scores")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
    return load_model(prefix, output="scores")


def dropped(module, **fed):
    """Which values of ones are dropped, bool [2000, 4], and what the others are."""
    torch.manual_seed(0)
    found = outputs_of(module, {"x": torch.ones(2000, 4), **fed})[0]
    return found == 0, {*found[found != 0].tolist()}


@pytest.mark.parametrize("form", [of_2, of_1_15, before])
def test_dropout_at_a_fed_rate_is_one_expression(form, tmp_path):
    module = loaded(tmp_path, form)
    assert module.source.count("runtime.dropout_where(") == 1
    assert "floor" not in module.source and ".float()" not in module.source
    for mode in (True, False):
        zeros, others = dropped(module.train(mode), keep_prob=torch.tensor(0.75))
        assert abs(zeros.mean() - 0.25) < 0.02 and others == {np.float32(1 / 0.75)}
        zeros, others = dropped(module, keep_prob=torch.tensor(1.0))
        assert not zeros.any() and others == {1}


@pytest.mark.parametrize("form", [of_2, of_1_15, before])
def test_dropout_at_a_constant_rate_is_torchs(form, tmp_path):
    module = loaded(tmp_path, lambda x, _: form(x, tf.constant(0.75)))
    assert "F.dropout(" in module.source and ", 0.25, self.training)" in module.source
    assert not dropped(module.eval())[0].any()


@pytest.mark.parametrize("shape", [lambda x: [tf.shape(x)[0], 1], lambda x: [1, 4]])
@pytest.mark.parametrize("fed", [True, False])
def test_what_is_dropped_together_stays_together(shape, fed, tmp_path):
    def build(x, keep):
        return tf.nn.dropout(x + 0.0 * x, rate=1 - keep if fed else 0.25, noise_shape=shape(x))

    module = loaded(tmp_path, build).train()
    zeros, others = dropped(module, **{"keep_prob": torch.tensor(0.75)} if fed else {})
    along = 1 if shape(tf.zeros([2, 4]))[-1] == 1 else 0
    assert (zeros.all(along) == zeros.any(along)).all()
    assert others == {np.float32(1 / 0.75)}
    assert "dropout" in module.source


def test_what_scales_by_another_number_is_no_dropout(tmp_path):
    def build(x, keep):
        return x * 3.0 * tf.cast(tf.random.uniform(tf.shape(x)) >= 0.25, tf.float32)

    module = loaded(tmp_path, build)
    assert "dropout" not in module.source
    zeros, others = dropped(module.eval())
    assert abs(zeros.mean() - 0.25) < 0.02 and others == {3}
