"""A cond that only chooses between BatchNorms, which both run, as many jobs write it."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import tensorflow.compat.v1 as tf

from migrate.behaviour.forward import compare_forward
from migrate.behaviour.setting import Setting
from semisync.cli import main
from tests.support.control_flow import control_flow
from tests.support.require import forked_tensorflow


def _chosen(x, training):
    with tf.variable_scope("bn", reuse=tf.AUTO_REUSE):
        mean = tf.get_variable("mean", [3], initializer=tf.zeros_initializer(), trainable=False)
        variance = tf.get_variable("var", [3], initializer=tf.ones_initializer(), trainable=False)
    of_batch, spread = tf.nn.moments(x, [0])
    moved = [
        tf.assign_sub(mean, (mean - of_batch) * 0.1),
        tf.assign_sub(variance, (variance - spread) * 0.1),
    ]
    with tf.control_dependencies(moved):
        trained = tf.nn.batch_normalization(x, of_batch, spread, None, None, 1e-3)
    served = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
    return tf.cond(training, lambda: trained, lambda: served)


def test_scoring_does_not_move_the_statistics_that_it_scores_with(tmp_path, capsys):
    rows = np.random.RandomState(0).normal(2.0, 3.0, [40, 3]).astype(np.float32)
    with tf.Graph().as_default(), control_flow(1), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        training = tf.placeholder(tf.bool, [], name="training")
        kernel = tf.get_variable("kernel", [3, 1])
        logits = tf.matmul(_chosen(x, training), kernel, name="logits")[:, 0]
        loss = tf.losses.sigmoid_cross_entropy(y, logits)
        train_op = tf.train.AdagradOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(train_op, {x: rows, y: rows[:, 0] > 2, training: True})
        prefix = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    path = str(tmp_path / "rows.parquet")
    pyarrow.parquet.write_table(pa.table({"x": list(rows)}), path)
    out = str(tmp_path / "converted")
    assert main(["convert", prefix, out, "--model"]) == 0, capsys.readouterr()
    setting = Setting(python=forked_tensorflow(sys.executable))
    assert compare_forward(prefix, out, path, setting, onnx=False).equal


@pytest.mark.few(1)
@pytest.mark.parametrize("keep", [None, 0.5])
def test_a_cond_on_a_constant_trains_and_serves_as_its_branch(keep, tmp_path, capsys):
    """A dropout whose rate is fed draws by the shape of what moves the statistics."""
    rows = np.random.RandomState(0).normal(2.0, 3.0, [40, 3]).astype(np.float32)
    with tf.Graph().as_default(), control_flow(1), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        step = tf.train.get_or_create_global_step()
        kernel = tf.get_variable("kernel", [3, 1])
        net = _chosen(x, tf.constant(True))
        fed = {} if keep is None else {tf.placeholder(tf.float32, [], name="keep"): keep}
        for rate in fed:
            net = tf.nn.dropout(net, keep_prob=rate)
        logits = tf.matmul(net, kernel, name="logits")[:, 0]
        loss = tf.losses.sigmoid_cross_entropy(y, logits)
        train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, step)
        session.run(tf.global_variables_initializer())
        session.run(train_op, {x: rows, y: rows[:, 0] > 2, **fed})
        prefix = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    path = str(tmp_path / "rows.parquet")
    pyarrow.parquet.write_table(pa.table({"x": list(rows), "y": rows[:, 0] > 2}), path)
    out = str(tmp_path / "converted")
    assert main(["convert", prefix, out, "--model"]) == 0, capsys.readouterr()
    python = forked_tensorflow(sys.executable)
    setting = Setting(python=python, feeds={"keep": 1.0} if fed else {})
    assert compare_forward(prefix, out, path, setting, onnx=False).equal
    steps = ["--steps", "2", "--batch-size", "16", "--data", path, "--tf-python", python]
    steps += ["--feed", f"keep={keep}"] if fed else []
    assert main(["verify", prefix, out, *steps]) == 0, capsys.readouterr()
