"""A kernel that becomes nn.Linear and is used in another way too is the same matrix in both."""

import numpy as np
import pytest
import torch

from migrate.model.load import load_model
from migrate.model.training.build import build_training
from tests.model.features import outputs_of
from tests.support.control_flow import control_flow

tf = pytest.importorskip("tensorflow").compat.v1

RATE = 0.1
X = np.random.RandomState(0).randn(6, 4).astype(np.float32)
IDS = np.int64([0, 3, 1, 1, 2, 0])

# From features [n, 4], ids [n] and a kernel [4, width] to [n, any]; the tied one needs a product.
USES = {
    "linear": lambda x, ids, kernel: tf.matmul(x, kernel),
    "biased": lambda x, ids, kernel: tf.nn.bias_add(tf.matmul(x, kernel), bias(kernel)),
    "tied": lambda x, ids, kernel: tf.matmul(tf.matmul(x, kernel), kernel, transpose_b=True),
    "squares": lambda x, ids, kernel: tf.matmul(tf.square(x), tf.square(kernel)),
    "bilinear": lambda x, ids, kernel: tf.einsum("ni,ij,nj->n", x, kernel, narrow(x, kernel)),
    "normed": lambda x, ids, kernel: tf.matmul(x, kernel / tf.norm(kernel, axis=0)),
    "sliced": lambda x, ids, kernel: tf.matmul(x[:, 1:3], kernel[1:3]),
    "split": lambda x, ids, kernel: tf.matmul(x[:, 2:], tf.split(kernel, 2)[1]),
    "gathered": lambda x, ids, kernel: tf.gather(kernel, ids),
    "looked up": lambda x, ids, kernel: tf.nn.embedding_lookup(kernel, ids),
    "tensordot": lambda x, ids, kernel: tf.tensordot(x, kernel, [[1], [0]]),
    "conv1d": lambda x, ids, kernel: tf.nn.conv1d(x[:, None], kernel[None], 1, "SAME")[:, 0],
    "penalty": lambda x, ids, kernel: x * tf.nn.l2_loss(kernel[0]),
    "flat": lambda x, ids, kernel: x[:, :1] * tf.reshape(kernel, [1, -1]),
    "gram": lambda x, ids, kernel: tf.matmul(tf.matmul(x, kernel), kernel, False, True) * x,
}
LAYERS = ["biased", "linear", "tied"]  # each use goes with these, and with itself


def bias(kernel):
    return tf.get_variable("bias", kernel.shape[1:], initializer=tf.random_normal_initializer())


def narrow(x, kernel):
    return x[:, : kernel.shape[1]]


def written(prefix, width, uses):
    """Saves a job with these uses of one kernel; what TensorFlow scores before and after a step."""
    with control_flow(1), tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        ids = tf.placeholder(tf.int64, [None], name="ids")
        with tf.variable_scope("layer", initializer=tf.random_normal_initializer()):
            kernel = tf.get_variable("weight", [4, width])
            found = [tf.reshape(USES[use](x, ids, kernel), [tf.shape(x)[0], -1]) for use in uses]
        scores = tf.concat(found, 1, name="scores")
        step = tf.train.AdagradOptimizer(RATE).minimize(tf.reduce_mean(tf.square(scores)))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
        fed = {x: X, ids: IDS}
        before = session.run(scores, fed)
        session.run(step, fed)
        return before, session.run(scores, fed)


@pytest.mark.few(2)
@pytest.mark.parametrize("second", sorted(USES))
def test_every_use_of_a_kernel_reads_what_tensorflow_reads(second, tmp_path):
    features = {"x": torch.tensor(X), "ids": torch.tensor(IDS)}
    for number, first in enumerate(sorted({*LAYERS, second})):
        if first == second == "biased":
            continue  # one bias has one name
        uses, prefix = (first, second), str(tmp_path / str(number))
        width = 3 + number % 2  # a square kernel hides a wrong shape, not a wrong value
        before, after = written(prefix, width, uses)
        module = load_model(prefix, output="scores")
        (found,) = outputs_of(module.eval(), features)
        np.testing.assert_allclose(found, before, 1e-5, 1e-5, err_msg=str(uses))
        training = build_training(prefix, output="scores")
        training.module(features)[0].backward()
        training.optimizer.step()
        found = training.module(features)[1].detach()
        np.testing.assert_allclose(found, after, 1e-4, 1e-4, err_msg=str(uses))
