"""The state of optimizers that a checkpoint lacks starts over, as in TensorFlow."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import torch

import migrate
from migrate.model.training.build import build_training
from migrate.model.training.steps import compare_steps, recorded_step
from semisync.common.errors import BadInput
from tests.model.training.graphs import X, Y, regression

IDS = np.array([5, 0, 5])
BATCH = {"x": torch.tensor(X), "y": torch.tensor(Y), "ids": torch.tensor(IDS)}
FED = {"x:0": X, "y:0": Y, "ids:0": IDS}


class Job:
    """A job that has saved a checkpoint, `prefix`, after two steps.

    Args:
        build: (loss) -> the training op.
        saved: () -> what the Saver saves; None: what exists before the training op is built.
    """

    def __init__(self, folder, build, saved=None):
        self.prefix = str(folder / "model.ckpt")
        with tf.Graph().as_default(), tf.Session() as session:
            loss = self._loss()
            saver = None if saved else tf.train.Saver()
            train_op = build(loss)
            saver = saver or tf.train.Saver(saved())
            session.run(tf.global_variables_initializer())
            for _ in range(2):
                session.run(train_op, FED)
            saver.save(session, self.prefix)

    def _loss(self):
        ids = tf.placeholder(tf.int64, [None], name="ids")
        with tf.variable_scope("t", use_resource=False):
            table = tf.get_variable("table", [8, 200], partitioner=tf.fixed_size_partitioner(2))
        loss, _ = regression()
        rows = tf.nn.embedding_lookup(list(table), ids, partition_strategy="div")
        return loss + tf.reduce_sum(tf.square(rows)) * 0.1

    def steps(self, loss, count=4):
        """TensorFlow's, after a restart from the checkpoint."""
        with tf.Graph().as_default(), tf.Session() as session:
            saver = tf.train.import_meta_graph(self.prefix + ".meta")
            session.run(tf.global_variables_initializer())
            saver.restore(session, self.prefix)
            for _ in range(count):
                before = session.run(loss, FED)
                session.run(tf.get_collection("train_op"), FED)
                yield recorded_step(BATCH, float(before), self._values(session))

    def _values(self, session):
        parts = {}
        for variable in tf.global_variables():
            info = variable._get_save_slice_info()
            parts.setdefault(info.full_name if info else variable.op.name, []).append(variable)
        found = session.run(parts)
        return {name: np.concatenate(of) if of[1:] else of[0] for name, of in found.items()}


def decayed():
    return tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 2, 0.5)


OPTIMIZERS = {
    "adagrad": lambda: tf.train.AdagradOptimizer(decayed(), 0.3),
    "adam": lambda: tf.train.AdamOptimizer(0.01, 0.8, epsilon=1e-3),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, initial_accumulator_value=0.2),
    "gradient_descent": lambda: tf.train.GradientDescentOptimizer(decayed()),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(decayed(), momentum=0.5, centered=True),
}


def minimized(optimizer):
    return lambda loss: optimizer().minimize(loss, tf.train.get_or_create_global_step())


@pytest.mark.long
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.few(2)
def test_a_saver_that_is_older_than_the_optimizer(name, tmp_path):
    job = Job(tmp_path, minimized(OPTIMIZERS[name]))
    training = build_training(job.prefix)
    report = compare_steps(training, job.steps(training.loss))
    assert report.steps == 4 and report.exceeded is None
    slots = {"adagrad": 1, "gradient_descent": 0, "rmsprop": 3}.get(name, 2)
    powers = 2 if name == "adam" else 0
    assert len(training.optimizer.begun) == 2 * slots + powers + 1
    assert report.compared.get("slot", 0) == 2 * slots
    assert report.compared["counter"] == powers + 1


def but(*parts):
    """A function to all variables but those that have one of these in their names."""
    return lambda: [v for v in tf.global_variables() if not any(one in v.op.name for one in parts)]


def test_what_the_saver_left_out_begins_and_the_rest_goes_on(tmp_path):
    job = Job(tmp_path, minimized(OPTIMIZERS["adam"]), but("/Adam"))
    training = build_training(job.prefix)
    assert sorted(training.optimizer.begun) == [
        "t/table/Adam",
        "t/table/Adam_1",
        "weight/Adam",
        "weight/Adam_1",
    ]
    assert int(training.optimizer.counters["global_step"]) == 2
    assert float(training.optimizer.counters["beta1_power"]) == pytest.approx(0.8**3)
    assert compare_steps(training, job.steps(training.loss)).exceeded is None


def test_a_rate_in_a_variable_begins_with_the_slots(tmp_path):
    def build(loss):
        rate = tf.get_variable("rate", initializer=0.01 * 3, trainable=False)
        return tf.train.AdagradOptimizer(rate / 2.0).minimize(loss)

    job = Job(tmp_path, build)
    training = build_training(job.prefix)
    assert sorted(training.optimizer.begun) == ["rate", "t/table/Adagrad", "weight/Adagrad"]
    assert compare_steps(training, job.steps(training.loss)).exceeded is None


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (["weight/Adam_1"], "has no slot 'weight/Adam_1' of 'weight'"),
        (["table/part_1/Adam"], "'t/table/Adam': its slices hold 800 of 1600 elements"),
        (["beta1_power"], "has no variable 'beta1_power'"),
    ],
)
def test_a_part_of_an_optimizers_state_is_refused(lacking, said, tmp_path):
    job = Job(tmp_path, minimized(OPTIMIZERS["adam"]), but(*lacking))
    with pytest.raises(BadInput, match=said):
        build_training(job.prefix)


def test_one_optimizer_goes_on_while_another_begins(tmp_path):
    def build(loss):
        weight, table = tf.trainable_variables()[-1:], tf.trainable_variables()[:-1]
        one = tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=weight)
        return tf.group(one, tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, var_list=table))

    job = Job(tmp_path, build, but("Momentum"))
    training = build_training(job.prefix)
    assert list(training.optimizer.begun) == ["t/table/Momentum"]
    assert compare_steps(training, job.steps(training.loss)).exceeded is None


def test_a_variable_of_the_model_never_begins(tmp_path):
    job = Job(tmp_path, minimized(OPTIMIZERS["adagrad"]), lambda: tf.trainable_variables()[:-1])
    with pytest.raises(BadInput, match="has no variable 'weight'"):
        build_training(job.prefix)


def test_a_slot_that_is_drawn_at_random_never_begins(tmp_path):
    class Drawn(tf.train.MomentumOptimizer):
        def _create_slots(self, variables):
            for one in variables:
                drawn = tf.random_normal_initializer()
                self._get_or_make_slot_with_initializer(
                    one, drawn, one.shape, tf.float32, "momentum", self._name
                )

    job = Job(tmp_path, lambda loss: Drawn(0.1, 0.9).minimize(loss))
    with pytest.raises(BadInput, match="has no slot 'weight/Momentum'"):
        build_training(job.prefix)


def test_what_began_anew_is_left_out_on_the_way_back(tmp_path):
    job = Job(tmp_path, minimized(OPTIMIZERS["adam"]))
    training = build_training(job.prefix)
    training.module(BATCH).backward()
    training.optimizer.step()
    written = migrate.write_checkpoint(training, tmp_path / "back", original=job.prefix)
    assert any("'beta1_power' and 6 more, which the original lacks" in one for one in written.notes)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(written.prefix + ".meta").restore(session, written.prefix)
        (weight,) = [v for v in tf.trainable_variables() if v.op.name == "weight"]
        found = session.run(weight)
    (target,) = [one for one in training.optimizer.targets if one.name == "weight"]
    assert found.ravel().tolist() == target.tensor.detach().ravel().tolist()
