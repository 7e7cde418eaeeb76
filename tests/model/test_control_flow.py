"""Branches and loops, in both forms in which TensorFlow writes them."""

import itertools

import numpy as np
import pytest
import torch

from migrate.model.load import load_model

tf = pytest.importorskip("tensorflow").compat.v1


@pytest.fixture(scope="module", params=["dataflow", "functions"])
def saved(request, tmp_path_factory):
    """(prefix, {(p, training, n): (y, z)}, x): nested conds, a loop with a cond in it."""
    prefix = str(tmp_path_factory.mktemp(request.param) / "model")
    from tests.support.control_flow import control_flow

    x_value = np.random.RandomState(0).randn(4, 3).astype(np.float32)
    version = 2 if request.param == "functions" else 1
    with control_flow(version), tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(0)
        fetched, feeds = _graph()
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
        values = {}
        for p, training, n in itertools.product([False, True], [False, True], [0, 3]):
            fed = dict(zip(feeds, (x_value, p, training, n)))
            values[p, training, n] = session.run(fetched, fed)
    return prefix, values, torch.tensor(x_value)


def _graph():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    training = tf.placeholder_with_default(False, [], name="is_training")
    n = tf.placeholder(tf.int32, [], name="n")
    w = tf.get_variable("w", [3, 3])

    def inner():
        return tf.cond(training, lambda: tf.matmul(x, w) * 2.0, lambda: x * 3.0)

    a, b = tf.cond(p, lambda: (inner(), x + 1.0), lambda: (x * 5.0, tf.constant(7.0) * x))
    c = tf.cond(tf.less(n, 2), lambda: tf.constant(0.5), lambda: tf.constant(1.0))

    def step(i, total):
        more = tf.cond(p, lambda: total * 1.5 + b, lambda: total + tf.cast(i, tf.float32))
        return i + 1, more

    i, total = tf.while_loop(lambda i, total: i < n, step, [tf.constant(0), a])
    return [tf.add(total * c, b, name="y"), tf.identity(i * 2, name="z")], [x, p, training, n]


def test_each_branch_and_each_count_gives_what_tensorflow_gives(saved):
    prefix, values, x = saved
    module = load_model(prefix, output=["y", "z"])
    for (p, training, n), (y, z) in values.items():
        module.train(training)
        inputs = {"x": x, "p": torch.tensor(p), "n": torch.tensor(n, dtype=torch.int32)}
        found = module(inputs)
        assert np.allclose(found[0].detach().numpy(), y, rtol=1e-6, atol=1e-5)
        assert found[1].item() == z and found[1].dtype == torch.int32


def test_branches_are_written_as_ifs_and_loops_as_whiles(saved):
    source = load_model(saved[0], output=["y", "z"]).source
    assert "if self.training:" in source and "if p:" in source
    assert source.count("        while ") == 1 and "break" not in source


def test_only_the_branch_that_is_taken_runs(saved):
    prefix, _, x = saved
    module = load_model(prefix, output="y").eval()
    module.w.weight.data.fill_(float("nan"))  # of the branch that trains
    found = module({"x": x, "p": torch.tensor(True), "n": torch.tensor(0)})
    assert not found.isnan().any()
