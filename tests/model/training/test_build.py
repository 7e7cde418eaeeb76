"""What build_training and build_optimizer take over from a graph, and what they refuse."""

import pathlib
import platform
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import torch
from tensorflow.core.protobuf import meta_graph_pb2

from migrate import open_checkpoint
from migrate.graph.find import find_meta_graph
from migrate.graph.training import find_training
from migrate.model.load import load_model
from migrate.model.training.build import build_optimizer, build_training
from migrate.model.training.steps import compare_steps, recorded_step
from semisync.common.errors import BadInput, UsageError
from tests.model.training.graphs import X, Y, regression, saved
from tests.support.control_flow import control_flow
from tests.support.require import shared

BATCH = {"x": torch.tensor(X), "y": torch.tensor(Y)}


def momentum():
    loss, _ = regression()
    return tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def step(training, batch=None):
    """One step; returns the loss."""
    training.optimizer.zero_grad()
    loss = training.module(BATCH if batch is None else batch)
    loss.backward()
    training.optimizer.step()
    return float(loss.detach())


def refusal(prefix, error=BadInput, **options):
    with pytest.raises(error) as raised:
        build_training(prefix, **options)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_the_loss_is_the_tensor_whose_gradients_are_applied(tmp_path):
    training = build_training(saved(tmp_path, momentum))
    assert training.loss == "loss:0"
    assert training.optimizer.param_groups[0]["optimizer"] == "Momentum"


PAGES = """
import resource, sys
import numpy
from migrate import build_training
build_training(sys.argv[1])
def faults():
    for _ in range(5):
        [numpy.ones(3 << 20) for _ in range(6)]  # of 6,144 pages each
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(-faults() + faults())
"""


@pytest.mark.long
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's allocator is meant")
def test_a_process_that_trains_keeps_the_memory_that_a_step_frees(tmp_path):
    words = [sys.executable, "-W", "ignore", "-c", PAGES, saved(tmp_path, momentum)]
    assert int(subprocess.run(words, capture_output=True, text=True, check=True).stdout) < 6144


def test_a_step_that_is_collected_among_what_is_trained_is_a_counter(tmp_path):
    def build():
        loss, _ = regression()
        step = tf.Variable(0, name="Variable")
        rate = tf.train.exponential_decay(0.1, step, 1, 0.5)
        return tf.train.GradientDescentOptimizer(rate).minimize(loss, step)

    training = build_training(saved(tmp_path, build))
    assert step(training) > step(training)
    assert training.optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**2)


def test_a_loss_that_was_cut_away_is_not_taken_for_what_it_is_computed_from(tmp_path):
    prefix = saved(tmp_path, momentum)
    meta = pathlib.Path(prefix + ".meta")
    whole = meta_graph_pb2.MetaGraphDef.FromString(meta.read_bytes())
    kept = [one.name for one in whole.graph_def.node if one.name.startswith("save/")]
    part = tf.graph_util.extract_sub_graph(whole.graph_def, [*kept, "Momentum"])
    assert "loss" not in {one.name for one in part.node}
    whole.graph_def.CopyFrom(part)
    meta.write_bytes(whole.SerializeToString())
    assert "the loss 'loss', whose gradients 'gradients/' computes, was cut away" in refusal(prefix)
    assert build_training(prefix, loss="Square").loss == "Square:0"


def _decay(weight):
    return 0.5 * tf.nn.l2_loss(weight)


SUMS = {
    "two terms": lambda loss, weight: tf.add(loss, _decay(weight), name="total"),
    "a sum of sums": lambda loss, weight: tf.add(
        tf.math.add_n([loss, _decay(weight), tf.reduce_sum(weight)]), _decay(weight), name="total"
    ),
    "a term that the other reads": lambda loss, weight: tf.add(loss, tf.exp(loss), name="total"),
    "a constant among them": lambda loss, weight: tf.add(loss + 1.0, _decay(weight), name="total"),
}


@pytest.mark.parametrize("form", sorted(SUMS))
def test_the_loss_is_the_whole_sum_whose_gradients_are_taken(form, tmp_path):
    def build():
        loss, weight = regression()
        total = SUMS[form](loss, weight)
        tf.add(total, tf.reduce_sum(tf.get_variable("other", [2])), name="beyond")
        opt = tf.train.GradientDescentOptimizer(0.1)
        return opt.apply_gradients(zip(tf.gradients(total, [weight]), [weight]), name="train")

    prefix = saved(tmp_path, build)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(prefix + ".meta")
        saver.restore(session, prefix)
        feeds = {"x:0": X, "y:0": Y}
        expected = session.run("total:0", feeds)
        session.run("train", feeds)
        weight = session.run(tf.trainable_variables()[0])
    training = build_training(prefix)
    assert training.loss == "total:0"
    assert step(training) == pytest.approx(expected, rel=1e-5)
    (parameter,) = training.module.parameters()
    np.testing.assert_allclose(parameter.detach().flatten(), weight.flatten(), rtol=1e-5)


def test_a_state_that_a_loop_begins_with_and_others_read_is_trained_through(tmp_path):
    """As recurrent graph networks do; the gradient's loop then ends behind an Identity."""

    def build():
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        weight = tf.get_variable(
            "weight", [2, 2], initializer=tf.constant_initializer([[0.3], [0.1]])
        )
        state = tf.matmul(x, weight)
        _, last = tf.while_loop(
            lambda i, _: i < 3, lambda i, s: (i + 1, tf.tanh(s) * s + state), [0, state]
        )
        loss = tf.add(tf.reduce_mean(last[:, 0] * last[:, 1]), tf.nn.l2_loss(weight), name="loss")
        tf.placeholder(tf.float32, [None], name="y")
        return tf.train.AdamOptimizer(0.1).minimize(loss)

    with control_flow(1):
        prefix = saved(tmp_path, build)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(prefix + ".meta").restore(session, prefix)
        feeds = {"x:0": X, "y:0": Y}
        expected = session.run("loss:0", feeds)
        session.run("Adam", feeds)
        weight = session.run(tf.trainable_variables()[0])
    training = build_training(prefix, loss="loss")
    assert step(training) == pytest.approx(expected, rel=1e-5)
    (parameter,) = training.module.parameters()
    np.testing.assert_allclose(parameter.detach().T, weight, rtol=1e-5)


def test_gradients_of_several_losses_that_nothing_adds_up_are_refused(tmp_path):
    def build():
        loss, weight = regression()
        (gradient,) = tf.gradients([loss, _decay(weight)], [weight])
        return tf.train.GradientDescentOptimizer(0.1).apply_gradients([(gradient, weight)])

    message = refusal(saved(tmp_path, build))
    assert "'gradients/' computes the gradients of 'loss' + 'mul', which no tensor" in message


def test_a_graph_that_was_imported_under_a_scope_trains_on(tmp_path):
    plain = saved(tmp_path, momentum)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(plain + ".meta", import_scope="old")
        (weight,) = tf.trainable_variables()
        saver = tf.train.Saver({one.op.name: one for one in tf.global_variables()})
        session.run(tf.global_variables_initializer())
        session.run("old/Momentum", {"old/x:0": X, "old/y:0": Y})
        (tmp_path / "imported").mkdir()
        prefix = saver.save(session, str(tmp_path / "imported" / "model.ckpt"))
        session.run("old/Momentum", {"old/x:0": X, "old/y:0": Y})
        expected = session.run(weight)
    training = build_training(prefix)
    step(training, {f"old/{name}": value for name, value in BATCH.items()})
    (found,) = training.module.parameters()
    assert found.detach().numpy().ravel() == pytest.approx(expected.ravel(), rel=1e-6)


def test_each_parameter_is_stepped_by_the_optimizer_that_its_own_op_names(tmp_path):
    def build():
        loss, weight = regression()
        bias = tf.get_variable("bias", [1], initializer=tf.ones_initializer())
        loss += tf.reduce_sum(tf.square(bias))
        adagrad = tf.train.AdagradOptimizer(0.5).minimize(loss, var_list=[weight])
        ftrl = tf.train.FtrlOptimizer(0.2).minimize(loss, var_list=[bias])
        return tf.group(adagrad, ftrl)

    optimizer = build_training(saved(tmp_path, build)).optimizer
    found = {
        target.name: group["optimizer"]
        for group in optimizer.param_groups
        for target in optimizer.targets
        if any(target.tensor is one for one in group["params"])
    }
    assert found == {"weight": "Adagrad", "bias": "Ftrl"}


def test_an_optimizer_for_a_scoring_module_has_the_slots_and_follows_its_own_loss(tmp_path):
    prefix = saved(tmp_path, momentum)
    module = load_model(prefix, output="MatMul")
    optimizer = build_optimizer(module, prefix)
    (target,) = optimizer.targets
    weight = target.tensor.detach().clone()
    slot = optimizer.state[target.tensor]["momentum_buffer"].clone()
    assert slot.abs().min() > 0
    module(BATCH).sum().backward()
    gradient = torch.tensor(X).sum(0).reshape(weight.shape)
    optimizer.step()
    assert torch.allclose(target.tensor, weight - 0.1 * (0.9 * slot + gradient))


def test_a_row_that_was_looked_up_decays_even_where_its_gradient_is_zero(tmp_path):
    def build():
        ids = tf.placeholder(tf.int64, [None], name="ids")
        weight = tf.placeholder(tf.float32, [None, 1], name="given")
        loss, _ = regression()
        with tf.variable_scope("t", use_resource=True):
            table = tf.get_variable("table", [4, 1], initializer=tf.ones_initializer())
        loss += tf.reduce_sum(tf.nn.embedding_lookup(table, ids) * weight)
        return tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss)

    fed = {"ids:0": [0, 1, 2], "given:0": [[1.0], [1.0], [1.0]]}
    training = build_training(saved(tmp_path, build, fed))
    (target,) = [one for one in training.optimizer.targets if one.name == "t/table"]
    zero = {**BATCH, "ids": torch.tensor([1, 1]), "given": torch.zeros(2, 1)}
    step(training, zero)
    slot = training.optimizer.state[target.tensor]["momentum_buffer"]
    assert slot[:, 0].tolist() == [1.0, 0.5, 1.0, 0.0]


def test_a_fed_learning_rate_must_be_given_and_may_change(tmp_path):
    def build():
        loss, _ = regression()
        rate = tf.placeholder(tf.float32, [], name="rate")
        return tf.train.GradientDescentOptimizer(rate * 2.0).minimize(loss)

    prefix = saved(tmp_path, build, {"rate:0": 0.1})
    assert "give --feed rate=VALUE, or in Python feeds={'rate': ...}" in refusal(prefix, UsageError)
    training = build_training(prefix, feeds={"rate": 0.25})
    assert training.optimizer.param_groups[0]["lr"] == 0.5
    training.optimizer.feeds["rate"] = 0.5
    step(training)
    assert training.optimizer.param_groups[0]["lr"] == 1.0


def test_a_saved_state_goes_on_where_it_stopped(tmp_path):
    def build():
        loss, _ = regression()
        counter = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.1, counter, 2, 0.5)
        return tf.train.AdamOptimizer(rate).minimize(loss, counter)

    prefix = saved(tmp_path, build)
    first, second = build_training(prefix), build_training(prefix)
    step(first)
    step(first)
    second.module.load_state_dict(first.module.state_dict())
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    assert int(second.optimizer.counters["global_step"]) == 3
    assert step(first) == step(second)
    for one, other in zip(first.module.parameters(), second.module.parameters()):
        assert torch.equal(one, other)


def test_without_gradients_there_is_no_step(tmp_path):
    def build():
        loss, _ = regression()
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    training = build_training(saved(tmp_path, build))
    with pytest.raises(UsageError, match="backward"):
        training.optimizer.step()


def test_moving_averages_of_the_weights_are_left_out_and_named(tmp_path):
    def build():
        loss, weight = regression()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train]):
            return tf.train.ExponentialMovingAverage(0.9).apply([weight])

    training = build_training(saved(tmp_path, build))
    assert training.optimizer.left_out == ["weight/ExponentialMovingAverage"]


def test_a_weight_decay_beside_the_optimizer_is_refused(tmp_path):
    def build():
        loss, weight = regression()
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        with tf.control_dependencies([train]):
            return tf.assign_sub(weight, 0.01 * weight)

    message = refusal(saved(tmp_path, build))
    assert "'weight'" in message and "beside the optimizer's 'Momentum/update_weight/" in message


def test_an_optimizer_that_assigns_by_hand_is_refused_by_name_and_noted(tmp_path):
    """As BERT's does, without any op or collection that tells the training op."""

    def build():
        loss, weight = regression()
        step = tf.train.get_or_create_global_step()
        mean = tf.get_variable("weight/adam_m", [2, 1], trainable=False)
        following = 0.9 * mean + 0.1 * tf.gradients(loss, weight)[0]
        moved = weight.assign(weight - 0.1 * (following + 0.01 * weight))
        return tf.group(moved, mean.assign(following), step.assign(step + 1))

    prefix = saved(tmp_path, build)
    message = refusal(prefix)
    assert "each step changes 'weight' by 'Assign" in message
    assert "not an update of an optimizer that is known here" in message
    with open_checkpoint(prefix) as checkpoint:
        (note,) = find_training(checkpoint, find_meta_graph(checkpoint, None)).notes()
    assert note.startswith("the MetaGraph trains weight by ops of no form that is known here")


def test_what_only_loads_a_variable_is_no_training_op(tmp_path):
    def build():
        _, weight = regression()
        return weight.assign(tf.placeholder(tf.float32, [2, 1], name="given"))

    prefix = saved(tmp_path, build, {"given:0": np.ones((2, 1), np.float32)})
    assert "has no training op that changes a variable" in refusal(prefix)


def test_a_constraint_is_refused(tmp_path):
    def build():
        weight = tf.get_variable("weight", [2, 1], constraint=lambda w: tf.clip_by_norm(w, 1.0))
        loss, _ = regression(weight)
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    assert "'weight'" in refusal(saved(tmp_path, build))


def test_two_training_ops_of_one_variable_need_a_choice(tmp_path):
    def build():
        loss, _ = regression()
        first = tf.train.GradientDescentOptimizer(0.1, name="First").minimize(loss)
        tf.train.MomentumOptimizer(0.1, 0.9, name="Second").minimize(loss)
        return first

    prefix = saved(tmp_path, build)
    assert "name the training op whose steps are meant with train_op" in refusal(prefix)
    training = build_training(prefix, train_op="Second")
    assert training.optimizer.param_groups[0]["optimizer"] == "Momentum"
    assert "'Third'" in refusal(prefix, UsageError, train_op="Third")


def test_gradients_averaged_over_towers_are_refused(tmp_path):
    def build():
        loss, weight = regression()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        towers = [optimizer.compute_gradients(loss)[0][0] for _ in range(2)]
        return optimizer.apply_gradients([(tf.add_n(towers) / 2.0, weight)])

    assert "made of several gradients" in refusal(saved(tmp_path, build))


def test_gradients_that_are_collected_over_steps_are_refused(tmp_path):
    def build():
        loss, weight = regression()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        total = tf.get_variable("total", [2, 1], trainable=False)
        return optimizer.apply_gradients([(total + 0.0, weight)])

    assert "does not come from tf.gradients but from 'total'" in refusal(saved(tmp_path, build))


def test_an_op_on_the_gradients_that_is_not_known_is_named(tmp_path):
    def build():
        loss, weight = regression()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        ((gradient, _),) = optimizer.compute_gradients(loss)
        return optimizer.apply_gradients([(tf.math.zeta(gradient, gradient), weight)])

    assert "Zeta" in refusal(saved(tmp_path, build))


def test_a_learning_rate_that_follows_the_loss_is_refused(tmp_path):
    def build():
        loss, _ = regression()
        rate = tf.get_variable("rate", [], initializer=tf.ones_initializer(), trainable=False)
        with tf.control_dependencies([tf.assign(rate, rate * 0.5 + 0.1 * loss)]):
            return tf.train.GradientDescentOptimizer(rate).minimize(loss)

    assert "a hyperparameter depends on 'rate'" in refusal(saved(tmp_path, build))


def test_an_optimizer_that_nothing_continues_is_refused_with_its_formula(tmp_path):
    def build():
        loss, _ = regression()
        counter = tf.train.get_or_create_global_step()
        return tf.train.AdagradDAOptimizer(0.1, counter).minimize(loss, counter)

    assert "AdagradDA, which no optimizer here continues" in refusal(saved(tmp_path, build))


def test_a_graph_that_does_not_train_is_refused(tmp_path):
    def build():
        loss, _ = regression()
        return loss

    assert "has no training op that changes a variable" in refusal(saved(tmp_path, build))


def test_a_model_that_reads_what_each_step_changes_is_refused(tmp_path):
    def build():
        loss, _ = regression()
        scale = tf.get_variable("scale", [], initializer=tf.ones_initializer(), trainable=False)
        moved = tf.assign_add(scale, 0.1 * loss)
        with tf.control_dependencies([moved]):
            return tf.train.GradientDescentOptimizer(0.1).minimize(loss * scale.read_value())

    assert "the model reads 'scale'" in refusal(saved(tmp_path, build))


def test_batch_norm_with_fixed_statistics_trains_with_them(tmp_path):
    def build():
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        net = tf.layers.batch_normalization(x, training=False)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(net, 1)[:, 0] - y))
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    training = build_training(saved(tmp_path, build))
    before = {name: value.clone() for name, value in training.module.named_buffers()}
    assert training.module.training
    trained = float(training.module(BATCH))
    assert trained == float(training.module.eval()(BATCH))
    assert all(torch.equal(v, before[k]) for k, v in training.module.named_buffers())


def fused(x, training):
    """(normalised, moves of the statistics) of two axes, as tf.contrib.layers.batch_norm has it."""
    with tf.variable_scope("norm", reuse=tf.AUTO_REUSE):
        scale, offset = (tf.get_variable(name, [2]) for name in ("gamma", "beta"))
        moving = [
            tf.get_variable(f"moving_{name}", [2], initializer=start, trainable=False)
            for name, start in (("mean", tf.zeros_initializer), ("variance", tf.ones_initializer))
        ]
    stored = {} if training else dict(zip(("mean", "variance"), moving))
    spread = tf.reshape(x, [-1, 1, 1, 2])
    normed, *found = tf.nn.fused_batch_norm(spread, scale, offset, is_training=training, **stored)
    moves = [tf.assign_sub(one, (one - new) * 0.1) for one, new in zip(moving, found)]
    return tf.reshape(normed, tf.shape(x)), moves


@pytest.mark.parametrize("name", ["phase", "switch"])
def test_statistics_move_once_where_both_modes_are_computed(name, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        phase = tf.placeholder(tf.bool, [], name=name)
        (trained, moves), (scored, _) = (fused(x, training) for training in (True, False))
        net = tf.cond(phase, lambda: trained, lambda: scored)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(net, 1)[:, 0] - y))
        with tf.control_dependencies(moves):
            train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
        session.run(train_op, {x: X, y: Y, phase: True})
        expected = session.run({one.op.name: one for one in tf.global_variables()})
    training = build_training(prefix)
    assert "self.dense(self.norm(inputs[" in training.module.source
    step(training)
    state = training.module.state_dict()
    for attribute, variable in training.module.tensorflow_variables.items():
        found = state[attribute].numpy().T
        np.testing.assert_allclose(found, expected[variable], 1e-5, 1e-6, variable)


def test_a_batch_norm_whose_scale_is_cut_into_parts_is_one(tmp_path):
    def build():
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.placeholder(tf.float32, [None], name="y")
        with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
            net = tf.layers.batch_normalization(x, training=True, name="norm")
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(net, 1, name="found") - y))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            return tf.train.AdagradOptimizer(0.1).minimize(loss)

    prefix = saved(tmp_path, build)
    model = load_model(prefix, output="found").eval()
    (whole, alone) = (model({"x": x}) for x in (BATCH["x"], BATCH["x"][:1]))
    torch.testing.assert_close(whole[:1], alone)  # of the moving statistics, not the batch's
    assert {name: value.shape[0] for name, value in model.named_parameters()} == {
        "net_norm.weight": 2,
        "net_norm.bias": 2,
    }
    training = build_training(prefix)
    before = training.module.net_norm.weight.detach().clone()
    step(training)
    assert (training.module.net_norm.weight != before).all()


def _padded(optimizer, clips=False):
    """A table whose row 6 is zeros, which tf.concat puts behind it; row 1 has the gradient 0."""

    def build():
        ids = tf.placeholder(tf.int64, [None], name="ids")
        table = tf.get_variable("table", [6, 2], use_resource=False)
        rows = tf.gather(tf.concat([table, tf.zeros([1, 2])], 0), ids)
        loss, _ = regression()
        loss += tf.reduce_sum(tf.square(rows) * tf.cast(tf.not_equal(ids, 1), tf.float32)[:, None])
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        if clips:
            gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        return optimizer.apply_gradients(zip(gradients, variables), name="train")

    return build


@pytest.mark.parametrize(
    "optimizer",
    [tf.train.GradientDescentOptimizer, tf.train.AdagradOptimizer, tf.train.AdamOptimizer],
)
def test_a_table_with_a_row_of_zeros_beside_it_takes_tensorflows_steps(optimizer, tmp_path):
    prefix = saved(tmp_path, lambda: _padded(optimizer(0.1))(), {"ids:0": [0, 6, 1]})
    training = build_training(prefix)
    batches = [[5, 2, 5, 6], [1, 2, 6, 6], [6]]
    for ids in batches:
        step(training, {**BATCH, "ids": torch.tensor(ids)})
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(prefix + ".meta").restore(session, prefix)
        for ids in batches:
            session.run("train", {"x:0": X, "y:0": Y, "ids:0": ids})
        slots = {"sum": "Adagrad", "exp_avg": "Adam", "exp_avg_sq": "Adam_1"}
        (target,) = (one for one in training.optimizer.targets if one.name == "table")
        found = {"table:0": target.tensor.detach()}
        for name, value in training.optimizer.state[target.tensor].items():
            if name in slots:
                found[f"table/{slots[name]}:0"] = value
        for name, value in found.items():
            want = session.run(graph.get_tensor_by_name(name))
            np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("optimizer", "clips", "says"),
    [
        (tf.train.MomentumOptimizer(0.1, 0.9), False, "Momentum moves these"),
        (tf.train.AdagradOptimizer(0.1), True, "changes the gradients of these"),
    ],
)
def test_a_dense_gradient_of_a_table_is_refused_where_the_rows_of_the_batch_matter(
    optimizer, clips, says, tmp_path
):
    training = build_training(saved(tmp_path, _padded(optimizer, clips), {"ids:0": [1, 5]}))
    with pytest.raises(UsageError, match=f"'table' is dense.*{says}"):
        step(training, {**BATCH, "ids": torch.tensor([1, 5])})


def test_a_table_that_is_not_trained_is_compared_after_each_step(tmp_path):
    def build():
        ids = tf.placeholder(tf.int64, [None], name="ids")
        table = tf.get_variable("table", [4, 1], trainable=False)
        loss, weight = regression()
        rows = tf.nn.embedding_lookup(table, ids)
        loss += tf.reduce_sum(tf.square(rows)) * tf.reduce_sum(tf.square(weight))
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    prefix = saved(tmp_path, build, {"ids:0": [1, 3]})
    training = build_training(prefix)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(prefix + ".meta").restore(session, prefix)
        fed = {"x:0": X, "y:0": Y, "ids:0": [1, 3]}
        loss = session.run(training.loss, fed)
        session.run("GradientDescent", fed)
        values = session.run({v.op.name: v for v in tf.global_variables()})
    taken = recorded_step({**BATCH, "ids": torch.tensor([1, 3])}, float(loss), values)
    report = compare_steps(training, [taken])
    assert report.exceeded is None and report.compared == {
        "loss": 1,
        "parameter": 1,
        "statistic": 1,
    }
    moved = {**values, "table": values["table"] + 1}
    again = recorded_step(taken.batch, taken.loss, moved)
    exceeded = compare_steps(build_training(prefix), [again]).exceeded
    assert (exceeded.kind, exceeded.name) == ("statistic", "table")


def test_an_optimizer_that_does_not_sum_repeated_rows_is_refused(tmp_path):
    class OneByOne(tf.train.AdagradOptimizer):
        def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
            return self._resource_apply_sparse(grad, handle, indices)

    def build():
        ids = tf.placeholder(tf.int64, [None], name="ids")
        with tf.variable_scope("t", use_resource=True):
            table = tf.get_variable("table", [4, 1])
        loss, _ = regression()
        loss += tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
        return OneByOne(0.1).minimize(loss)

    prefix = saved(tmp_path, build, {"ids:0": [1, 1]})
    assert "to 't/table' one by one, also where a row repeats" in refusal(prefix)


def test_a_gradient_that_is_applied_to_another_variable_is_refused(tmp_path):
    def build():
        loss, weight = regression()
        other = tf.get_variable("other", [2, 1])
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        ((gradient, _),) = optimizer.compute_gradients(loss, [weight])
        return optimizer.apply_gradients([(gradient, other)])

    assert "of what 'MatMul' reads, which is another variable" in refusal(saved(tmp_path, build))


def test_a_graph_from_before_gradients_had_names_trains():
    meta = shared("models", "princewen_ffm", "FFM-0.meta")
    training = build_training(str(meta.with_suffix("")))
    assert training.loss == "add_1:0"
    assert len(training.optimizer.targets) == 4
