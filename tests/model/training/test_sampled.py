"""Losses over classes that each step samples: torch draws them, and trains as TensorFlow does."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import torch

from migrate import runtime
from migrate.model.training.build import build_training
from migrate.model.training.steps import compare_steps, recorded_step

CLASSES, SAMPLED = 40, 6
X = np.random.RandomState(0).randn(5, 3).astype("f")
LABELS = np.array([[0], [7], [39], [7], [2]])
FED = {"x:0": X, "label:0": LABELS}
BATCH = {"x": torch.tensor(X), "label": torch.tensor(LABELS)}


def default(loss):
    """The loss with TensorFlow's default sampler, log-uniform and without repeats."""
    return lambda *given: loss(*given, SAMPLED, CLASSES)


def uniform(loss):
    def sampled(weights, biases, labels, inputs):
        drawn = tf.random.uniform_candidate_sampler(labels, 1, SAMPLED, False, CLASSES)
        return loss(weights, biases, labels, inputs, SAMPLED, CLASSES, sampled_values=drawn)

    return sampled


LOSSES = {
    "sampled_softmax": default(tf.nn.sampled_softmax_loss),
    "nce": default(tf.nn.nce_loss),
    "uniform_nce": uniform(tf.nn.nce_loss),
    "uniform_softmax": uniform(tf.nn.sampled_softmax_loss),
}


@pytest.fixture(params=sorted(LOSSES))
def prefix(request, tmp_path):
    """Of a checkpoint after one step."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        label = tf.placeholder(tf.int64, [None, 1], name="label")
        table = tf.get_variable("table", [CLASSES, 4], use_resource="soft" in request.param)
        biases = tf.get_variable("biases", [CLASSES], initializer=tf.zeros_initializer())
        net = tf.tanh(tf.matmul(x, tf.get_variable("kernel", [3, 4])))
        loss = tf.reduce_mean(LOSSES[request.param](table, biases, label, net))
        tf.train.AdagradOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(tf.get_collection("train_op"), FED)
        return tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))


def steps(prefix, loss, count):
    """TensorFlow's steps, whose classes are those that torch is about to draw."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(prefix + ".meta").restore(session, prefix)
        (sampler,) = [o for o in graph.get_operations() if o.type.endswith("CandidateSampler")]
        draw = getattr(
            runtime, "log_uniform_candidates" if "Log" in sampler.type else "uniform_candidates"
        )
        unique = sampler.get_attr("unique")
        for number in range(count):
            torch.manual_seed(number)
            drawn = draw(BATCH["label"], SAMPLED, unique, CLASSES)
            fed = {**FED, **{t: one.numpy() for t, one in zip(sampler.outputs, drawn)}}
            before = session.run(loss, fed)
            session.run(tf.get_collection("train_op"), fed)
            values = session.run({v.op.name: v for v in tf.global_variables()})
            torch.manual_seed(number)
            yield recorded_step(BATCH, float(before), values)


@pytest.mark.few(2)
def test_the_steps_are_tensorflows_by_the_classes_that_torch_draws(prefix):
    training = build_training(prefix)
    report = compare_steps(training, steps(prefix, training.loss, 5))
    assert report.exceeded is None and report.neutral == {}
    assert report.compared == {"loss": 1, "parameter": 3, "slot": 3}


@pytest.mark.few(1)
def test_the_seed_decides_which_classes_are_drawn(prefix):
    training = build_training(prefix)

    def losses(seed):
        torch.manual_seed(seed)
        with torch.no_grad():
            return [float(training.module(BATCH)) for _ in range(3)]

    assert losses(1) == losses(1) != losses(2)
    assert len(set(losses(1))) == 3
