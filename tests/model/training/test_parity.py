"""Training goes on in torch as it does in TensorFlow: the same losses, variables and slots, step
for step, from the same checkpoint on the same batches."""

import numpy as np
import pytest

from migrate.model.training.graph_optimizer import gradient_of
from migrate.model.training.partitions import split
from migrate.model.training.steps import TOLERANCE, BegunStep, compare_steps
from tests.model.training.conftest import OF_2
from tests.model.training.recorded import zoo_steps, zoo_training

# With a batch of one row, the fourth, its Dice divides x - mean(x), which is 0, by 1e-9: what the
# gradients hold is rounding errors.
UNTIL = {"din_batch_dice": 3}

# Biases before a BatchNorm, and of an attention's keys and of its scores before the softmax: the
# loss does not depend on them.
NEUTRAL = {
    "attention": {
        "SASRec/num_blocks_0/self_attention/dense_1/bias",
        "SASRec/num_blocks_1/self_attention/dense_1/bias",
    },
    "conv": {"conv2/bias"},
    "deepfm": {"bias_0", "bias_1"},
    "din": {"f2_att/bias"},
    "din_batch_dice": {"f2_att/bias"},
    "din_prelu": {"f2_att/bias"},
    "wide_and_deep": {"deep/dense/bias", "deep/dense_1/bias"},
}

# Those whose rates the graph computes are followed until each schedule has turned.
LONG = ["adagrad", "adam", "bert", "fed", "momentum", "nesterov", "rmsprop", "sgd"]
SHORT = [
    "adadelta", "adam_of_old", "adam_ref", "bert_resource", "centered_rmsprop", "ftrl",
    "ftrl_shrinkage", "lazy_adam", "lazy_adam_resource", "proximal_adagrad", "proximal_sgd",
    "sgd_by_value", "sgd_resource",
]  # fmt: skip


@pytest.mark.long
def test_every_model_takes_tensorflows_steps(zoo_of_each):
    exceeded = {}
    for model in zoo_of_each:
        name = model.said["name"]
        report = compare_steps(zoo_training(model), zoo_steps(model)[: UNTIL.get(name)])
        assert report.steps == UNTIL.get(name, 5)
        assert set(report.neutral) <= NEUTRAL.get(name, set()), name
        compared = report.compared["parameter"] + len(report.neutral)
        assert compared >= len(model.said["trainable"]), name
        if report.exceeded is not None:
            exceeded[name] = report.exceeded
    assert exceeded == {}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("jobs", "name", "steps"),
    [
        *(("jobs_tf1", name, 30) for name in LONG),
        *(("jobs_tf1", name, 20) for name in SHORT),
        *(("jobs_tf2", name, 20) for name in OF_2),
    ],
)
def test_the_steps_of_each_optimizer_are_tensorflows(jobs, name, steps, request):
    job = request.getfixturevalue(jobs)[name]
    report = compare_steps(job.training(), job.steps[:steps])
    assert report.steps == steps
    assert report.exceeded is None
    assert report.neutral == {}
    assert report.compared["parameter"] == 8  # of 10 variables: three are partitions of one
    assert set(report.largest) >= {"loss", "parameter", "statistic", "counter"}


def test_the_steps_of_two_optimizers_are_not_mixed_up(jobs_tf1):
    one, other = jobs_tf1["momentum"], jobs_tf1["nesterov"]
    report = compare_steps(one.training(), other.steps[:2])
    assert report.exceeded is not None


@pytest.mark.long
def test_the_learning_rate_is_the_graphs_at_every_step(jobs_tf1):
    for name in ("sgd", "momentum", "nesterov", "adagrad", "adam", "rmsprop", "fed"):
        job = jobs_tf1[name]
        training = job.training()
        training.module(job.steps[0].batch).backward()  # the rate does not depend on the gradient
        for step, rate in zip(job.steps, job.rates):
            feeds = training.optimizer.feeds
            feeds.update((key, step.batch[key]) for key in feeds)
            training.optimizer.step()
            (group, *_) = training.optimizer.param_groups
            assert np.isclose(group["lr"], rate, rtol=1e-6), name


def test_a_wrong_slot_is_found_and_named(jobs_tf1):
    job = jobs_tf1["adagrad"]
    training = job.training()
    (target,) = [t for t in training.optimizer.targets if t.name == "model/square"]
    state = training.optimizer.state[target.tensor]
    state["sum"] = state["sum"].t()  # a square kernel, turned
    report = compare_steps(training, job.steps[:2])
    assert report.exceeded is not None
    assert report.exceeded.name in ("model/square", "model/square/Adagrad")
    assert report.exceeded.step == 1
    assert report.exceeded.relative > TOLERANCE


@pytest.mark.parametrize(("other", "equal"), [(1e-30, True), (1e-3, False)])
def test_a_gradient_far_below_the_rounding_of_the_others_may_come_out_as_nothing(
    jobs_tf1, other, equal
):
    job = jobs_tf1["sgd"]
    training, step = job.training(), job.steps[0]
    training.module(step.batch).backward()
    target = next(one for one in training.optimizer.targets if one.sparse)
    ((node, (values, rows)), *_) = split(target, gradient_of(target)).items()
    unused = next(row for row in range(target.tensor.shape[0]) if row not in rows)
    given = np.append(values.numpy(), np.full_like(values[:1], other), 0)
    gradients = {node: (given, np.append(rows.numpy(), unused))}
    noise = {node: np.zeros((len(np.unique(gradients[node][1])), values.shape[1]))}
    begun = BegunStep(step.batch, step.loss, gradients, lambda: (0.0, noise), step.finish)
    assert (compare_steps(job.training(), [begun]).exceeded is None) == equal
